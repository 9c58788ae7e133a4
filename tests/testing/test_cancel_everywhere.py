"""A run is cancelled at every step of its drive, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
from trio.testing import MockClock
from typing_extensions import override

from rungent import Event, Runtime
from rungent.store import MemoryStore
from rungent.testing.cancel_everywhere import cancel_everywhere
from rungent.testing.clock import virtual_now
from rungent.testing.stores import fresh_store
from tests.grammar import check_log
from tests.helpers import OWNER, START
from tests.recovery.journey import Journey


class Stopped(Journey):
    """The journey that does everything a run can do, cancelled from outside."""

    async def cancel(self, runtime: Runtime) -> None:
        run = await self.run()
        if run is not None:
            await runtime.cancel_run(run.id, identity=OWNER)

    async def log(self) -> Sequence[Event]:
        run = await self.run()
        assert run is not None
        events = await self.store.list_events(run.id, after=0, limit=500)
        check_log(events)
        for claim in await self.claims():
            assert claim.state != "started"
        assert all(len(keys) <= 1 for keys in self.done.values())
        return events


async def test_a_run_is_cancelled_at_every_step_of_its_drive(autojump_clock: MockClock) -> None:
    async def make() -> Stopped:
        trio._core._run._r.seed(1)  # pyright: ignore
        return await Stopped.begin(MemoryStore(), virtual_now(START))  # type: ignore[return-value]

    assert await cancel_everywhere(make) >= 100


async def test_over_sql_no_connection_is_kept(autojump_clock: MockClock) -> None:
    async with fresh_store("sqlite") as store:

        async def make() -> Stopped:
            trio._core._run._r.seed(1)  # pyright: ignore
            return await Stopped.begin(store, virtual_now(START))  # type: ignore[return-value]

        assert await cancel_everywhere(make) >= 100


async def test_what_is_held_or_ends_twice_is_noticed(autojump_clock: MockClock) -> None:
    async def make() -> Stopped:
        return await Stopped.begin(MemoryStore(), virtual_now(START))  # type: ignore[return-value]

    with pytest.raises(AssertionError, match="1 connections are held"):
        await cancel_everywhere(make, held=lambda: 1)

    class Twice(Stopped):
        @override
        async def log(self) -> Sequence[Event]:
            events = await super().log()
            return [*events, events[-1]]

    async def make_twice() -> Twice:
        return await Twice.begin(MemoryStore(), virtual_now(START))  # type: ignore[return-value]

    with pytest.raises(AssertionError, match="cancelled at step 1 of the drive: terminal events"):
        await cancel_everywhere(make_twice)
