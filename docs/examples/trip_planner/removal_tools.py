"""Removing days and places: nothing is removed before a person has approved its impact.

The preview is read from the database when the question is asked, so it cannot be a guess of the
model. A preview that refuses leaves nothing to approve, and nothing is asked.
"""

from __future__ import annotations

from rungent import ToolContext, ToolResult, tool
from rungent.demo.access import DayNumber, PlaceName, changed, services, trip_id
from rungent.demo.trip import Trip

__all__ = ["remove_day", "remove_place"]


async def preview_day(ctx: ToolContext, day_number: int) -> str:
    """What deleting the day would do. Raises TripError."""
    trip = await services(ctx).trips.get(trip_id(ctx))
    trip.day(day_number)
    names = [place.name for place in trip.places_on(day_number)]
    later = len(trip.days) - day_number
    text = f"Delete day {day_number}?"
    if not names:
        text = f"{text} No place is planned on it."
    else:
        text = f"{text} {_counted(len(names), 'place')} unplanned: {', '.join(names)}."
    return f"{text} {_counted(later, 'later day', 'moves up', 'move up')}." if later else text


async def preview_place(ctx: ToolContext, name: str) -> str:
    """What removing the place would do. Raises TripError."""
    trip = await services(ctx).trips.get(trip_id(ctx))
    place = trip.find(name)
    seat = "is unplanned" if place.day_number is None else f"is planned for day {place.day_number}"
    return f"Remove {place.name} from the trip? It {seat}, and cannot be brought back."


@tool(effect="destructive", approval="always", title="Delete day", confirmation=preview_day)
async def remove_day(ctx: ToolContext, day_number: DayNumber) -> ToolResult:
    """Delete a day. Its places become unplanned and later days move up. The user is asked."""
    change = services(ctx).trips.remove_day(trip_id(ctx), day_number)
    return await changed(change, lambda _: f"Deleted day {day_number}; its places are unplanned.")


@tool(effect="destructive", approval="always", confirmation=preview_place)
async def remove_place(ctx: ToolContext, name: PlaceName) -> ToolResult:
    """Remove a place from the trip altogether. Give its full name. The user is asked."""
    removed: list[str] = []

    async def change() -> Trip:
        trips = services(ctx).trips
        removed.append((await trips.get(trip_id(ctx))).find(name).name)
        return await trips.remove_place(trip_id(ctx), removed[0])

    return await changed(change(), lambda _: f"Removed {removed[0]}.")


def _counted(number: int, noun: str, one: str = "becomes", many: str = "become") -> str:
    return f"1 {noun} {one}" if number == 1 else f"{number} {noun}s {many}"
