"""Cancelling a run at every step of its drive, one play for each, and seeing what is left.

Source: docs/testing.md#cancel-everywhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import trio
from typing_extensions import override

from rungent.events import TERMINAL_TYPES, Event
from rungent.runtime import Runtime
from rungent.testing.faults import Scenario
from rungent.testing.task_steps import TaskSteps

__all__ = ["CancelScenario", "cancel_everywhere"]

DRIVE = "Supervisor._supervise"


class CancelScenario(Scenario, Protocol):
    """A scenario whose run can be cancelled, and looked at afterwards."""

    async def cancel(self, runtime: Runtime) -> None:
        """Cancel the run, if there is one; its client must cope with that."""
        ...

    async def log(self) -> Sequence[Event]:
        """The stored events of the run."""
        ...


async def cancel_everywhere(
    make: Callable[[], Awaitable[CancelScenario]], *, held: Callable[[], int] = lambda: 0
) -> int:
    """Play a scenario again and again, cancelled one step of its drives later each time.

    Ends with the first play that is over before; returns how many were cancelled. After each,
    raises AssertionError unless the log has exactly one terminal event, at its end, every task
    of the worker has ended, and `held` counts nothing, connections of the store for example.
    """
    count = 0
    while await _cancelled_at(await make(), count + 1, held):
        count += 1
    return count


async def _cancelled_at(scenario: CancelScenario, step: int, held: Callable[[], int]) -> bool:
    reached = trio.Event()
    steps = _DriveSteps(step, reached.set)
    runtime = scenario.runtime(scenario.store)
    trio.lowlevel.add_instrument(steps)
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(runtime.serve)
            async with trio.open_nursery() as watching:
                watching.start_soon(_cancel_when, reached, scenario, runtime)
                await scenario.client(runtime)
                watching.cancel_scope.cancel()
            await runtime.stop()
    finally:
        trio.lowlevel.remove_instrument(steps)
    where = f"cancelled at step {step} of the drive"
    ends = [place for place, e in enumerate(await scenario.log(), 1) if e.type in TERMINAL_TYPES]
    if ends != [len(await scenario.log())]:
        raise AssertionError(f"{where}: terminal events at {ends}")
    if steps.alive:
        raise AssertionError(f"{where}: tasks are left: {steps.alive}")
    if held():
        raise AssertionError(f"{where}: {held()} connections are held")
    return reached.is_set()


async def _cancel_when(reached: trio.Event, scenario: CancelScenario, runtime: Runtime) -> None:
    await reached.wait()
    await scenario.cancel(runtime)


class _DriveSteps(TaskSteps):
    """Counts the steps of drives and whatever they start."""

    @override
    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        if task.name.endswith(DRIVE):
            self.watch(task)
        super().task_spawned(task)
