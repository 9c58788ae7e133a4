"""What a trip is: frozen values, how a place is found by name, and the errors of the domain.

```text
TripError(message)                a refusal in words that may be shown to anybody
├── TripNotFound
├── PlaceNotFound
├── AmbiguousPlace  .candidates
├── PlaceExists
├── InvalidName
├── DayNotFound
├── InvalidLeg
└── TripFull
```
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, cast, get_args

from pydantic import JsonValue

from rungent.demo.budget import Budget

__all__ = [
    "TRANSPORTS",
    "AmbiguousPlace",
    "Day",
    "DayNotFound",
    "InvalidLeg",
    "InvalidName",
    "Place",
    "PlaceExists",
    "PlaceNotFound",
    "Transport",
    "Trip",
    "TripError",
    "TripFull",
    "TripNotFound",
    "day_data",
    "describe",
    "known_transport",
    "trip_data",
]

Transport = Literal["walk", "train", "taxi", "bus"]
TRANSPORTS: tuple[str, ...] = get_args(Transport)


class TripError(Exception):
    """A change or a question that the trip refuses. `code` is stable, the message is public.

    Messages never repeat what the caller passed in: it may come from a model, and the message
    goes to the browser.
    """

    code: ClassVar[str] = "trip_error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class TripNotFound(TripError):
    """No trip has this id."""

    code = "trip_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such trip.")


class PlaceNotFound(TripError):
    """No place of the trip has this name."""

    code = "place_not_found"

    def __init__(self) -> None:
        super().__init__("The trip has no place of that name.")


class AmbiguousPlace(TripError):
    """Several places fit; `candidates` are their full names."""

    code = "ambiguous_place"

    def __init__(self, candidates: tuple[str, ...]) -> None:
        super().__init__(f"More than one place fits: {', '.join(candidates)}.")
        self.candidates = candidates


class PlaceExists(TripError):
    """The trip already has a place of this name."""

    code = "place_exists"

    def __init__(self) -> None:
        super().__init__("The trip already has a place of that name.")


class InvalidName(TripError):
    """A name or title that is blank or too long."""

    code = "invalid_name"

    def __init__(self, limit: int) -> None:
        super().__init__(f"A name needs between 1 and {limit} characters.")


class DayNotFound(TripError):
    """The trip has no day with this number; it has `days` days."""

    code = "day_not_found"

    def __init__(self, days: int) -> None:
        counted = "1 day" if days == 1 else f"{days} days"
        super().__init__(f"There is no such day: the trip has {counted}.")


class InvalidLeg(TripError):
    """A transport was given for something that is neither a day nor the way to a planned place."""

    code = "invalid_leg"


class TripFull(TripError):
    """The trip has as many days or places as it may have."""

    code = "trip_full"

    def __init__(self) -> None:
        super().__init__("The trip is full.")


@dataclass(frozen=True, slots=True)
class Place:
    """One place. Without a day it is unplanned.

    `transport` is how one gets there, when that differs from the transport of its day.
    """

    id: str
    name: str
    day_number: int | None = None
    transport: Transport | None = None


@dataclass(frozen=True, slots=True)
class Day:
    """One day, counted from 1, and how one gets around on it."""

    number: int
    transport: Transport = "walk"


@dataclass(frozen=True, slots=True)
class Trip:
    """A trip as it is at one `revision`; every change makes the next one.

    The places of a day are visited in the order in which they stand in `places`.
    """

    id: str
    title: str
    revision: int
    days: tuple[Day, ...] = ()
    places: tuple[Place, ...] = ()
    budget: Budget | None = None

    def day(self, number: int) -> Day:
        """The day with this number. Raises DayNotFound."""
        for day in self.days:
            if day.number == number:
                return day
        raise DayNotFound(len(self.days))

    def places_on(self, day_number: int | None) -> tuple[Place, ...]:
        """The places of a day in order; of the unplanned pool for None."""
        return tuple(place for place in self.places if place.day_number == day_number)

    def find(self, name: str) -> Place:
        """The place that `name` means, whatever its case: by full name, else by a part of it.

        Raises PlaceNotFound, or AmbiguousPlace when the part fits several places.
        """
        wanted = " ".join(name.split()).casefold()
        for place in self.places:
            if place.name.casefold() == wanted:
                return place
        fitting = [place for place in self.places if wanted and wanted in place.name.casefold()]
        if not fitting:
            raise PlaceNotFound
        if len(fitting) > 1:
            raise AmbiguousPlace(tuple(place.name for place in fitting))
        return fitting[0]


def known_transport(value: str) -> Transport:
    """`value` as a transport. Raises ValueError when there is no such transport."""
    if value not in TRANSPORTS:
        raise ValueError(f"unknown transport; known are {', '.join(TRANSPORTS)}")
    return cast("Transport", value)


def day_data(trip: Trip, number: int) -> dict[str, JsonValue]:
    """One day as JSON. Raises DayNotFound."""
    day = trip.day(number)
    places: list[JsonValue] = [
        {"name": place.name, "transport": place.transport or day.transport}
        for place in trip.places_on(number)
    ]
    return {"number": day.number, "transport": day.transport, "places": places}


def trip_data(trip: Trip) -> dict[str, JsonValue]:
    """The whole trip as JSON: for tools, and for the application's own route."""
    budget = trip.budget
    return {
        "id": trip.id,
        "title": trip.title,
        "revision": trip.revision,
        "days": [day_data(trip, day.number) for day in trip.days],
        "unplanned": [place.name for place in trip.places_on(None)],
        "budget": None if budget is None else budget.describe(),
    }


def describe(trip: Trip) -> str:
    """The whole trip as a few lines of text, for a prompt."""
    lines = [f"Trip: {trip.title} (revision {trip.revision})"]
    for day in trip.days:
        names = [_with_way(place) for place in trip.places_on(day.number)]
        lines.append(f"Day {day.number} ({day.transport}): {', '.join(names) or 'nothing yet'}")
    unplanned = ", ".join(place.name for place in trip.places_on(None))
    lines.append(f"Unplanned: {unplanned or 'nothing'}")
    if trip.budget is not None:
        lines.append(f"Budget: {trip.budget.describe()}")
    return "\n".join(lines)


def _with_way(place: Place) -> str:
    return place.name if place.transport is None else f"{place.name} (by {place.transport})"
