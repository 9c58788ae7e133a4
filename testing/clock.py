"""Virtual time: wall-clock times that follow trio's clock, and a clock that waits for threads.

Source: docs/testing.md#time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import trio
from trio.testing import MockClock

__all__ = ["HoldAutojump", "virtual_now"]


def virtual_now(start: datetime) -> Callable[[], datetime]:
    """A `now` for the runtime that starts at `start` and moves as trio's clock does.

    Time counts from this call, or from the first use when trio is not running yet.
    """
    origin: float | None = None

    def now() -> datetime:
        nonlocal origin
        if origin is None:
            origin = trio.current_time()
        return start + timedelta(seconds=trio.current_time() - origin)

    if trio.lowlevel.in_trio_run():
        now()
    return now


class HoldAutojump:
    """Keeps a mock clock from jumping while something works in a thread.

    To the clock a task that waits for a thread looks idle, so it would jump over every deadline.
    Pass this as a store's `hold`; it is entered around each piece of work, any number at a time.
    """

    def __init__(self, clock: MockClock) -> None:
        self._clock = clock
        self._held = 0
        self._threshold = math.inf

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Hold the clock for the length of the block."""
        if self._held == 0:
            self._threshold = self._clock.autojump_threshold
            self._clock.autojump_threshold = math.inf
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            if self._held == 0:
                self._clock.autojump_threshold = self._threshold
