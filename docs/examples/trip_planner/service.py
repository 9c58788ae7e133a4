"""The trip service: trips in the application's own tables, each operation one transaction.

A host would have this code already, with or without an assistant. Its tables stand beside
Rungent's in the same database, but the two never share a transaction.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import trio
from sqlalchemy import (
    Column,
    Connection,
    Engine,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    create_engine,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.pool import StaticPool

from rungent.demo import edits
from rungent.demo.trip import Day, Place, Transport, Trip, TripNotFound, describe, known_transport

__all__ = ["TripService", "trip_engine"]

Result = TypeVar("Result")
Edit = Callable[[Trip], Trip]

_metadata = MetaData()
_trips = Table(
    "trips",
    _metadata,
    Column("id", String(64), primary_key=True),
    Column("title", String(edits.TITLE_LIMIT), nullable=False),
    Column("revision", Integer, nullable=False),
)
_days = Table(
    "trip_days",
    _metadata,
    Column("trip_id", String(64), ForeignKey("trips.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("transport", String(16), nullable=False),
)
_places = Table(
    "trip_places",
    _metadata,
    Column("id", String(64), primary_key=True),
    Column(
        "trip_id",
        String(64),
        ForeignKey("trips.id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("position", Integer, nullable=False),
    Column("name", String(edits.NAME_LIMIT), nullable=False),
    Column("day_number", Integer),
    Column("transport", String(16)),
)


def trip_engine(path: Path | None) -> Engine:
    """An engine for the trip tables: they never share a connection with Rungent's store."""
    if path is not None:
        return create_engine(f"sqlite:///{path}")
    # All of a database in memory lives in one connection, so that one is kept.
    return create_engine(
        "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}
    )


