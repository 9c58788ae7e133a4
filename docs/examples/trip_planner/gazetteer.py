"""Places of Tokyo that the example knows, with their coordinates. It stands for a map service."""

from __future__ import annotations

__all__ = ["Coordinates", "coordinates", "known_name"]

Coordinates = tuple[float, float]

_PLACES: dict[str, Coordinates] = {
    "Asakusa Temple": (35.7148, 139.7967),
    "Tokyo Tower": (35.6586, 139.7454),
    "Edo-Tokyo Museum": (35.6966, 139.7957),
    "Shibuya Crossing": (35.6595, 139.7005),
    "Ghibli Museum": (35.6962, 139.5704),
    "Ueno Park": (35.7141, 139.7741),
    "Tsukiji Market": (35.6655, 139.7707),
    "Odaiba Beach": (35.6298, 139.7757),
    "Meiji Shrine": (35.6764, 139.6993),
    "Tokyo Skytree": (35.7101, 139.8107),
    "Imperial Palace": (35.6852, 139.7528),
    "Yanaka Ginza": (35.7278, 139.7660),
    "Shinjuku Gyoen": (35.6852, 139.7100),
}
_BY_NAME = {name.casefold(): name for name in _PLACES}


def known_name(text: str) -> str | None:
    """The full name of a known place, whatever the case of `text`; None for any other."""
    return _BY_NAME.get(" ".join(text.split()).casefold())


def coordinates(name: str) -> Coordinates | None:
    """Latitude and longitude in degrees, None for an unknown place."""
    known = known_name(name)
    return None if known is None else _PLACES[known]
