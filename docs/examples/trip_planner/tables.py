"""The application's own tables, and the one way to them: a transaction in a thread.

They stand beside Rungent's in the same database, but the two never share a transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import trio
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    Date,
    Engine,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    create_engine,
)
from sqlalchemy.pool import StaticPool

from rungent.demo import edits

__all__ = [
    "BUDGETS",
    "DAYS",
    "DRAFTS",
    "JOBS",
    "PLACES",
    "PREFERENCES",
    "TRIPS",
    "Database",
    "trip_engine",
]

Result = TypeVar("Result")

_metadata = MetaData()


def _trip_key(*, primary: bool = False) -> Column[str]:
    return Column(
        "trip_id",
        String(64),
        ForeignKey("trips.id", ondelete="CASCADE"),
        primary_key=primary,
        nullable=False,
        index=not primary,
    )


TRIPS = Table(
    "trips",
    _metadata,
    Column("id", String(64), primary_key=True),
    Column("title", String(edits.TITLE_LIMIT), nullable=False),
    Column("revision", Integer, nullable=False),
)
DAYS = Table(
    "trip_days",
    _metadata,
    _trip_key(primary=True),
    Column("number", Integer, primary_key=True),
    Column("transport", String(16), nullable=False),
)
PLACES = Table(
    "trip_places",
    _metadata,
    Column("id", String(64), primary_key=True),
    _trip_key(),
    Column("position", Integer, nullable=False),
    Column("name", String(edits.NAME_LIMIT), nullable=False),
    Column("day_number", Integer),
    Column("transport", String(16)),
)
BUDGETS = Table(
    "trip_budgets",
    _metadata,
    _trip_key(primary=True),
    Column("amount", Integer, nullable=False),
    Column("currency", String(3), nullable=False),
    Column("per_person", Boolean, nullable=False),
    Column("book_by", Date),
)
PREFERENCES = Table(
    "trip_preferences",
    _metadata,
    _trip_key(primary=True),
    Column("pace", String(64), nullable=False),
    Column("interests", JSON, nullable=False),
    Column("wish", String(4000), nullable=False),
)
DRAFTS = Table(
    "trip_import_drafts",
    _metadata,
    Column("id", String(64), primary_key=True),
    _trip_key(),
    Column("revision", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("entries", JSON, nullable=False),
)
JOBS = Table(
    "trip_route_jobs",
    _metadata,
    Column("task_id", String(64), primary_key=True),
    _trip_key(),
    Column("run_id", String(64), nullable=False),
    Column("subject_id", String(256), nullable=False),
    Column("tenant_id", String(256)),
    Column("day_number", Integer),
    Column("state", String(16), nullable=False, index=True),
    Column("outcome", JSON),
)


def trip_engine(path: Path | None) -> Engine:
    """An engine for the trip tables: they never share a connection with Rungent's store."""
    if path is not None:
        return create_engine(f"sqlite:///{path}")
    # All of a database in memory lives in one connection, so that one is kept.
    return create_engine(
        "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}
    )


class Database:
    """Runs one transaction at a time in a thread. The engine stays the caller's."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # SQLite has one writer at a time; a second thread would only wait for the first.
        self._limiter = trio.CapacityLimiter(1)

    async def create_schema(self) -> None:
        """Create the tables that are missing."""
        await trio.to_thread.run_sync(_metadata.create_all, self._engine, limiter=self._limiter)

    async def transaction(self, work: Callable[[Connection], Result]) -> Result:
        """What `work` returns, committed; nothing of it when it raises.

        A cancelled caller never leaves it half done: the transaction ends, and then the
        cancellation goes on.
        """

        def whole() -> Result:
            with self._engine.begin() as connection:
                return work(connection)

        return await trio.to_thread.run_sync(whole, limiter=self._limiter)
