"""Waiting ticks: tells when a model step has shown nothing for too long.

Most steps are never silent for that long, so none has a task that waits: one clock of the runtime
waits for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from heapq import heappop, heappush
from itertools import count

import trio

__all__ = ["Clock", "Silence"]

# Clock readings are floats: 2.9999999 s after a start is the third second.
_ROUNDING_SECONDS = 0.001


class Silence:
    """Calls `tick` after `after` silent seconds, then after each `every`, until `end()`.

    Silence counts from the construction, and anew from each `broken()` and each tick. `first`
    says whether no tick came yet, `elapsed_seconds` counts from the construction. Each tick is
    made in a task of its own, which `start` starts.
    """

    def __init__(
        self,
        clock: Clock,
        tick: Callable[[], Awaitable[None]],
        start: Callable[[Callable[[], Awaitable[None]]], object],
        *,
        after: float,
        every: float,
    ) -> None:
        self._clock = clock
        self._tick = tick
        self._start: Callable[[Callable[[], Awaitable[None]]], object] | None = start
        self._every = every
        self._begun = trio.current_time()
        self._deadline = self._begun + after
        self.first = True
        clock.watch(self, self._deadline)

    @property
    def over(self) -> bool:
        """Whether no tick can follow any more."""
        return self._start is None

    @property
    def overdue(self) -> bool:
        """Whether nothing was shown for too long."""
        return not self.over and trio.current_time() >= self._deadline

    @property
    def elapsed_seconds(self) -> int:
        """Whole seconds since the construction, at least 1."""
        return max(1, int(trio.current_time() - self._begun + _ROUNDING_SECONDS))

    def broken(self) -> None:
        """Something was shown: the next tick is one interval away."""
        self._deadline = trio.current_time() + self._every

    def end(self) -> None:
        """No tick is started any more, and the clock holds on to nothing of the step."""
        self._start = None
        self._tick = _nothing

    def due(self) -> None:
        """Start a tick, if it is still time for one; else be watched until it is."""
        if self._start is None:
            return
        if self.overdue:
            self._start(self._tell)
        else:
            self._clock.watch(self, self._deadline)

    async def _tell(self) -> None:
        await self._tick()
        if self.overdue:
            self.first = False
            self.broken()
        if not self.over:
            self._clock.watch(self, self._deadline)


class Clock:
    """Wakes every watched silence of a runtime at its time, from one task."""

    def __init__(self) -> None:
        self._watched: list[tuple[float, int, Silence]] = []
        self._numbers = count()
        self._nap = trio.CancelScope()

    def watch(self, silence: Silence, deadline: float) -> None:
        """Call `silence.due` once, at `deadline`."""
        heappush(self._watched, (deadline, next(self._numbers), silence))
        if self._nap.deadline > deadline:  # noqa: PLR1730 - comparing is cheap, setting is not
            self._nap.deadline = deadline

    async def run(self) -> None:
        """Wake silences until cancelled."""
        while True:
            with trio.CancelScope(deadline=self._next()) as self._nap:
                await trio.sleep_forever()

    def _next(self) -> float:
        """Wake those whose time has come; returns when that of the next one comes."""
        now = trio.current_time()
        while self._watched:
            deadline, _, silence = self._watched[0]
            if deadline > now and not silence.over:
                return deadline
            # Nobody gets up for those that are over, which most are long before their time.
            heappop(self._watched)
            silence.due()
        return math.inf


async def _nothing() -> None:
    """What a step that is over has to tell."""
