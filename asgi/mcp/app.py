"""The endpoint for Quart hosts, as a blueprint, and for every ASGI host, as an application.

Source: docs/mcp.md.
"""

from __future__ import annotations

from typing import Any, Unpack

from quart import Blueprint, Response
from quart.globals import request_ctx
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from rungent.agent import Agent
from rungent.asgi.exchange import Orderly
from rungent.asgi.mcp.endpoint import Endpoint, Head
from rungent.asgi.mcp.options import McpOptions, mcp_settings
from rungent.asgi.mcp.settings import McpSettings
from rungent.asgi.requests import DISCARD_BYTES, read_body

__all__ = ["McpApp", "create_mcp_asgi", "create_mcp_blueprint"]

# A rule takes every method, so that the refusal of a method is ours in any host.
_METHODS = ("CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE")


def create_mcp_asgi(agent: Agent, **options: Unpack[McpOptions]) -> McpApp:
    """The tools of `agent` for MCP clients, as an ASGI application with one endpoint.

    It answers at its root, with or without the slash, and wherever a router names it as the
    endpoint of a route. It needs no runtime and no lifespan, and must run on trio. A client that
    goes away cancels its call. Raises ValueError for options that cannot work.
    Source: docs/mcp.md#options.
    """
    return McpApp(mcp_settings(agent, passing=(HTTPException,), **options))


def create_mcp_blueprint(
    agent: Agent, *, name: str = "rungent_mcp", **options: Unpack[McpOptions]
) -> Blueprint:
    """The same endpoint as `create_mcp_asgi`, for a Quart-Trio application.

    Register it with the path as `url_prefix`. The application's `MAX_CONTENT_LENGTH` must not
    lie below `max_body_bytes`. Source: docs/mcp.md#options.
    """
    return _blueprint(mcp_settings(agent, passing=(HTTPException,), **options), name)


def _blueprint(settings: McpSettings, name: str) -> Blueprint:
    endpoint = Endpoint(settings)

    async def answer() -> Response:
        # The request itself, not the framework's proxy: the host may keep it.
        request = request_ctx.request
        # Read first: a server cannot use a connection again while half a body is still on it.
        body = await read_body(request, settings.max_body_bytes)
        headers: dict[str, list[str]] = {}
        for key, value in request.headers.items():
            headers.setdefault(key.lower(), []).append(value)
        reply = await endpoint.answer(Head(request.method, headers), body, request)
        kind = None if reply.body is None else "application/json"
        response = Response(reply.encoded(), status=reply.status, content_type=kind)
        if kind is None:
            response.headers.pop("Content-Type", None)
        response.headers.extend(dict(reply.headers))
        return response

    blueprint = Blueprint(name, "rungent.asgi.mcp")
    blueprint.add_url_rule(
        "/",
        endpoint="endpoint",
        view_func=answer,
        methods=_METHODS,
        provide_automatic_options=False,
        strict_slashes=False,
    )
    return blueprint


class McpApp:
    """An ASGI application with one path: its root."""

    def __init__(self, settings: McpSettings) -> None:
        self._app = QuartTrio("rungent.asgi.mcp", static_folder=None)
        self._app.config["MAX_CONTENT_LENGTH"] = max(DISCARD_BYTES, settings.max_body_bytes)
        # A tool has its own time limit.
        self._app.config["RESPONSE_TIMEOUT"] = None
        self._app.register_blueprint(_blueprint(settings, "mcp"))
        self._orderly = Orderly(self._app)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one connection."""
        if scope["type"] == "http":
            rest: str = scope["path"].removeprefix(scope.get("root_path", ""))
            # A route keeps the path it matched, and names its endpoint.
            if rest in ("", "/") or scope.get("endpoint") is self:
                scope = {**scope, "path": "/", "root_path": ""}
                scope.pop("raw_path", None)
        await self._orderly(scope, receive, send)
