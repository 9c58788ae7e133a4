"""A FastAPI application on asyncio with the router: `uvicorn fastapi_asyncio:app`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any

from assistant import new_runtime, user_of
from fastapi import Depends, FastAPI, Header, HTTPException, Request

from rungent import Identity, Run, Session
from rungent.asgi.embed import Embedded
from rungent.fastapi import create_router

runtime = new_runtime()
embedded = Embedded(runtime)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    """Serve the runtime, on trio, as long as the application is served."""
    app.state.city = "Rome"
    async with embedded:
        yield


async def current_user(authorization: Annotated[str, Header()] = "") -> str:
    """The host's own dependency, on the host's loop; all its routes may use it."""
    user = user_of(authorization)
    if user is None:
        raise HTTPException(401, "Who are you?", {"WWW-Authenticate": "Bearer"})
    return user


def identify(user: Annotated[str, Depends(current_user)]) -> Identity:
    """Who sends a request."""
    return Identity(user)


async def ask_weather_service(city: str) -> str:
    """A service of the host, on the host's loop."""
    await asyncio.sleep(0)
    return f"sunny in {city}"


def dependencies(request: Request, session: Session, run: Run | None) -> Mapping[str, Any]:
    """What tools find in `ctx.deps`. Tools run on trio, so they call the host by `host`."""
    del session, run
    city: str = request.app.state.city
    return {"forecast": partial(embedded.host, ask_weather_service, city)}


app = FastAPI(lifespan=lifespan)
app.include_router(
    create_router(embedded, identity_resolver=identify, context_factory=dependencies),
    prefix="/api/assistant",
)


@app.post("/ask")
async def ask(question: str, user: Annotated[str, Depends(current_user)]) -> dict[str, str]:
    """A route of the host that uses the runtime itself, and waits for the answer."""
    identity = Identity(user)
    session = await embedded.call(runtime.create_session, identity=identity)
    answer = ""
    async for event in embedded.iterate(
        runtime.stream_run, session.id, question, identity=identity
    ):
        if event.type == "message.completed":
            answer = event.data["content"]
    return {"answer": answer}
