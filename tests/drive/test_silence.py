"""The clock of all silences: exact for those that last, asleep for those that are over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import trio
from trio.testing import MockClock
from typing_extensions import override

from rungent._drive.silence import Clock, Silence


@dataclass
class Quiet:
    """Makes silences in a nursery, and notes their ticks."""

    clock: Clock
    nursery: trio.Nursery
    ticks: list[tuple[float, str]]

    def begin(self, name: str, *, lasts: float = 0) -> Silence:
        """A silence that ticks after 3 seconds, then every 5; a tick takes as long as `lasts`."""

        async def tick() -> None:
            self.ticks.append((round(trio.current_time(), 3), name))
            await trio.sleep(lasts)

        def start(work: Callable[[], Awaitable[None]]) -> None:
            self.nursery.start_soon(work)

        return Silence(self.clock, tick, start, after=3, every=5)


class Steps(trio.abc.Instrument):
    """Counts the steps of one task."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.count = 0

    @override
    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += task.name == self._name


async def test_each_silence_ticks_at_its_own_time(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        quiet = Quiet(Clock(), nursery, [])
        nursery.start_soon(quiet.clock.run)
        quiet.begin("a")
        await trio.sleep(1)
        quiet.begin("b", lasts=2)
        broken = quiet.begin("c")
        await trio.sleep(2.5)
        broken.broken()
        await trio.sleep(9)
        nursery.cancel_scope.cancel()
    # A tick that takes long is not followed by another before it is over.
    assert quiet.ticks == [(3, "a"), (4, "b"), (8, "a"), (8.5, "c"), (11, "b")]


async def test_a_silence_that_begins_while_the_clock_waits_for_a_later_one_is_not_missed(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        quiet = Quiet(Clock(), nursery, [])
        nursery.start_soon(quiet.clock.run)
        quiet.begin("a")
        # The next tick of the first comes at 8, and the clock waits for it.
        await trio.sleep(4)
        quiet.begin("b")
        await trio.sleep(3.5)
        nursery.cancel_scope.cancel()
    assert quiet.ticks == [(3, "a"), (7, "b")]


async def test_nothing_gets_up_for_silences_that_are_over(autojump_clock: MockClock) -> None:
    steps = Steps("clock")
    async with trio.open_nursery() as nursery:
        quiet = Quiet(Clock(), nursery, [])
        nursery.start_soon(quiet.clock.run, name="clock")
        trio.lowlevel.add_instrument(steps)
        for _ in range(200):
            ended = quiet.begin("never")
            await trio.sleep(0.1)
            ended.end()
        trio.lowlevel.remove_instrument(steps)
        nursery.cancel_scope.cancel()
    assert quiet.ticks == []
    # Twenty seconds: at most one for each time that a silence might have lasted.
    assert steps.count <= 8
