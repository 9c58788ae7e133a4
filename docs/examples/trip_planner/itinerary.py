"""Recognising and reading a pasted itinerary: days with the names of places, nothing else.

Pure, and deliberately strict: what is no obvious itinerary is left to the model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rungent.demo.edits import NAME_LIMIT

__all__ = ["ItineraryDay", "looks_like_itinerary", "read_itinerary"]

_MARKUP = r"[\s#*_>-]*"
_HEADER = re.compile(
    rf"{_MARKUP}day\s*(?P<day>\d{{1,2}})(?:\s*\([^)]*\))?[\s*_]*(?:[:\u2013\u2014-](?P<rest>.*))?",
    re.IGNORECASE,
)
_BULLET = re.compile(r"\s*[-*\u2022]\s+(?P<rest>.+)")
_SEPARATOR = re.compile(r"[,;]|\u2192|->")
_TIME = re.compile(r"^\d{1,2}[:.]\d{2}(?:\s*[-\u2013]\s*\d{1,2}[:.]\d{2})?\s*(?:[:\u2013-]\s*)?")
_ARTICLE = re.compile(r"^the ", re.IGNORECASE)
_DAYS_THAT_SHOW_INTENT = 2
# What nobody can review is no itinerary either.
_ENTRIES_LIMIT = 60


@dataclass(frozen=True, slots=True)
class ItineraryDay:
    """A day of the itinerary and the names on it, as they were written."""

    number: int
    names: tuple[str, ...]


def looks_like_itinerary(text: str) -> bool:
    """Whether `text` has several lines that begin a day, and names under them."""
    days = read_itinerary(text)
    return len(days) >= _DAYS_THAT_SHOW_INTENT and any(day.names for day in days)


def read_itinerary(text: str) -> tuple[ItineraryDay, ...]:
    """The days in order of their numbers; `()` when there are none.

    Names stand behind the heading of a day, separated by commas or arrows, or in bullets below
    it. Every other line is talk, and left out.
    """
    days: dict[int, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        if (header := _HEADER.fullmatch(line)) and int(header["day"]) > 0:
            current = days.setdefault(int(header["day"]), [])
            current += _names(header["rest"] or "")
        elif current is not None and (bullet := _BULLET.fullmatch(line)):
            current += _names(bullet["rest"])
    if sum(map(len, days.values())) > _ENTRIES_LIMIT:
        return ()
    return tuple(ItineraryDay(number, tuple(days[number])) for number in sorted(days))


def _names(text: str) -> list[str]:
    parts = (_TIME.sub("", part.strip(" \t*_.")) for part in _SEPARATOR.split(text))
    names = (_ARTICLE.sub("", " ".join(part.split()))[:NAME_LIMIT].strip() for part in parts)
    return [name for name in names if name]
