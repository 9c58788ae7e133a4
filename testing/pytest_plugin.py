"""Fixtures for pytest: `pytest_plugins = ["rungent.testing.pytest_plugin"]` in your conftest.py.

Nothing is loaded by itself. Needs pytest-trio with `trio_mode = true`. Source:
docs/virtual-time.md#pytest.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Protocol

import pytest
import trio
from trio.testing import MockClock

from rungent.testing.clock import HoldAutojump
from rungent.testing.staged import Staged, staged

__all__ = ["StageFactory", "hold_autojump", "rungent_stage"]


class StageFactory(Protocol):
    """Makes stages that end with the test; the arguments are those of `staged`."""

    def __call__(self, script: Any = (), **options: Any) -> Awaitable[Staged]:
        """A new stage."""
        ...


@pytest.fixture
async def rungent_stage(autojump_clock: MockClock) -> AsyncGenerator[StageFactory]:
    """`await rungent_stage(script, …)` gives a served runtime in virtual time.

    The test itself must ask for `autojump_clock` too: pytest-trio looks for clocks nowhere else.
    """
    if not isinstance(trio.lowlevel.current_clock(), MockClock):
        reason = "time is real here: add autojump_clock to the arguments of the test"
        raise RuntimeError(reason)  # noqa: TRY004 - no argument has a wrong type
    over = trio.Event()

    async def hold(
        script: Any, options: dict[str, Any], *, task_status: trio.TaskStatus[Staged]
    ) -> None:
        async with staged(script, **options) as stage:
            task_status.started(stage)
            await over.wait()

    # Stages live in tasks of the fixture: the test may end, or fail, at any place.
    async with trio.open_nursery() as nursery:

        async def make(script: Any = (), **options: Any) -> Staged:
            made: Staged = await nursery.start(hold, script, options)
            return made

        yield make
        over.set()


@pytest.fixture
def hold_autojump(autojump_clock: MockClock) -> Callable[[], Any]:
    """The `hold` of a store that works in threads: virtual time stands still meanwhile."""
    return HoldAutojump(autojump_clock)
