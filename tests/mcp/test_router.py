"""The endpoint as a FastAPI router: the host's dependencies, the endpoint's own answers."""

from __future__ import annotations

from typing import Annotated, Any

import httpx
import pytest
from fastapi import Depends, FastAPI, Header, HTTPException, Request
from trio.testing import MockClock

from rungent import Identity, Unauthenticated
from rungent.asgi.embed import Embedded
from rungent.fastapi import create_mcp_router
from rungent.testing import ScriptedModel
from rungent.testing.asgi import AsgiClient
from tests.asgi.apps import runtime_with
from tests.mcp.calling import message
from tests.mcp.desk import AGENT, Desk

METADATA = "https://example.org/meta"


def user_of(x_user: Annotated[str, Header()] = "ada") -> str:
    if x_user == "banned":
        raise HTTPException(403, "no entry")
    return x_user


def identify(user: Annotated[str, Depends(user_of)]) -> Identity:
    if user == "nobody":
        raise Unauthenticated()
    return Identity(user)


def host_of(desk: Desk, embedded: Embedded | None = None) -> FastAPI:
    def deps(request: Request) -> dict[str, Any]:
        assert request.url.path == "/api/mcp"
        return {"desk": desk}

    host = FastAPI()
    router = create_mcp_router(
        AGENT,
        identity_resolver=identify,
        context_factory=deps,
        embedded=embedded,
        resource_metadata_url=METADATA,
    )
    host.include_router(router, prefix="/api/mcp")
    return host


ADD = message("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})


async def test_the_host_finds_out_who_calls_and_the_endpoint_answers(
    autojump_clock: MockClock,
) -> None:
    desk = Desk()
    async with AsgiClient(host_of(desk)) as client:
        done = await client.request("POST", "/api/mcp", json=ADD, headers={"x-user": "grace"})
        assert done.json()["result"]["isError"] is False
        assert desk.contexts[0].identity == Identity("grace")
        assert (await client.request("GET", "/api/mcp")).status == 405
        refused = await client.request("POST", "/api/mcp", json=ADD, headers={"x-user": "nobody"})
        assert refused.status == 401
        assert METADATA in refused.headers["www-authenticate"]
        banned = await client.request("POST", "/api/mcp", json=ADD, headers={"x-user": "banned"})
        assert (banned.status, banned.json()) == (403, {"detail": "no entry"})
        assert len(desk.contexts) == 1


@pytest.mark.parametrize("guest", [False, True])
def test_a_host_on_asyncio_offers_the_same_tools(guest: bool) -> None:
    import asyncio

    async def main() -> None:
        desk = Desk()
        embedded = Embedded(runtime_with(ScriptedModel([])), guest=guest, signals=False)
        async with embedded:
            transport = httpx.ASGITransport(host_of(desk, embedded))
            async with httpx.AsyncClient(transport=transport, base_url="http://host") as client:
                done = await client.post("/api/mcp", json=ADD)
                assert done.json()["result"]["isError"] is False
        assert len(desk.contexts) == 1

    asyncio.run(main())
