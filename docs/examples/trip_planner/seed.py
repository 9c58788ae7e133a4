"""The trip that every demo database begins with."""

from __future__ import annotations

from rungent.demo.trip import Day, Place, Trip

__all__ = ["DEMO_TRIP_ID", "demo_trip"]

DEMO_TRIP_ID = "tokyo"


def demo_trip() -> Trip:
    """Three days in Tokyo, with two museums, so that "the museum" is ambiguous."""
    planned: list[tuple[str, int | None]] = [
        ("Asakusa Temple", 1),
        ("Tokyo Tower", 1),
        ("Edo-Tokyo Museum", 1),
        ("Shibuya Crossing", 2),
        ("Ghibli Museum", 2),
        ("Ueno Park", 3),
        ("Tsukiji Market", 3),
        ("Odaiba Beach", None),
    ]
    return Trip(
        id=DEMO_TRIP_ID,
        title="Tokyo, three days",
        revision=1,
        days=(Day(1), Day(2, "train"), Day(3)),
        places=tuple(Place(f"{DEMO_TRIP_ID}-{n}", *seat) for n, seat in enumerate(planned, 1)),
    )
