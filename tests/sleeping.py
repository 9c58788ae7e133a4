"""No test sleeps for real: it waits for what is to happen, or time is virtual.

`forbid` replaces the sleeps of `trio` and `time` for callers below `tests`. Under a mock clock
they work as ever; under the real one they raise. The product's own waits are not touched.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any

import trio
from trio.testing import MockClock

__all__ = ["RealSleep", "forbid", "is_virtual", "virtual_seconds"]


virtual_seconds = [0.0]
"""What tests slept so far under a mock clock; under the real one it is always nothing."""


class RealSleep(AssertionError):
    """A test wanted to sleep in real time."""


def is_virtual() -> bool:
    """Whether time stands still here until a test moves it."""
    return isinstance(trio.lowlevel.current_clock(), MockClock)


def forbid() -> None:
    """Refuse real sleeps from now on, for the whole process."""
    async_sleeps: Any = trio
    async_sleeps.sleep = _checked(trio.sleep)
    async_sleeps.sleep_until = _checked(trio.sleep_until, now=trio.current_time)
    blocking: Any = time
    blocking.sleep = _never(time.sleep)


def _checked(
    sleep: Callable[[float], Awaitable[None]], now: Callable[[], float] = lambda: 0.0
) -> Callable[[float], Awaitable[None]]:
    async def checked(seconds: float) -> None:
        length = seconds - now()
        if length > 0 and _called_by_a_test() and not is_virtual():
            raise RealSleep(f"a test sleeps for {length:g} s; wait for what is to happen")
        if length > 0 and _called_by_a_test() and length < math.inf:
            virtual_seconds[0] += length
        await sleep(seconds)

    return checked


def _never(sleep: Callable[[float], None]) -> Callable[[float], None]:
    def never(seconds: float) -> None:
        if _called_by_a_test():
            raise RealSleep("a test blocks the process; wait for what is to happen")
        sleep(seconds)

    return never


def _called_by_a_test() -> bool:
    frame = inspect.currentframe()
    for _ in range(2):
        frame = None if frame is None else frame.f_back
    caller = "" if frame is None else str(frame.f_globals.get("__name__", ""))
    return caller.partition(".")[0] in {"tests", "conftest"}
