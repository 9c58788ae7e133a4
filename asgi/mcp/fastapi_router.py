"""The MCP endpoint as a FastAPI router, which forwards to the one application.

Source: docs/mcp.md#fastapi.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

from fastapi import APIRouter

from rungent.agent import Agent
from rungent.asgi.embed import Embedded
from rungent.asgi.fastapi_router import ForwardingRouter, context_in_host
from rungent.asgi.handover import handed_identity
from rungent.asgi.mcp.app import create_mcp_asgi
from rungent.asgi.mcp.options import EndpointOptions

__all__ = ["create_mcp_router"]


def create_mcp_router(
    agent: Agent,
    *,
    identity_resolver: Callable[..., Any],
    context_factory: Callable[..., Any] | None = None,
    embedded: Embedded | None = None,
    **options: Unpack[EndpointOptions],
) -> APIRouter:
    """The endpoint of `create_mcp_asgi` for `app.include_router(…, prefix="/mcp")`.

    `identity_resolver` is a FastAPI dependency as in `create_router`; `context_factory(request)`
    gets FastAPI's request. A host on asyncio passes its `embedded` runtime. Raises what
    `create_mcp_asgi` does. Source: docs/mcp.md#fastapi.
    """
    app = create_mcp_asgi(
        agent,
        identity_resolver=handed_identity,
        context_factory=context_in_host(context_factory, embedded),
        **options,
    )
    router = ForwardingRouter(app, identity_resolver=identity_resolver, embedded=embedded)
    router.forward("", "POST", summary="Tools of the assistant, over MCP", tags=["mcp"])
    for method in ("GET", "HEAD", "DELETE", "PATCH", "PUT"):
        # Refused, but only to those who may know.
        router.forward("", method, include_in_schema=False)
    router.forward_rest("")
    return router
