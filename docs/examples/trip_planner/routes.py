"""The shortest way through the places of a day. Pure; distances as the crow flies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, permutations

from rungent.demo.gazetteer import coordinates
from rungent.demo.trip import Place, Trip

__all__ = ["WORTHWHILE", "DayRoute", "optimised", "route_of"]

WORTHWHILE = 3
"""With fewer places than these a day has only one order, as the first place stays first."""

# 7! orders are compared in a moment; above that, always going on to the nearest place will do.
_EXHAUSTIVE = 8
_EARTH_KM = 6371.0


@dataclass(frozen=True, slots=True)
class DayRoute:
    """The best order found for a day, and its length before and after."""

    day_number: int
    order: tuple[str, ...]
    before_km: float
    after_km: float

    def describe(self) -> str:
        """One line, for the traveller."""
        if self.after_km >= self.before_km:
            return f"Day {self.day_number} is as short as it gets ({self.before_km:.1f} km)."
        return f"Day {self.day_number}: {self.after_km:.1f} km instead of {self.before_km:.1f} km."


def route_of(trip: Trip, day_number: int) -> DayRoute:
    """The shortest order of a day that begins where it begins now. Raises DayNotFound.

    Places without known coordinates stay at the end, in their order.
    """
    trip.day(day_number)
    names = [place.name for place in trip.places_on(day_number)]
    located = [name for name in names if coordinates(name) is not None]
    best = _shortest(located)
    before, after = _length(located), _length(best)
    # An order that is only as good is no reason to change the plan.
    order = located if after >= before else best
    rest = [name for name in names if coordinates(name) is None]
    return DayRoute(day_number, (*order, *rest), before, min(before, after))


def optimised(trip: Trip, routes: Sequence[DayRoute]) -> Trip:
    """The trip with the places of these days in the order of their routes."""
    places = list(trip.places)
    for route in routes:
        if route.after_km >= route.before_km:
            continue
        seats = [n for n, place in enumerate(places) if place.day_number == route.day_number]
        by_name = {places[n].name: places[n] for n in seats}
        for seat, name in zip(seats, route.order, strict=True):
            places[seat] = _from_anywhere(by_name[name])
    return replace(trip, places=tuple(places))


def _from_anywhere(place: Place) -> Place:
    # How one got there belonged to the place before it.
    return replace(place, transport=None)


def _shortest(names: Sequence[str]) -> tuple[str, ...]:
    if len(names) < WORTHWHILE:
        return tuple(names)
    first, rest = names[0], names[1:]
    if len(names) <= _EXHAUSTIVE:
        return min(((first, *order) for order in permutations(rest)), key=_length)
    way, left = [first], list(rest)
    while left:
        way.append(min(left, key=lambda name: _distance(way[-1], name)))
        left.remove(way[-1])
    return tuple(way)


def _length(names: Sequence[str]) -> float:
    return sum(_distance(here, there) for here, there in pairwise(names))


def _distance(here: str, there: str) -> float:
    """Kilometres on a sphere."""
    start, end = coordinates(here), coordinates(there)
    assert start is not None
    assert end is not None
    (lat1, lon1), (lat2, lon2) = map(math.radians, start), map(math.radians, end)
    half = (
        math.sin((lat2 - lat1) / 2) ** 2
        + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    )
    return 2 * _EARTH_KM * math.asin(math.sqrt(half))
