"""A run that does everything is hit at every write and every await, and keeps every promise."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from rungent.store import MemoryStore, Store
from rungent.testing.clock import virtual_now
from rungent.testing.faults import Fault, Played, Point, crash_points, play, rehearse
from tests.helpers import START
from tests.persistence.stores import open_store, opened, sql_store
from tests.recovery.agent import ONCE
from tests.recovery.journey import CancelledJourney, Journey, check, check_cancelled

VIRTUAL = ["memory", "inline"]
REAL = ["sqlite", "aiosqlite", "psycopg", "asyncpg"]
AT_WRITES = [Fault.CRASH_BEFORE, Fault.CRASH_AFTER]
HEALED = [Fault.LOST_REPLY, Fault.ERROR, Fault.STALL]
COUPLES = 60


@asynccontextmanager
async def virtual_store(kind: str, folder: Path) -> AsyncIterator[Store]:
    if kind == "memory":
        yield MemoryStore()
        return
    async with opened(sql_store("inline", folder)) as store:
        yield store


def journeys(store: Store) -> Callable[[], Awaitable[Journey]]:
    """Journeys in virtual time, all over one store."""

    async def make() -> Journey:
        # The order in which trio runs its tasks is the same in every play.
        trio._core._run._r.seed(1)  # pyright: ignore
        return await Journey.begin(store, virtual_now(START))

    return make


async def verify(
    played: Played[Journey], keeps: Callable[[Journey], Awaitable[None]] = check
) -> None:
    """Check a play; a failure names where it was hit."""
    try:
        assert played.hit
        await keeps(played.scenario)
    except AssertionError as broken:
        broken.add_note(" and then ".join(str(point) for point in played.points))
        raise


async def hit_everywhere(make: Callable[[], Awaitable[Journey]], *faults: Fault) -> int:
    """Verify a play for each point; returns how many points there were."""
    count = 0
    async for played in crash_points(make, *faults):
        await verify(played)
        count += 1
    return count


async def test_a_journey_without_faults_does_everything_once(autojump_clock: MockClock) -> None:
    played = await rehearse(journeys(MemoryStore()))
    await verify(played)
    assert all(len(played.scenario.done[name]) == 1 for name in ONCE)
    assert len(played.writes) >= 29
    assert played.steps >= 200


@pytest.mark.parametrize("kind", VIRTUAL)
@pytest.mark.parametrize("fault", AT_WRITES + HEALED)
async def test_a_run_that_is_hit_at_any_write_keeps_every_promise(
    autojump_clock: MockClock, tmp_path: Path, kind: str, fault: Fault
) -> None:
    async with virtual_store(kind, tmp_path) as store:
        assert await hit_everywhere(journeys(store), fault) >= 29


@pytest.mark.parametrize("kind", VIRTUAL)
async def test_a_run_whose_worker_crashes_at_any_await_keeps_every_promise(
    autojump_clock: MockClock, tmp_path: Path, kind: str
) -> None:
    async with virtual_store(kind, tmp_path) as store:
        assert await hit_everywhere(journeys(store), Fault.CRASH_IN_STEP) >= 200


@pytest.mark.parametrize("fault", list(Fault))
async def test_a_cancelled_run_that_is_hit_anywhere_ends_once(
    autojump_clock: MockClock, fault: Fault
) -> None:
    async def make() -> Journey:
        trio._core._run._r.seed(1)  # pyright: ignore
        return await CancelledJourney.begin(MemoryStore(), virtual_now(START))

    async for played in crash_points(make, fault):
        await verify(played, check_cancelled)


@pytest.mark.parametrize("seed", range(3))
async def test_a_run_whose_workers_crash_one_after_the_other_keeps_every_promise(
    autojump_clock: MockClock, seed: int
) -> None:
    make, choice = journeys(MemoryStore()), random.Random(seed)
    steps = (await rehearse(make)).steps
    for _ in range(COUPLES):
        # A worker that takes over has less to do, the later the first one crashed.
        first = choice.randrange(1, steps)
        second = choice.randrange(1, max(2, steps - first))
        points = [Point(Fault.CRASH_IN_STEP, number) for number in (first, second)]
        played = await play(make, *points)
        await verify(played if played.hit else await play(make, points[0]))


@pytest.mark.parametrize("kind", REAL)
async def test_a_run_whose_worker_crashes_at_any_write_is_recovered_from_a_real_database(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with open_store(kind, tmp_path, request) as store:
        with trio.fail_after(600):
            # Time passes only when a lease is to lapse.
            assert await hit_everywhere(lambda: Journey.begin(store), *AT_WRITES) >= 58
