"""The trip service on a real SQLite file and in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from sqlalchemy import Engine

from rungent.demo.seed import DEMO_TRIP_ID, demo_trip
from rungent.demo.service import TripService
from rungent.demo.tables import Database, trip_engine
from rungent.demo.trip import PlaceNotFound, TripNotFound


@pytest.fixture(params=["file", "memory"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    engine = trip_engine(tmp_path / "trips.sqlite3" if request.param == "file" else None)
    yield engine
    engine.dispose()


async def opened(engine: Engine) -> TripService:
    database = Database(engine)
    await database.create_schema()
    trips = TripService(database)
    await trips.add_if_missing(demo_trip())
    return trips


async def test_every_change_is_stored_and_makes_one_revision(engine: Engine) -> None:
    trips = await opened(engine)
    changed = [
        await trips.move_place(DEMO_TRIP_ID, "Asakusa Temple", 2),
        await trips.swap_places(DEMO_TRIP_ID, "Tokyo Tower", "Ueno Park"),
        await trips.add_place(DEMO_TRIP_ID, "Meiji Shrine", 1),
        await trips.set_transport(DEMO_TRIP_ID, "taxi", to_place="Meiji Shrine"),
        await trips.set_transport(DEMO_TRIP_ID, "bus", day_number=3),
        await trips.add_day(DEMO_TRIP_ID),
        await trips.rename(DEMO_TRIP_ID, "Tokyo, four days"),
        await trips.remove_place(DEMO_TRIP_ID, "Odaiba Beach"),
        await trips.remove_day(DEMO_TRIP_ID, 2),
    ]
    assert [trip.revision for trip in changed] == list(range(2, 11))
    assert await TripService(Database(engine)).get(DEMO_TRIP_ID) == changed[-1]
    assert await trips.snapshot(DEMO_TRIP_ID) == (
        "Trip: Tokyo, four days (revision 10)\n"
        "Day 1 (walk): Ueno Park, Edo-Tokyo Museum, Meiji Shrine (by taxi)\n"
        "Day 2 (bus): Tokyo Tower, Tsukiji Market\n"
        "Day 3 (walk): nothing yet\n"
        "Unplanned: Shibuya Crossing, Ghibli Museum, Asakusa Temple"
    )
    assert len(await trips.list_places(DEMO_TRIP_ID)) == 8


async def test_a_refused_change_leaves_no_trace(engine: Engine) -> None:
    trips = await opened(engine)
    before = await trips.get(DEMO_TRIP_ID)
    with pytest.raises(PlaceNotFound):
        await trips.move_place(DEMO_TRIP_ID, "Atlantis", 1)
    assert await trips.get(DEMO_TRIP_ID) == before


async def test_a_change_that_changes_nothing_makes_no_revision(engine: Engine) -> None:
    trips = await opened(engine)
    assert await trips.move_place(DEMO_TRIP_ID, "Asakusa Temple", 1) == demo_trip()
    assert await trips.get(DEMO_TRIP_ID) == demo_trip()


async def test_an_unknown_trip_is_refused(engine: Engine) -> None:
    trips = await opened(engine)
    with pytest.raises(TripNotFound):
        await trips.get("elsewhere")
    with pytest.raises(TripNotFound):
        await trips.add_day("elsewhere")


async def test_the_demo_trip_is_seeded_once(engine: Engine) -> None:
    trips = await opened(engine)
    await trips.add_day(DEMO_TRIP_ID)
    trips = await opened(engine)
    assert len((await trips.get(DEMO_TRIP_ID)).days) == 4


async def test_changes_at_once_are_all_kept(tmp_path: Path) -> None:
    """Two services stand for two processes: each has its own limiter and its own connection."""
    engines = [trip_engine(tmp_path / "trips.sqlite3") for _ in range(2)]
    services = [await opened(engine) for engine in engines]
    async with trio.open_nursery() as nursery:
        for n in range(10):
            nursery.start_soon(services[n % 2].add_place, DEMO_TRIP_ID, f"Place {n}", 1 + n % 3)
    trip = await services[0].get(DEMO_TRIP_ID)
    assert trip.revision == 11
    assert len(trip.places) == 18
    for engine in engines:
        engine.dispose()


async def test_a_cancelled_caller_leaves_all_of_a_change_or_nothing(engine: Engine) -> None:
    trips = await opened(engine)
    with trio.CancelScope() as scope:
        scope.cancel()
        await trips.swap_places(DEMO_TRIP_ID, "Tokyo Tower", "Ueno Park")
    assert await trips.get(DEMO_TRIP_ID) == demo_trip()
