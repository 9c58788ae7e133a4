"""The demo's database: Rungent's store and the trip tables in one file, ready to use."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio
from sqlalchemy import create_engine
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import sessionmaker

from rungent.demo.seed import demo_trip
from rungent.demo.services import Services
from rungent.demo.tables import Database, trip_engine
from rungent.sqlalchemy import SQLAlchemyStore
from rungent.store import MemoryStore, Store

__all__ = ["open_database"]


@asynccontextmanager
async def open_database(path: Path | None) -> AsyncIterator[tuple[Store, Services]]:
    """Open a database file, or a database in memory for None, with all tables and the demo trip.

    The demo is its own host, so it creates Rungent's tables itself; an application with
    migrations of its own would not. Raises OSError when the file cannot be
    written or is no database.
    """
    if path is not None:
        await trio.to_thread.run_sync(_make_file, path)
    engine = trip_engine(path)
    try:
        database = Database(engine)
        services = Services.of(database)
        try:
            store = await _open_store(path)
            await database.create_schema()
            await services.trips.add_if_missing(demo_trip())
        except DatabaseError as error:
            raise OSError(f"{path}: {error.orig}") from None
        yield store, services
    finally:
        engine.dispose()


def _make_file(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # An empty file is an empty database, and a bad path fails here with a plain error.
    path.open("ab").close()


async def _open_store(path: Path | None) -> Store:
    if path is None:
        return MemoryStore()
    store = SQLAlchemyStore(sessionmaker(create_engine(f"sqlite:///{path}")))
    await store.create_schema()
    return store
