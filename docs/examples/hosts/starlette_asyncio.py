"""A Starlette application on asyncio with the assistant mounted: `uvicorn starlette_asyncio:app`.

A middleware of the host finds the user and leaves it in the request's state.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from assistant import new_runtime, user_of
from quart import Request as MountedRequest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from rungent import Identity
from rungent.asgi import create_app
from rungent.asgi.embed import Embedded

runtime = new_runtime()
embedded = Embedded(runtime)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncGenerator[None]:
    """Serve the runtime, on trio, as long as the application is served."""
    del app
    async with embedded:
        yield


class FindUser:
    """Notes who sends a request."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection."""
        if scope["type"] == "http":
            request = Request(scope)
            request.state.user = user_of(request.headers.get("Authorization", ""))
        await self.app(scope, receive, send)


def identify(request: MountedRequest) -> Identity | None:
    """The user that the middleware noted. This runs on trio."""
    user = request.scope["state"]["user"]
    return None if user is None else Identity(user)


async def me(request: Request) -> JSONResponse:
    """A route of the host."""
    return JSONResponse({"user": request.state.user})


app = Starlette(
    lifespan=lifespan,
    middleware=[Middleware(FindUser)],
    routes=[
        Route("/me", me),
        Mount("/api/assistant", embedded.app(create_app(runtime, identity_resolver=identify))),
    ],
)
