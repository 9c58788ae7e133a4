"""The workers of a play: served runtimes over one store, lost and started again as planned.

Source: docs/simulation.md#plans.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import trio

from rungent.events import Event
from rungent.options import RuntimeOptions
from rungent.runtime import Runtime
from rungent.testing.faulty_store import WorkerGone
from rungent.testing.simulation.plan import Chance, Kind
from rungent.testing.simulation.probes import ProbedModel, probed_agents
from rungent.testing.simulation.slow_store import SlowStore, faults_of
from rungent.testing.simulation.stage import Stage
from rungent.testing.task_steps import TaskSteps

__all__ = ["Worker"]

T = TypeVar("T")

STOP_SECONDS = 60
DEFAULTS: RuntimeOptions = {"model_step_timeout_seconds": 60}


@dataclass
class Worker:
    """A place for one process after another. `run` fills it until `over` is set."""

    stage: Stage
    number: int
    over: trio.Event = field(default_factory=trio.Event)
    _runtime: Runtime | None = None
    _ready: trio.Event = field(default_factory=trio.Event)
    _users: set[trio.CancelScope] = field(default_factory=set[trio.CancelScope])
    _writes: int = 0
    _steps: int = 0

    async def use(self, do: Callable[[Runtime], Awaitable[T]]) -> T:
        """Ask the worker that serves now, or the next one. Raises WorkerGone when it is lost."""
        while self._runtime is None:
            await self._ready.wait()
        runtime = self._runtime
        with trio.CancelScope() as scope:
            self._users.add(scope)
            try:
                return await do(runtime)
            finally:
                self._users.discard(scope)
        raise WorkerGone("the worker crashed")

    async def run(self) -> None:
        """One process after another, until `over` is set; the last one stops in order."""
        while True:
            lost = await self._live()
            if lost is None:
                return
            await trio.sleep(lost.seconds)

    async def _live(self) -> Chance | None:
        """One process; the chance that ended it, or None when it stopped in order."""
        chances = faults_of(self.stage, self.number, self._writes)
        store = SlowStore(self.stage, self.number, chances)
        in_step = self._next_step_crash()
        steps = TaskSteps(
            None if in_step is None else in_step.number - self._steps,
            lambda: self._hit(store, str(in_step)),
        )
        scope = trio.CancelScope()
        store.when_crashed = scope.cancel
        trio.lowlevel.add_instrument(steps)
        try:
            with scope:
                async with trio.open_nursery() as nursery:
                    steps.watch(trio.lowlevel.current_task())
                    await self._serve(store, nursery)
        except Exception:
            # Of a process that crashed nothing is left, no error either.
            if not store.crashed:
                raise
        finally:
            trio.lowlevel.remove_instrument(steps)
            self._gone()
        write, step = len(store.writes), steps.count
        self._writes, self._steps = self._writes + write, self._steps + step
        if not store.crashed:
            return None
        return chances.get(write) or in_step

    def _next_step_crash(self) -> Chance | None:
        chances = self.stage.plan.of(Kind.CRASH, worker=self.number)
        later = [c for c in chances if c.way == "step" and c.number > self._steps]
        return min(later, key=lambda c: c.number, default=None)

    def _hit(self, store: SlowStore, what: str) -> None:
        if not store.crashed and not self.over.is_set():
            self.stage.fire(what, harm=True)
            store.crash()

    async def _serve(self, store: SlowStore, nursery: trio.Nursery) -> None:
        runtime = self._build(store)
        await nursery.start(runtime.serve)
        self._runtime = runtime
        self._ready.set()
        await self.over.wait()
        with trio.move_on_after(STOP_SECONDS) as patience:
            await runtime.stop()
        if patience.cancelled_caught:
            self.stage.fail(f"worker {self.number} did not stop within {STOP_SECONDS} s")

    def _gone(self) -> None:
        self._runtime = None
        if self._ready.is_set():
            # Who waits for the next process keeps waiting for it.
            self._ready = trio.Event()
        for scope in self._users:
            scope.cancel()

    def _build(self, store: SlowStore) -> Runtime:
        scenario, stage = self.stage.scenario, self.stage
        options: RuntimeOptions = {**DEFAULTS, **scenario.options()}
        options["now"] = stage.now
        options.setdefault("event_listener", _Listener(stage, self.number, store).hear)
        options.setdefault("dependency_provider", lambda session, run: scenario.deps())
        return Runtime(
            agents=probed_agents(stage, self.number, lambda: store.crashed),
            model=ProbedModel(stage, scenario.model()),
            store=store,
            **options,
        )


@dataclass
class _Listener:
    """Hears what one process tells of its commits: stored before, each once, in order."""

    stage: Stage
    worker: int
    store: SlowStore
    _last: dict[str, int] = field(default_factory=dict[str, int])

    async def hear(self, event: Event) -> Any:
        run = await self.stage.store.get_run(event.run_id)
        if self.store.crashed:
            return
        told = f"run {event.run_id}: seq {event.seq}: {event.type} was told"
        self.stage.require(run.event_seq >= event.seq, f"{told} before it was stored")
        last = self._last.get(event.run_id, 0)
        self.stage.require(event.seq > last, f"{told} twice or late")
        self._last[event.run_id] = event.seq
