"""A FastAPI application on trio with the assistant mounted: `hypercorn -k trio fastapi_mount:app`.

A middleware of the host finds the user and leaves it in the request's state.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import cast

from assistant import new_runtime, user_of
from fastapi import FastAPI, Request, Response
from quart import Request as MountedRequest
from starlette.types import ASGIApp

from rungent import Identity
from rungent.asgi import create_app

runtime = new_runtime()


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    """Serve the runtime: the lifespan of a mounted application does not run."""
    del app
    async with runtime:
        yield


app = FastAPI(lifespan=lifespan)


@app.middleware("http")
async def find_user(
    request: Request, call_next: Callable[[Request], Awaitable[Response]]
) -> Response:
    """Note who sends a request."""
    request.state.user = user_of(request.headers.get("Authorization", ""))
    return await call_next(request)


def identify(request: MountedRequest) -> Identity | None:
    """The user that the middleware noted."""
    user = request.scope["state"]["user"]
    return None if user is None else Identity(user)


# The frameworks write the type of an ASGI application differently.
assistant = cast("ASGIApp", create_app(runtime, identity_resolver=identify))
app.mount("/api/assistant", assistant)


@app.get("/me")
async def me(request: Request) -> dict[str, str | None]:
    """A route of the host."""
    return {"user": request.state.user}
