"""A FastAPI application on trio with the router: `hypercorn -k trio fastapi_trio:app`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any

from assistant import new_runtime, user_of
from fastapi import Depends, FastAPI, Header, HTTPException, Request

from rungent import Identity, Run, Session
from rungent.fastapi import create_router

runtime = new_runtime()


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    """Serve the runtime as long as the application is served."""
    app.state.city = "Rome"
    async with runtime:
        yield


def current_user(authorization: Annotated[str, Header()] = "") -> str:
    """The host's own dependency; all its routes may use it."""
    user = user_of(authorization)
    if user is None:
        raise HTTPException(401, "Who are you?", {"WWW-Authenticate": "Bearer"})
    return user


def identify(user: Annotated[str, Depends(current_user)]) -> Identity:
    """Who sends a request."""
    return Identity(user)


def dependencies(request: Request, session: Session, run: Run | None) -> Mapping[str, Any]:
    """What tools find in `ctx.deps`."""
    del session, run
    city = request.app.state.city

    async def forecast() -> str:
        return f"sunny in {city}"

    return {"forecast": forecast}


app = FastAPI(lifespan=lifespan)
app.include_router(
    create_router(runtime, identity_resolver=identify, context_factory=dependencies),
    prefix="/api/assistant",
)


@app.get("/me")
def me(user: Annotated[str, Depends(current_user)]) -> dict[str, str]:
    """A route of the host."""
    return {"user": user}
