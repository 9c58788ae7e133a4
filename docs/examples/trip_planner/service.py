"""The trip service: every change of a trip as one transaction.

A host would have this code already, with or without an assistant.
"""

from __future__ import annotations

import uuid
from functools import partial

from rungent.demo import edits
from rungent.demo.budget import Budget
from rungent.demo.tables import Database
from rungent.demo.trip import Place, Transport, Trip, describe
from rungent.demo.trip_rows import Edit, change_trip, insert_trip, load_trip

__all__ = ["TripService"]


class TripService:
    """Trips of one database. Every method is one transaction: it happened, or it did not.

    Changes return the trip as it is afterwards; a change that changes nothing leaves the
    revision as it was. A cancelled caller never leaves a change half done.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_if_missing(self, trip: Trip) -> None:
        """Store a trip unless its id is taken."""
        await self._database.transaction(partial(insert_trip, trip=trip))

    async def get(self, trip_id: str) -> Trip:
        """The trip as it is now. Raises TripNotFound."""
        return await self._database.transaction(partial(load_trip, trip_id=trip_id))

    async def snapshot(self, trip_id: str) -> str:
        """The trip as text, for a prompt. Raises TripNotFound."""
        return describe(await self.get(trip_id))

    async def list_places(self, trip_id: str) -> tuple[Place, ...]:
        """All places, planned or not. Raises TripNotFound."""
        return (await self.get(trip_id)).places

    async def rename(self, trip_id: str, title: str) -> Trip:
        """Give the trip another title."""
        return await self._change(trip_id, lambda trip: edits.rename(trip, title))

    async def set_budget(self, trip_id: str, budget: Budget) -> Trip:
        """Say what the trip may cost."""
        return await self._change(trip_id, lambda trip: edits.set_budget(trip, budget))

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
        return await self._database.transaction(partial(change_trip, trip_id=trip_id, edit=edit))