class TripService:
    """Trips of one database. Every method is one transaction: it happened, or it did not.

    Changes return the trip as it is afterwards; a change that changes nothing leaves the
    revision as it was. A cancelled caller never leaves a change half done. The engine stays the
    caller's, who disposes it.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # SQLite has one writer at a time; a second thread would only wait for the first.
        self._limiter = trio.CapacityLimiter(1)

    async def create_schema(self) -> None:
        """Create the tables that are missing."""
        await self._run(lambda: _metadata.create_all(self._engine))

    async def add_if_missing(self, trip: Trip) -> None:
        """Store a trip unless its id is taken."""
        await self._run(partial(self._add_if_missing, trip))

    async def get(self, trip_id: str) -> Trip:
        """The trip as it is now. Raises TripNotFound."""
        return await self._run(partial(self._get, trip_id))

    async def snapshot(self, trip_id: str) -> str:
        """The trip as text, for a prompt. Raises TripNotFound."""
        return describe(await self.get(trip_id))

    async def list_places(self, trip_id: str) -> tuple[Place, ...]:
        """All places, planned or not. Raises TripNotFound."""
        return (await self.get(trip_id)).places

    async def rename(self, trip_id: str, title: str) -> Trip:
        """Give the trip another title."""
        return await self._change(trip_id, lambda trip: edits.rename(trip, title))

    async def add_day(self, trip_id: str) -> Trip:
        """Append an empty day."""
        return await self._change(trip_id, edits.add_day)

    async def remove_day(self, trip_id: str, number: int) -> Trip:
        """Take a day out; its places become unplanned and later days move up."""
        return await self._change(trip_id, lambda trip: edits.remove_day(trip, number))

    async def add_place(self, trip_id: str, name: str, day_number: int | None) -> Trip:
        """Add a place at the end of a day, or unplanned."""
        place_id = uuid.uuid4().hex
        return await self._change(
            trip_id, lambda trip: edits.add_place(trip, place_id, name, day_number)
        )

    async def remove_place(self, trip_id: str, name: str) -> Trip:
        """Take a place out of the trip."""
        return await self._change(trip_id, lambda trip: edits.remove_place(trip, name))

    async def move_place(self, trip_id: str, name: str, day_number: int | None) -> Trip:
        """Move a place to the end of a day, or to the unplanned pool for None."""
        return await self._change(trip_id, lambda trip: edits.move_place(trip, name, day_number))

    async def swap_places(self, trip_id: str, first: str, second: str) -> Trip:
        """Let two places change seats."""
        return await self._change(trip_id, lambda trip: edits.swap_places(trip, first, second))

    async def set_transport(
        self,
        trip_id: str,
        mode: Transport,
        *,
        day_number: int | None = None,
        to_place: str | None = None,
    ) -> Trip:
        """Set the transport of a whole day, or of the way to one place."""
        return await self._change(
            trip_id,
            lambda trip: edits.set_transport(trip, mode, day_number=day_number, to_place=to_place),
        )

    async def _change(self, trip_id: str, edit: Edit) -> Trip:
        return await self._run(partial(self._apply, trip_id, edit))

    async def _run(self, work: Callable[[], Result]) -> Result:
        # Not abandoned on cancel: the transaction ends, and then the cancellation goes on.
        return await trio.to_thread.run_sync(work, limiter=self._limiter)

    def _add_if_missing(self, trip: Trip) -> None:
        with self._engine.begin() as connection:
            if connection.scalar(select(_trips.c.id).where(_trips.c.id == trip.id)) is None:
                connection.execute(
                    insert(_trips).values(id=trip.id, title=trip.title, revision=trip.revision)
                )
                _write_parts(connection, trip)

    def _get(self, trip_id: str) -> Trip:
        with self._engine.begin() as connection:
            return _load(connection, trip_id)

    def _apply(self, trip_id: str, edit: Edit) -> Trip:
        with self._engine.connect() as connection, connection.begin() as transaction:
            # Write first: it takes the lock of the row (of the database, for SQLite), so that
            # nobody changes what is read next. A transaction that reads and then writes would
            # lose to every writer in between.
            connection.execute(
                update(_trips).where(_trips.c.id == trip_id).values(revision=_trips.c.revision + 1)
            )
            counted = _load(connection, trip_id)
            changed = edit(counted)
            if changed == counted:
                transaction.rollback()
                return replace(counted, revision=counted.revision - 1)
            connection.execute(
                update(_trips).where(_trips.c.id == trip_id).values(title=changed.title)
            )
            connection.execute(delete(_days).where(_days.c.trip_id == trip_id))
            connection.execute(delete(_places).where(_places.c.trip_id == trip_id))
            _write_parts(connection, changed)
            return changed


def _load(connection: Connection, trip_id: str) -> Trip:
    row = connection.execute(select(_trips).where(_trips.c.id == trip_id)).mappings().first()
    if row is None:
        raise TripNotFound
    days = connection.execute(
        select(_days).where(_days.c.trip_id == trip_id).order_by(_days.c.number)
    ).mappings()
    places = connection.execute(
        select(_places).where(_places.c.trip_id == trip_id).order_by(_places.c.position)
    ).mappings()
    return Trip(
        id=row["id"],
        title=row["title"],
        revision=row["revision"],
        days=tuple(Day(day["number"], known_transport(day["transport"])) for day in days),
        places=tuple(_place(place) for place in places),
    )


def _place(row: Mapping[Any, Any]) -> Place:
    way: str | None = row["transport"]
    return Place(
        row["id"], row["name"], row["day_number"], None if way is None else known_transport(way)
    )


def _write_parts(connection: Connection, trip: Trip) -> None:
    if trip.days:
        connection.execute(
            insert(_days),
            [
                {"trip_id": trip.id, "number": day.number, "transport": day.transport}
                for day in trip.days
            ],
        )
    if trip.places:
        connection.execute(
            insert(_places),
            [
                {
                    "id": place.id,
                    "trip_id": trip.id,
                    "position": position,
                    "name": place.name,
                    "day_number": place.day_number,
                    "transport": place.transport,
                }
                for position, place in enumerate(trip.places)
            ],
        )
