"""An endpoint in the same process, and requests of both eras to it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from quart import Request

from rungent import Agent, Identity, Unauthenticated
from rungent.mcp import create_mcp_asgi
from rungent.testing.asgi import AsgiClient, AsgiResponse
from tests.mcp.desk import AGENT, Desk

MODERN = "2026-07-28"
LEGACY = ("2025-03-26", "2025-06-18", "2025-11-25")
META = "io.modelcontextprotocol/"
CAN_ASK: dict[str, Any] = {"elicitation": {}}
CAN_WAIT: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


def identify(request: Request) -> Identity | None:
    """Whoever the header names; Ada without one."""
    user = request.headers.get("x-user", "ada")
    if user == "refused":
        raise Unauthenticated("canary", www_authenticate='Bearer realm="mine"')
    if user == "forbidden":
        raise PermissionError("canary")
    if user == "broken":
        raise RuntimeError("canary")
    return None if user == "nobody" else Identity(user)


@dataclass(frozen=True, slots=True)
class Wire:
    """A client of one endpoint."""

    http: AsgiClient
    desk: Desk

    async def post(self, body: Any, **headers: str) -> AsgiResponse:
        """Send any JSON value."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http.request("POST", "/", json=body, headers=names)

    async def legacy(self, method: str, params: Any = None, **headers: str) -> AsgiResponse:
        """A request of the older era."""
        return await self.post(message(method, params or {}), **headers)

    async def modern(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        able: Mapping[str, Any] | None = None,
        **headers: str,
    ) -> AsgiResponse:
        """A request of the newer era, complete; `headers` replace those it would have."""
        given = dict(params or {})
        meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": dict(able or {})}
        sent = {"mcp_protocol_version": MODERN, "mcp_method": method}
        name = given.get("name", given.get("taskId"))
        if name is not None:
            sent["mcp_name"] = name
        return await self.post(message(method, {**given, "_meta": meta}), **{**sent, **headers})

    async def call(self, tool: str, able: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """The result of a call in the newer era."""
        answer = await self.modern("tools/call", {"name": tool, **more}, able)
        assert answer.status == 200, answer.body
        return answer.json()["result"]


def message(method: str, params: Any, message_id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message_id, "method": method, "params": params}


def envelope(result: Mapping[str, Any]) -> dict[str, Any]:
    """What the model reads."""
    read: dict[str, Any] = json.loads(result["content"][0]["text"])
    assert result["isError"] == (read["tool_status"] == "error")
    return read


def code_of(answer: AsgiResponse) -> int:
    """The JSON-RPC code of an error."""
    code: int = answer.json()["error"]["code"]
    return code


@asynccontextmanager
async def wire(agent: Agent = AGENT, **options: Any) -> AsyncGenerator[Wire]:
    """An endpoint with the desk's tools."""
    desk = Desk()
    options.setdefault("identity_resolver", identify)

    def deps(request: Request) -> dict[str, Any]:
        return {"desk": desk}

    options.setdefault("context_factory", deps)
    async with AsgiClient(create_mcp_asgi(agent, **options), lifespan=False) as http:
        yield Wire(http, desk)
