"""A FastAPI host on asyncio over an SQLite file: the mounted application and the router."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import trio
from fastapi import FastAPI, Header
from quart import Request
from sqlalchemy import create_engine

from rungent import Identity
from rungent.asgi import create_app
from rungent.asgi.embed import Embedded
from rungent.fastapi import create_router
from rungent.sqlalchemy import SQLAlchemyStore
from tests.asgi.apps import GatedModel, runtime_with
from tests.hosts.endless import Endless

store = SQLAlchemyStore(create_engine(f"sqlite:///{os.environ['HOST_DATABASE']}"))
trio.run(store.create_schema)
runtime = runtime_with(GatedModel(), store=store, shutdown_grace_seconds=0.2)
embedded = Embedded(runtime, guest=os.environ.get("HOST_GUEST") == "1")
current: list[Endless] = []


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    del app
    async with embedded:
        yield


def identify(x_user: Annotated[str, Header()] = "ada") -> Identity:
    return Identity(x_user)


def identify_mounted(request: Request) -> Identity:
    return Identity(request.headers.get("x-user", "ada"))


app = FastAPI(lifespan=lifespan)
app.include_router(create_router(embedded, identity_resolver=identify), prefix="/api/assistant")
mounted = create_app(runtime, identity_resolver=identify_mounted)
app.mount("/mounted", embedded.app(mounted))


@embedded.app
async def endless(scope: Any, receive: Any, send: Any) -> None:
    current.append(Endless())
    await current[-1](scope, receive, send)


app.mount("/endless", endless)


@app.get("/sent")
async def sent() -> dict[str, object]:
    last = current[-1] if current else Endless()
    return {"sent": last.sent, "left": last.left, "over": last.over}
