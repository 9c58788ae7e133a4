"""Import drafts in a table of their own: prepared, completed by answers, committed at once."""

from __future__ import annotations

import uuid
from dataclasses import asdict, replace
from functools import partial

from sqlalchemy import Connection, insert, select, update

from rungent.demo.drafts import (
    Draft,
    DraftNotFound,
    DraftNotReady,
    Entry,
    RevisionConflict,
    imported,
    stage,
)
from rungent.demo.itinerary import read_itinerary
from rungent.demo.tables import DRAFTS, Database
from rungent.demo.trip import Trip
from rungent.demo.trip_rows import change_trip, load_trip

__all__ = ["ImportService"]


class ImportService:
    """Drafts of one database. Every method is one transaction; all raise TripNotFound.

    Each may be repeated: the same step once more has no second effect.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def prepare(self, trip_id: str, draft_id: str, text: str) -> tuple[Draft, Trip]:
        """Stage an itinerary for the trip as it is now. Raises NothingToImport."""
        return await self._database.transaction(partial(_prepare, trip_id, draft_id, text))

    async def get(self, trip_id: str, draft_id: str) -> tuple[Draft, Trip]:
        """A draft and the trip as it is now. Raises DraftNotFound."""
        return await self._database.transaction(partial(_get, trip_id, draft_id))

    async def settle(
        self, trip_id: str, draft_id: str, index: int, name: str | None
    ) -> tuple[Draft, Trip]:
        """Settle one entry with the place that it means, or None to leave it out.

        Raises DraftNotFound, also for a draft that is committed.
        """
        return await self._database.transaction(partial(_settle, trip_id, draft_id, index, name))

    async def commit(self, trip_id: str, draft_id: str, expected_revision: int) -> Trip:
        """Apply the whole draft as one revision.

        Raises RevisionConflict unless the trip is still at `expected_revision` and the draft
        was made for it; DraftNotFound, DraftNotReady, TripFull. Then nothing has changed.
        """
        return await self._database.transaction(
            partial(_commit, trip_id, draft_id, expected_revision)
        )


def _prepare(trip_id: str, draft_id: str, text: str, connection: Connection) -> tuple[Draft, Trip]:
    trip = load_trip(connection, trip_id)
    draft = _load(connection, trip_id, draft_id)
    if draft is None:
        draft = Draft(draft_id, trip_id, trip.revision, stage(trip, read_itinerary(text)))
        # Refused now rather than after all the questions.
        imported(trip, draft.entries, lambda: "")
        connection.execute(
            insert(DRAFTS).values(
                id=draft_id,
                trip_id=trip_id,
                revision=draft.revision,
                state="open",
                entries=[asdict(entry) for entry in draft.entries],
            )
        )
    return draft, trip


def _get(trip_id: str, draft_id: str, connection: Connection) -> tuple[Draft, Trip]:
    trip = load_trip(connection, trip_id)
    draft = _load(connection, trip_id, draft_id)
    if draft is None:
        raise DraftNotFound
    return draft, trip


def _settle(
    trip_id: str, draft_id: str, index: int, name: str | None, connection: Connection
) -> tuple[Draft, Trip]:
    draft, trip = _get(trip_id, draft_id, connection)
    if draft.committed or not 0 <= index < len(draft.entries):
        raise DraftNotFound
    settled = replace(draft.entries[index], name=name, open=False)
    entries = (*draft.entries[:index], settled, *draft.entries[index + 1 :])
    connection.execute(
        update(DRAFTS)
        .where(DRAFTS.c.id == draft_id)
        .values(entries=[asdict(entry) for entry in entries])
    )
    return replace(draft, entries=entries), trip


def _commit(trip_id: str, draft_id: str, expected: int, connection: Connection) -> Trip:
    draft, trip = _get(trip_id, draft_id, connection)
    if draft.committed:
        return trip
    if draft.next_open() is not None:
        raise DraftNotReady

    def apply(current: Trip) -> Trip:
        if not current.revision == expected == draft.revision:
            raise RevisionConflict
        return imported(current, draft.entries, lambda: uuid.uuid4().hex)

    changed = change_trip(connection, trip_id, apply)
    connection.execute(update(DRAFTS).where(DRAFTS.c.id == draft_id).values(state="committed"))
    return changed


def _load(connection: Connection, trip_id: str, draft_id: str) -> Draft | None:
    row = (
        connection.execute(
            select(DRAFTS).where(DRAFTS.c.id == draft_id, DRAFTS.c.trip_id == trip_id)
        )
        .mappings()
        .first()
    )
    if row is None:
        return None
    entries = tuple(
        Entry(
            entry["day_number"],
            entry["text"],
            entry["name"],
            entry["open"],
            tuple(entry["candidates"]),
        )
        for entry in row["entries"]
    )
    return Draft(row["id"], trip_id, row["revision"], entries, row["state"] == "committed")
