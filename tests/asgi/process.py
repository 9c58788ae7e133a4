"""A process that serves an application on a free port, for tests that end it by a signal."""

from __future__ import annotations

import sys
from functools import partial

import trio
from sqlalchemy import create_engine

from rungent.asgi import create_app, serve
from rungent.sqlalchemy import SQLAlchemyStore
from tests.asgi.apps import GatedModel, identify, runtime_with


async def main(database: str, graceful_timeout: float) -> None:
    store = SQLAlchemyStore(create_engine(f"sqlite:///{database}"))
    await store.create_schema()
    runtime = runtime_with(GatedModel(), store=store, shutdown_grace_seconds=0.2)
    app = create_app(runtime, identity_resolver=identify)
    async with trio.open_nursery() as nursery:
        url = await nursery.start(
            partial(serve, app, runtime=runtime, port=0, graceful_timeout=graceful_timeout)
        )
        print(url, flush=True)


if __name__ == "__main__":
    trio.run(main, sys.argv[1], float(sys.argv[2]))
