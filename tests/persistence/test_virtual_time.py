"""Virtual time stands still while the database works."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from rungent.testing.clock import HoldAutojump, virtual_now
from rungent.testing.store_samples import OWNER, START, create_running, step
from tests.persistence.stores import FILE_KINDS, opened, sql_store


@pytest.mark.parametrize("kind", [*FILE_KINDS, "aiosqlite_memory", "inline"])
async def test_no_virtual_time_passes_while_the_database_works(
    kind: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Without the hook the clock would jump to the deadline of the first commit."""
    store = sql_store(kind, tmp_path, hold=HoldAutojump(autojump_clock))
    timeouts = 0
    async with opened(store):
        run = await create_running(store)
        for _ in range(20):
            commit = step(run)
            with trio.move_on_after(30) as scope:
                await store.commit(commit, owner=OWNER, token=1)
                run = (await store.get_run(run.id)).model_copy()
            timeouts += scope.cancelled_caught
        assert trio.current_time() == 0
        assert timeouts == 0
        assert run.version == 21
        await trio.sleep(5)
    assert trio.current_time() == 5


async def test_the_clock_is_held_until_the_last_holder_leaves(autojump_clock: MockClock) -> None:
    hold = HoldAutojump(autojump_clock)
    with hold():
        with hold():
            pass
        assert autojump_clock.autojump_threshold == float("inf")
    assert autojump_clock.autojump_threshold == 0


async def test_virtual_now_follows_the_clock(autojump_clock: MockClock) -> None:
    await trio.sleep(100)
    now = virtual_now(START)
    assert now() == START
    await trio.sleep(2.5)
    assert now() == START + timedelta(seconds=2.5)


def test_virtual_now_made_outside_trio_starts_at_its_first_use() -> None:
    now = virtual_now(START)

    async def main() -> None:
        await trio.sleep(7)
        assert now() == START
        await trio.sleep(1)
        assert now() == START + timedelta(seconds=1)

    trio.run(main, clock=MockClock(autojump_threshold=0))
