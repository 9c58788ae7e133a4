"""Stores for tests in virtual time: SQLite on trio's own thread, empty and ready.

Source: docs/testing.md#time.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Literal

from rungent.store import MemoryStore, Store

__all__ = ["StoreKind", "fresh_store"]

StoreKind = Literal["memory", "sqlite"]


@asynccontextmanager
async def fresh_store(kind: StoreKind = "memory") -> AsyncGenerator[Store]:
    """An open, empty store. `sqlite` keeps it in memory and works on trio's own thread.

    Leaving raises AssertionError when a database connection is still in use.
    """
    if kind == "memory":
        yield MemoryStore()
        return
    # Only this kind needs the extra `sqlalchemy`.
    from sqlalchemy import StaticPool, create_engine, event

    from rungent.sqlalchemy import SQLAlchemyStore

    engine = create_engine("sqlite://", poolclass=StaticPool)
    held: list[int] = [0]

    def take(*_: object) -> None:
        held[0] += 1

    def give_back(*_: object) -> None:
        held[0] -= 1

    event.listen(engine, "checkout", take)
    event.listen(engine, "checkin", give_back)
    store = SQLAlchemyStore(engine, inline=True)
    try:
        async with store.open():
            await store.create_schema()
            yield store
    finally:
        engine.dispose()
    if held[0]:
        raise AssertionError(f"{held[0]} database connections are still in use")
