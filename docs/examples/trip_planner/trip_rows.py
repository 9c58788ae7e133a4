"""Trips as rows: how one is read, stored and changed inside a transaction of the caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from rungent.demo.budget import Budget
from rungent.demo.tables import BUDGETS, DAYS, PLACES, TRIPS
from rungent.demo.trip import Day, Place, Trip, TripNotFound, known_transport

__all__ = ["Edit", "change_trip", "insert_trip", "load_trip"]

Edit = Callable[[Trip], Trip]


def load_trip(connection: Connection, trip_id: str) -> Trip:
    """The trip as it is now. Raises TripNotFound."""
    row = connection.execute(select(TRIPS).where(TRIPS.c.id == trip_id)).mappings().first()
    if row is None:
        raise TripNotFound
    days = connection.execute(
        select(DAYS).where(DAYS.c.trip_id == trip_id).order_by(DAYS.c.number)
    ).mappings()
    places = connection.execute(
        select(PLACES).where(PLACES.c.trip_id == trip_id).order_by(PLACES.c.position)
    ).mappings()
    kept = select(BUDGETS).where(BUDGETS.c.trip_id == trip_id)
    budget = connection.execute(kept).mappings().first()
    return Trip(
        id=row["id"],
        title=row["title"],
        revision=row["revision"],
        days=tuple(Day(day["number"], known_transport(day["transport"])) for day in days),
        places=tuple(_place(place) for place in places),
        budget=None if budget is None else Budget.model_validate(dict(budget)),
    )


def insert_trip(connection: Connection, trip: Trip) -> None:
    """Store a trip unless its id is taken."""
    if connection.scalar(select(TRIPS.c.id).where(TRIPS.c.id == trip.id)) is None:
        connection.execute(
            insert(TRIPS).values(id=trip.id, title=trip.title, revision=trip.revision)
        )
        _write_parts(connection, trip)


def change_trip(connection: Connection, trip_id: str, edit: Edit) -> Trip:
    """Apply an edit as the next revision; an edit that changes nothing makes none.

    `edit` sees the trip as it is and cannot be overtaken: nobody else changes it before this
    transaction ends.
    """
    # Write first: it takes the lock of the row (of the database, for SQLite). A transaction
    # that reads and then writes would lose to every writer in between.
    _count(connection, trip_id, 1)
    locked = load_trip(connection, trip_id)
    before = replace(locked, revision=locked.revision - 1)
    changed = edit(before)
    if changed == before:
        _count(connection, trip_id, -1)
        return before
    connection.execute(update(TRIPS).where(TRIPS.c.id == trip_id).values(title=changed.title))
    connection.execute(delete(DAYS).where(DAYS.c.trip_id == trip_id))
    connection.execute(delete(PLACES).where(PLACES.c.trip_id == trip_id))
    connection.execute(delete(BUDGETS).where(BUDGETS.c.trip_id == trip_id))
    _write_parts(connection, changed)
    return replace(changed, revision=locked.revision)


def _count(connection: Connection, trip_id: str, by: int) -> None:
    connection.execute(
        update(TRIPS).where(TRIPS.c.id == trip_id).values(revision=TRIPS.c.revision + by)
    )


def _place(row: Mapping[Any, Any]) -> Place:
    way: str | None = row["transport"]
    return Place(
        row["id"], row["name"], row["day_number"], None if way is None else known_transport(way)
    )


def _write_parts(connection: Connection, trip: Trip) -> None:
    if trip.days:
        connection.execute(
            insert(DAYS),
            [
                {"trip_id": trip.id, "number": day.number, "transport": day.transport}
                for day in trip.days
            ],
        )
    if trip.places:
        connection.execute(
            insert(PLACES),
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
    if trip.budget is not None:
        connection.execute(insert(BUDGETS).values(trip_id=trip.id, **trip.budget.model_dump()))
