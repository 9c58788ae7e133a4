"""One play of a plan, from an empty store to the last check.

Source: docs/simulation.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

import trio
from trio.testing import MockClock

from rungent.ids import new_id
from rungent.records import Session
from rungent.store import Store
from rungent.testing.clock import virtual_now
from rungent.testing.simulation.client import USER, User
from rungent.testing.simulation.entropy import seeded
from rungent.testing.simulation.plan import Plan
from rungent.testing.simulation.reader import Reader
from rungent.testing.simulation.scenario import SimScenario
from rungent.testing.simulation.stage import Stage
from rungent.testing.simulation.watcher import Watcher
from rungent.testing.simulation.workers import Worker
from rungent.testing.stores import StoreKind, fresh_store

__all__ = ["MakeScenario", "Outcome", "Settings", "play"]

MakeScenario = Callable[[], SimScenario]
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Settings:
    """How plays are staged. `patience_seconds` is virtual time after which a play is stuck."""

    workers: int = 2
    store: StoreKind = "memory"
    patience_seconds: float = 1500


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a play. `violation` is the first broken promise, None when there is none.

    `fired` are the chances that came; `log` holds every stored event, one JSON text each; `notes`
    tell the play line by line.
    """

    plan: Plan
    violation: str | None
    fired: tuple[str, ...]
    log: tuple[str, ...]
    notes: tuple[str, ...]
    virtual_seconds: float


def play(make: MakeScenario, plan: Plan, settings: Settings | None = None) -> Outcome:
    """Play a plan; the same one always plays the same. An error of the scenario is a violation.

    Runs trio by itself, so it cannot be called inside trio.
    """
    with seeded(plan.seed):
        clock = MockClock(autojump_threshold=0)
        return trio.run(_play, make, plan, settings or Settings(), clock=clock)


async def _play(make: MakeScenario, plan: Plan, settings: Settings) -> Outcome:
    begun, before = trio.current_time(), _system_tasks()
    async with fresh_store(settings.store) as store:
        stage = Stage(make(), plan, store, virtual_now(START))
        watcher = Watcher(stage)
        try:
            with trio.move_on_after(settings.patience_seconds) as patience, stage.scope:
                await _perform(stage, watcher, settings)
            if patience.cancelled_caught and stage.violation is None:
                stage.fail(f"stuck after {settings.patience_seconds:g} s: {await _statuses(stage)}")
            if stage.violation is None:
                await watcher.look_last()
        except Exception as error:  # noqa: BLE001 - whatever it is, the play failed
            stage.fail(_reason(error))
        log = await _log(stage)
    if stage.violation is None and _system_tasks() - before:
        stage.fail("a task was left behind")
    return Outcome(
        plan,
        stage.violation,
        tuple(stage.fired),
        log,
        tuple(stage.notes),
        trio.current_time() - begun,
    )


async def _perform(stage: Stage, watcher: Watcher, settings: Settings) -> None:
    workers = [Worker(stage, number) for number in range(settings.workers)]
    for number in range(len(stage.scenario.conversations)):
        stage.session_ids.append(await _new_session(stage, number))
    async with trio.open_nursery() as outer:
        outer.start_soon(watcher.run)
        async with trio.open_nursery() as serving:
            for worker in workers:
                serving.start_soon(worker.run)
            async with trio.open_nursery() as talking:
                for number, texts in enumerate(stage.scenario.conversations):
                    user = User(
                        stage,
                        workers,
                        stage.session_ids[number],
                        number,
                        lambda run_id: talking.start_soon(Reader(stage, workers, run_id).run),
                    )
                    talking.start_soon(user.talk, texts)
            for worker in workers:
                worker.over.set()
        outer.cancel_scope.cancel()


async def _new_session(stage: Stage, number: int) -> str:
    session = Session(
        id=new_id("ses_"),
        agent_name=stage.scenario.agents()[0].name,
        subject_id=USER.subject_id,
        resource={"number": number},
        created_at=stage.now(),
        updated_at=stage.now(),
    )
    await stage.store.create_session(session)
    return session.id


async def _statuses(stage: Stage) -> str:
    runs = [run for one in stage.session_ids for run in await stage.store.list_runs(one, limit=100)]
    return ", ".join(f"{run.id[:8]} is {run.status}" for run in runs) or "no run was created"


async def _log(stage: Stage) -> tuple[str, ...]:
    lines: list[str] = []
    store: Store = stage.store
    for session_id in stage.session_ids:
        for run in await store.list_runs(session_id, limit=100):
            events = await store.list_events(run.id, after=0, limit=10_000)
            lines += [json.dumps(event.to_json(), sort_keys=True) for event in events]
    return tuple(lines)


def _system_tasks() -> set[trio.lowlevel.Task]:
    root = trio.lowlevel.current_root_task()
    assert root is not None
    return {task for nursery in root.child_nurseries for task in nursery.child_tasks}


def _reason(error: Exception) -> str:
    while isinstance(error, ExceptionGroup):
        # The first is the cause as a rule; the others are in the notes.
        error = cast("ExceptionGroup[Exception]", error).exceptions[0]
    if isinstance(error, AssertionError):
        return next(iter(str(error).strip().splitlines()), "AssertionError")
    return f"{type(error).__name__}: {error}"
