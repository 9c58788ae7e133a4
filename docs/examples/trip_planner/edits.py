"""Changes of a trip as plain functions: the trip as it is in, the trip as it becomes out.

None of them touches the revision; the service counts. An edit that changes nothing returns an
equal trip. All raise the errors of `rungent.demo.trip` and then nothing has happened.
"""

from __future__ import annotations

from dataclasses import replace

from rungent.demo.budget import Budget
from rungent.demo.trip import (
    Day,
    InvalidLeg,
    InvalidName,
    Place,
    PlaceExists,
    Transport,
    Trip,
    TripFull,
)

__all__ = [
    "NAME_LIMIT",
    "TITLE_LIMIT",
    "add_day",
    "add_place",
    "move_place",
    "remove_day",
    "remove_place",
    "rename",
    "set_budget",
    "set_transport",
    "swap_places",
]

NAME_LIMIT = 100
TITLE_LIMIT = 200
# A model in a loop must not be able to fill the table.
MAX_DAYS = 30
MAX_PLACES = 200


def rename(trip: Trip, title: str) -> Trip:
    """Give the trip another title. Raises InvalidName."""
    return replace(trip, title=_one_line(title, TITLE_LIMIT))


def set_budget(trip: Trip, budget: Budget) -> Trip:
    """Say what the trip may cost."""
    return replace(trip, budget=budget)


def add_day(trip: Trip) -> Trip:
    """Append an empty day. Raises TripFull."""
    if len(trip.days) >= MAX_DAYS:
        raise TripFull
    return replace(trip, days=(*trip.days, Day(len(trip.days) + 1)))


def remove_day(trip: Trip, number: int) -> Trip:
    """Take a day out: its places become unplanned and later days move up. Raises DayNotFound."""
    trip.day(number)
    days = tuple(
        replace(day, number=day.number - 1) if day.number > number else day
        for day in trip.days
        if day.number != number
    )
    return replace(
        trip, days=days, places=tuple(_without_day(place, number) for place in trip.places)
    )


def _without_day(place: Place, removed: int) -> Place:
    if place.day_number is None or place.day_number < removed:
        return place
    if place.day_number == removed:
        return replace(place, day_number=None, transport=None)
    return replace(place, day_number=place.day_number - 1)


def add_place(trip: Trip, place_id: str, name: str, day_number: int | None) -> Trip:
    """Add a place at the end of a day, or unplanned.

    Raises InvalidName, PlaceExists, DayNotFound, TripFull.
    """
    name = _one_line(name, NAME_LIMIT)
    if any(place.name.casefold() == name.casefold() for place in trip.places):
        raise PlaceExists
    if len(trip.places) >= MAX_PLACES:
        raise TripFull
    if day_number is not None:
        trip.day(day_number)
    return replace(trip, places=(*trip.places, Place(place_id, name, day_number)))


def remove_place(trip: Trip, name: str) -> Trip:
    """Take a place out of the trip. Raises PlaceNotFound, AmbiguousPlace."""
    removed = trip.find(name)
    return replace(trip, places=tuple(place for place in trip.places if place is not removed))


def move_place(trip: Trip, name: str, day_number: int | None) -> Trip:
    """Move a place to the end of a day, or to the unplanned pool for None.

    A place that is there already stays where it stands.
    Raises PlaceNotFound, AmbiguousPlace, DayNotFound.
    """
    moved = trip.find(name)
    if day_number is not None:
        trip.day(day_number)
    if moved.day_number == day_number:
        return trip
    others = tuple(place for place in trip.places if place is not moved)
    # How one got there belonged to the old place in the day.
    return replace(trip, places=(*others, replace(moved, day_number=day_number, transport=None)))


def swap_places(trip: Trip, first: str, second: str) -> Trip:
    """Let two places change seats: day, order within the day, and the way there.

    Raises PlaceNotFound, AmbiguousPlace.
    """
    one, other = trip.find(first), trip.find(second)
    seats = {
        one.id: replace(other, day_number=one.day_number, transport=one.transport),
        other.id: replace(one, day_number=other.day_number, transport=other.transport),
    }
    return replace(trip, places=tuple(seats.get(place.id, place) for place in trip.places))


def set_transport(
    trip: Trip, mode: Transport, *, day_number: int | None = None, to_place: str | None = None
) -> Trip:
    """Set the transport of a whole day, or of the way to one place; name exactly one of them.

    A whole day includes the ways that had a transport of their own.
    Raises InvalidLeg, DayNotFound, PlaceNotFound, AmbiguousPlace.
    """
    if (day_number is None) == (to_place is None):
        raise InvalidLeg("Say either a day or a place to go to.")
    if to_place is not None:
        return _set_way(trip, mode, trip.find(to_place))
    trip.day(day_number or 0)
    return replace(
        trip,
        days=tuple(
            replace(day, transport=mode) if day.number == day_number else day for day in trip.days
        ),
        places=tuple(
            replace(place, transport=None) if place.day_number == day_number else place
            for place in trip.places
        ),
    )


def _set_way(trip: Trip, mode: Transport, goal: Place) -> Trip:
    if goal.day_number is None:
        raise InvalidLeg("The place is not planned for any day yet.")
    # The transport of the day is the default, and a default is not written down twice.
    own = None if trip.day(goal.day_number).transport == mode else mode
    return replace(
        trip,
        places=tuple(
            replace(place, transport=own) if place is goal else place for place in trip.places
        ),
    )


def _one_line(text: str, limit: int) -> str:
    """`text` on one line: names stand in prompts, where a line break could pose as structure."""
    text = " ".join(text.split())
    if not 1 <= len(text) <= limit:
        raise InvalidName(limit)
    return text
