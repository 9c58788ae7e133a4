"""Waiting ticks: tells when a model step has shown nothing for too long."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

__all__ = ["Silence"]

# Clock readings are floats: 2.9999999 s after a start is the third second.
_ROUNDING_SECONDS = 0.001


class Silence:
    """Calls `tick` after `after` silent seconds, then after each `every`.

    Silence counts from the construction, and anew from each `broken()` and each tick. `first`
    says whether no tick came yet, `elapsed_seconds` counts from the construction.
    """

    def __init__(self, tick: Callable[[], Awaitable[None]], *, after: float, every: float) -> None:
        self._tick = tick
        self._every = every
        self._begun = trio.current_time()
        self._deadline = self._begun + after
        self.first = True

    @property
    def overdue(self) -> bool:
        """Whether nothing was shown for too long."""
        return trio.current_time() >= self._deadline

    @property
    def elapsed_seconds(self) -> int:
        """Whole seconds since the construction, at least 1."""
        return max(1, int(trio.current_time() - self._begun + _ROUNDING_SECONDS))

    def broken(self) -> None:
        """Something was shown: the next tick is one interval away."""
        self._deadline = trio.current_time() + self._every

    async def run(self) -> None:
        """Tick until cancelled."""
        while True:
            await trio.sleep_until(self._deadline)
            if not self.overdue:
                continue
            await self._tick()
            if self.overdue:
                self.first = False
                self.broken()
