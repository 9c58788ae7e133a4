"""Canaries in every private place: they may show up nowhere, except exception text in our log."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from rungent import Agent, Event, ToolCall, ToolContext, ToolResult, tool
from rungent.llm.port import ModelFailure
from tests.helpers import asking, stage, types


@tool(effect="write", approval="never")
async def raises(ctx: ToolContext, secret: str) -> None:
    """Raise."""
    raise ValueError(f"canary-exception {secret}")


@tool(effect="write", approval="never")
async def returns(ctx: ToolContext, secret: str) -> ToolResult:
    """Return private data."""
    return ToolResult({"private": "canary-data"}, message="Done.", public={"n": 1})


@tool(effect="write", approval="never")
async def wants(ctx: ToolContext, number: int) -> None:
    """Want a number."""
    raise NotImplementedError


@tool(effect="read", approval="never", timeout_seconds=1)
async def hangs(ctx: ToolContext) -> None:
    """Hang."""
    await trio.sleep_forever()


async def test_private_things_stay_private(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    heard: list[str] = []

    def listener(event: Event) -> None:
        heard.append(event.to_json())
        raise ValueError("canary-exception of a listener")

    agent = Agent(
        "helper",
        "canary-instructions",
        tools=[raises, returns, wants, hangs],
        context=lambda ctx: "canary-context",
    )
    script: list[Any] = [
        ModelFailure("network"),
        asking(
            ToolCall("raises", {"secret": "canary-argument"}),
            ToolCall("returns", {"secret": "canary-argument"}),
            ToolCall("wants", {"number": "canary-argument"}),
            ToolCall("hangs", {}),
            ToolCall("canary_tool", {"a": "canary-argument"}),
        ),
        ValueError("canary-exception of a model"),
    ]
    async with stage(script, agent=agent, event_listener=listener) as on:
        events = await on.play(deps={"key": "canary-deps"})
        assert types(events)[-1] == "run.failed"
        logged = "".join(event.to_json() for event in events)
        assert "canary" not in logged
        assert "canary" not in "".join(heard)
        for request in on.model.requests:
            sent = str(request)
            assert "canary-exception" not in sent
            assert "canary-deps" not in sent
        stored = "".join(m.model_dump_json() for m in await on.messages())
        run = (await on.run(events[0].run_id)).model_dump_json()
        claims = str(await on.store.list_claims(events[0].run_id))
        for text in (stored, run, claims):
            assert "canary-exception" not in text
            assert "canary-deps" not in text
            assert "canary-context" not in text
    for record in caplog.records:
        assert "canary" not in record.getMessage()
        if record.exc_info:
            assert (record.name, record.levelno) == ("rungent", logging.ERROR)
        else:
            assert "canary" not in str(record.__dict__)
    raised = [str(record.exc_info[1]) for record in caplog.records if record.exc_info]
    assert any("canary-exception canary-argument" in text for text in raised)
    assert any("of a model" in text for text in raised)
    assert any("of a listener" in text for text in raised)
