"""A staged import: what the itinerary means for the trip, before anything is changed. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from rungent.demo import edits
from rungent.demo.gazetteer import known_name
from rungent.demo.itinerary import ItineraryDay
from rungent.demo.trip import AmbiguousPlace, Place, PlaceNotFound, Trip, TripError

__all__ = [
    "Diff",
    "Draft",
    "DraftNotFound",
    "DraftNotReady",
    "Entry",
    "NothingToImport",
    "RevisionConflict",
    "compare",
    "imported",
    "stage",
]


class NothingToImport(TripError):
    """The text holds no days with places."""

    code = "nothing_to_import"

    def __init__(self) -> None:
        super().__init__("The text holds no itinerary: lines such as “Day 1: …” are missing.")


class DraftNotFound(TripError):
    """The trip has no such draft, or it has no such open line."""

    code = "draft_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such import, or that question is settled.")


class DraftNotReady(TripError):
    """Lines of the draft are still open."""

    code = "draft_not_ready"

    def __init__(self) -> None:
        super().__init__("Some lines of the itinerary are still unclear.")


class RevisionConflict(TripError):
    """The trip is not at the revision for which the import was prepared."""

    code = "revision_conflict"

    def __init__(self) -> None:
        super().__init__(
            "The trip was changed after the import was prepared, so nothing was imported. "
            "Paste the itinerary again."
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """One name of the itinerary. `name` is the place that it means, None when it is left out.

    An open entry waits for the traveller: it fits several `candidates`, or no place at all.
    """

    day_number: int
    text: str
    name: str | None = None
    open: bool = False
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A stored import of one trip, made for one revision of it."""

    id: str
    trip_id: str
    revision: int
    entries: tuple[Entry, ...]
    committed: bool = False

    def next_open(self) -> int | None:
        """The index of the first open entry, None when everything is clear."""
        return next((n for n, entry in enumerate(self.entries) if entry.open), None)


@dataclass(frozen=True, slots=True)
class Diff:
    """What an import does to a trip."""

    days_added: int
    added: tuple[Place, ...]
    moved: tuple[tuple[Place, int | None], ...]
    left_out: tuple[str, ...]

    def data(self) -> dict[str, JsonValue]:
        """As JSON, for model and frontend."""
        return {
            "days_added": self.days_added,
            "added": [{"name": place.name, "day_number": place.day_number} for place in self.added],
            "moved": [
                {"name": place.name, "from_day": before, "to_day": place.day_number}
                for place, before in self.moved
            ],
            "left_out": list(self.left_out),
        }

    def describe(self) -> str:
        """As a few lines, for the traveller."""
        lines = [f"+ {_count(self.days_added, 'day')}"] if self.days_added else []
        lines += [f"+ {place.name} (day {place.day_number})" for place in self.added]
        lines += [
            f"~ {place.name}: {_seat(before)} → {_seat(place.day_number)}"
            for place, before in self.moved
        ]
        lines += [f"- left out: {text}" for text in self.left_out]
        return "\n".join(lines) or "Nothing changes."

    def summary(self) -> str:
        """As part of a sentence."""
        return (
            f"{_count(len(self.moved), 'place')} moved, {_count(len(self.added), 'place')} added, "
            f"{_count(self.days_added, 'day')} added"
        )


def stage(trip: Trip, days: Sequence[ItineraryDay]) -> tuple[Entry, ...]:
    """Read the names of an itinerary against the trip. Raises NothingToImport."""
    entries = tuple(_entry(trip, day.number, text) for day in days for text in day.names)
    if not entries:
        raise NothingToImport
    return entries


def _entry(trip: Trip, day_number: int, text: str) -> Entry:
    try:
        return Entry(day_number, text, trip.find(text).name)
    except AmbiguousPlace as several:
        return Entry(day_number, text, open=True, candidates=several.candidates)
    except PlaceNotFound:
        known = known_name(text)
        return Entry(day_number, text, known, open=known is None)


def imported(trip: Trip, entries: Sequence[Entry], new_id: Callable[[], str]) -> Trip:
    """The trip with every settled entry on its day, in the order of the itinerary.

    Places that the itinerary does not name stay where they are. A place that it names twice
    counts once, on its first day. Raises TripFull, InvalidName.
    """
    settled: dict[str, Entry] = {}
    for entry in entries:
        if entry.name is not None:
            settled.setdefault(entry.name.casefold(), entry)
    for entry in settled.values():
        while entry.day_number > len(trip.days):
            trip = edits.add_day(trip)
        trip = _placed(trip, entry, new_id)
    return trip


def _placed(trip: Trip, entry: Entry, new_id: Callable[[], str]) -> Trip:
    name, day_number = entry.name or "", entry.day_number
    same = [place for place in trip.places if place.name.casefold() == name.casefold()]
    if not same:
        return edits.add_place(trip, new_id(), name, day_number)
    place = same[0]
    if place.day_number != day_number:
        place = replace(place, day_number=day_number, transport=None)
    others = tuple(other for other in trip.places if other is not same[0])
    return replace(trip, places=(*others, place))


def compare(trip: Trip, entries: Sequence[Entry]) -> Diff:
    """What importing these entries would do to the trip."""
    after = imported(trip, entries, lambda: "")
    before = {place.id: place for place in trip.places}
    return Diff(
        days_added=len(after.days) - len(trip.days),
        added=tuple(place for place in after.places if place.id not in before),
        moved=tuple(
            (place, before[place.id].day_number)
            for place in after.places
            if place.id in before and before[place.id].day_number != place.day_number
        ),
        left_out=tuple(entry.text for entry in entries if entry.name is None and not entry.open),
    )


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"


def _seat(day_number: int | None) -> str:
    return "unplanned" if day_number is None else f"day {day_number}"
