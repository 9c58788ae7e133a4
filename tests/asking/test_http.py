"""Tokens over HTTP, where the host wants that."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from trio.testing import MockClock

from rungent import Agent, Identity
from rungent.asgi import create_app
from rungent.store import MemoryStore
from rungent.testing import ScriptedModel
from rungent.testing.asgi import AsgiClient
from tests.asgi.apps import BOB, identify, runtime_with
from tests.asking.channel import ASK, Channel, ask_channel, provider


async def asked(stack: AsyncExitStack, **options: Any) -> tuple[AsgiClient, str, str]:
    """An application whose run waits in a channel: a client, the run and the token."""
    channel = Channel()
    runtime = runtime_with(
        ScriptedModel([ASK, "Done."]),
        agents=[Agent("planner", "Plan.", tools=[ask_channel()])],
        store=MemoryStore(),
        dependency_provider=provider(channel),
    )
    app = create_app(runtime, identity_resolver=identify, **options)
    client = await stack.enter_async_context(AsgiClient(app, headers=BOB))
    session = await runtime.create_session(identity=Identity("ada"))
    stream = runtime.stream_run(session.id, "hi", identity=Identity("ada"))
    run_id = [event async for event in stream][-1].run_id
    return client, run_id, channel.last.buttons["Approve"]


async def test_a_token_is_taken_from_whom_the_resolver_names(autojump_clock: MockClock) -> None:
    async with AsyncExitStack() as stack:
        client, run_id, token = await asked(stack, actions=True)
        stranger = await client.request("POST", f"/actions/{token}", headers={"x-user": "mallory"})
        assert stranger.json()["status"] == "not_allowed"
        seen = [(await client.request("POST", f"/actions/{token}")).json() for _ in range(2)]
        assert [one["status"] for one in seen] == ["accepted", "already_answered"]
        assert (seen[0]["run_id"], seen[1]["answered_by"]) == (run_id, "bob")
        for forged in ("x", "x" * 22, "%00" * 22):
            answer = await client.request("POST", f"/actions/{forged}")
            assert answer.status in (200, 404)
            assert "accepted" not in answer.body.decode()
        assert (await client.request("GET", f"/actions/{token}")).status == 405
        described = (await client.request("GET", "/openapi.json")).json()
        assert "/actions/{token}" in described["paths"]
        assert {"ActionResult"} <= set(described["components"]["schemas"])


async def test_without_the_option_there_is_no_such_route(autojump_clock: MockClock) -> None:
    async with AsyncExitStack() as stack:
        client, _, token = await asked(stack)
        assert (await client.request("POST", f"/actions/{token}")).status == 404
        described = (await client.request("GET", "/openapi.json")).json()
        assert "/actions/{token}" not in described["paths"]
