"""Waiting ticks: tells when a model step has shown nothing for too long."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

__all__ = ["Silence"]

# Clock readings are floats: 2.9999999 s after a start is the third second.
_ROUNDING_SECONDS = 0.001


class Silence:
    """Calls `tick(first, elapsed_seconds)` after `after` silent seconds, then after each `every`.

    Silence counts from the construction, and anew from each `broken()` and each tick.
    """

    def __init__(
        self, tick: Callable[[bool, int], Awaitable[None]], *, after: float, every: float
    ) -> None:
        self._tick = tick
        self._every = every
        self._begun = trio.current_time()
        self._deadline = self._begun + after

    def broken(self) -> None:
        """Something was shown: the next tick is one interval away."""
        self._deadline = trio.current_time() + self._every

    async def run(self) -> None:
        """Tick until cancelled."""
        first = True
        while True:
            await trio.sleep_until(self._deadline)
            if trio.current_time() < self._deadline:
                continue
            elapsed = trio.current_time() - self._begun + _ROUNDING_SECONDS
            await self._tick(first, max(1, int(elapsed)))
            first = False
            self.broken()
