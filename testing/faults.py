"""Faults on purpose: a store that fails where it is told to, and workers that crash anywhere.

`crash_points` plays a scenario once to count where it can be hit, and then once for each of these
places. A crash is the loss of a process: nothing of the worker reaches the store any more, also
not what it does to clean up, and its tasks end at their next checkpoint. Another worker over the
same store then goes on. Source: docs/testing.md#faults.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import trio
from typing_extensions import override

from rungent.runtime import Runtime
from rungent.store import Store
from rungent.testing.faulty_store import Fault, FaultyStore, InjectedFault, WorkerGone
from rungent.testing.task_steps import TaskSteps

__all__ = [
    "CRASHES",
    "Fault",
    "FaultyStore",
    "InjectedFault",
    "Played",
    "Point",
    "Scenario",
    "WorkerGone",
    "crash_points",
    "play",
    "rehearse",
]

CRASHES = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.CRASH_IN_STEP)
"""The faults after which the worker is gone."""


class Scenario(Protocol):
    """What is to survive faults: one store with fresh data, its workers and its client."""

    @property
    def store(self) -> Store:
        """The store itself, without faults."""
        ...

    def runtime(self, store: Store) -> Runtime:
        """A new worker over `store`, which is the one above or a faulty one around it."""
        ...

    async def client(self, runtime: Runtime) -> None:
        """What a client does until the run has ended.

        It is called for the worker that is hit and again, from the start, for the worker that
        takes over. So it looks how far the run is, and repeats its requests under the same
        idempotency key. It may raise anything when its worker crashed.
        """
        ...

    async def recovering(self) -> None:
        """Called between a crash and the start of the next worker.

        In virtual time there is nothing to do: the lease lapses while the next worker waits.
        """
        ...


S = TypeVar("S", bound=Scenario)
Make = Callable[[], Awaitable[S]]


@dataclass(frozen=True, slots=True)
class Point:
    """A place to be hit: the n-th write of the worker, or its n-th task step; both count from 1.

    A task step is what a task does between two checkpoints, so there is one for each await that
    lets other tasks run. `what` names the write.
    """

    fault: Fault
    number: int
    what: str = ""

    @override
    def __str__(self) -> str:
        where = "step" if self.fault is Fault.CRASH_IN_STEP else "write"
        return f"{self.fault.value}, {where} {self.number} {self.what}".rstrip()


@dataclass(frozen=True, slots=True)
class Played(Generic[S]):
    """A scenario that was played to its end.

    `hit` says whether every point was reached: the order of tasks, and with it the number of
    steps, may differ from play to play. `writes` and `steps` are those of the last worker.
    """

    scenario: S
    points: tuple[Point, ...]
    hit: bool
    writes: tuple[str, ...]
    steps: int


async def rehearse(make: Make[S]) -> Played[S]:
    """Play a scenario without any fault; `writes` and `steps` say where it can be hit."""
    return await play(make)


async def play(make: Make[S], *points: Point, stall_seconds: float = 60) -> Played[S]:
    """Play a scenario whose workers are hit, the first one at the first point and so on.

    After a crash the next worker takes over; the last of them is not hit. During a stall another
    one works beside the one that stands still. After any other fault the worker has to cope.
    """
    scenario = await make()
    hit = 0
    for point in (*points, None):
        store, steps = await _worker(scenario, point, stall_seconds)
        hit += point is not None and _reached(store, point)
        if not store.crashed:
            return Played(scenario, points, hit == len(points), tuple(store.writes), steps)
        await scenario.recovering()
    raise AssertionError("the last worker is not hit")


def _reached(store: FaultyStore, point: Point) -> bool:
    return store.crashed if point.fault in CRASHES else point.number <= len(store.writes)


async def crash_points(
    make: Make[S], *faults: Fault, stall_seconds: float = 60
) -> AsyncGenerator[Played[S]]:
    """Play a scenario once for each point at which it can be hit, and give what became of it.

    `faults` are the kinds to try, all of `CRASHES` when none is given. `make` makes the scenario
    anew for each play. An exception of the client, or of the workers, passes.
    """
    rehearsed = await rehearse(make)
    for fault in faults or CRASHES:
        for point in _points(fault, rehearsed):
            yield await play(make, point, stall_seconds=stall_seconds)


def _points(fault: Fault, rehearsed: Played[S]) -> list[Point]:
    if fault is Fault.CRASH_IN_STEP:
        return [Point(fault, number) for number in range(1, rehearsed.steps + 1)]
    return [Point(fault, number, what) for number, what in enumerate(rehearsed.writes, start=1)]


async def _worker(
    scenario: Scenario, point: Point | None, stall_seconds: float
) -> tuple[FaultyStore, int]:
    """One worker and its client, until the run has ended or the worker is gone."""
    in_step = point is not None and point.fault is Fault.CRASH_IN_STEP
    faults = {} if point is None or in_step else {point.number: point.fault}
    store = FaultyStore(scenario.store, faults, stall_seconds=stall_seconds)
    steps = TaskSteps(point.number if point is not None and in_step else None, store.crash)
    async with trio.open_nursery() as nursery:
        over = trio.CancelScope()
        nursery.start_soon(_doomed, scenario, store, steps, over)
        if Fault.STALL in faults.values():
            nursery.start_soon(_beside, scenario, store, over)
    return store, steps.count


async def _doomed(
    scenario: Scenario, store: FaultyStore, steps: TaskSteps, over: trio.CancelScope
) -> None:
    """The worker that may be hit: of one that crashed nothing is left, no error either."""
    scope = trio.CancelScope()
    store.when_crashed = scope.cancel
    trio.lowlevel.add_instrument(steps)
    steps.watch(trio.lowlevel.current_task())
    try:
        with scope:
            await _work(scenario, store)
    except Exception:
        if not store.crashed:
            raise
    finally:
        trio.lowlevel.remove_instrument(steps)
        over.cancel()


async def _beside(scenario: Scenario, store: FaultyStore, over: trio.CancelScope) -> None:
    """The worker that goes on as soon as the other one stands still, if it ever does."""
    with over:
        await store.stalled.wait()
    if store.stalled.is_set():
        await _work(scenario, scenario.store)


async def _work(scenario: Scenario, store: Store) -> None:
    runtime = scenario.runtime(store)
    async with trio.open_nursery() as nursery:
        await nursery.start(runtime.serve)
        await scenario.client(runtime)
        await runtime.stop()
