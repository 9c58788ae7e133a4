"""A test that sleeps for real fails; virtual sleeps are free."""

from __future__ import annotations

import time

import pytest
import trio
import trio.lowlevel
from trio.testing import MockClock

from tests.sleeping import RealSleep


async def test_real_sleeps_are_refused() -> None:
    with pytest.raises(RealSleep, match=r"sleeps for 0\.5 s"):
        await trio.sleep(0.5)
    with pytest.raises(RealSleep):
        await trio.sleep_until(trio.current_time() + 1)
    with pytest.raises(RealSleep, match="blocks the process"):
        time.sleep(0.001)  # noqa: ASYNC251 - that is the point
    await trio.lowlevel.checkpoint()


async def test_virtual_sleeps_take_no_time(autojump_clock: MockClock) -> None:
    await trio.sleep(10**6)
    await trio.sleep_until(2 * 10**6)
    assert trio.current_time() == 2 * 10**6
