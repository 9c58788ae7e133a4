"""Forgetting how old runs came about: their events and the rows that explain them.

Sessions, messages and run rows stay, so transcripts, idempotency keys and final states do.
Ended runs never change again, so this may run beside serving workers.
Source: docs/operating.md#prune.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import trio
from sqlalchemy import Connection, Engine, Table, delete, exists, func, select

from rungent.persistence.executors import Executor
from rungent.persistence.sqlite import lock_for_writing
from rungent.persistence.tables import (
    actions,
    events,
    external_tasks,
    interactions,
    runs,
    tool_calls,
)
from rungent.records import ACTIVE, RunStatus

__all__ = ["Pruned", "prune"]

PAGE = 200
PAUSE_SECONDS = 0.02
_EXPLAINING = (tool_calls, interactions, external_tasks, actions)
_ALL = (events, *_EXPLAINING)
_ENDED = sorted(status.value for status in RunStatus if status not in ACTIVE)


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows were deleted, or would be."""

    runs: int = 0
    events: int = 0
    tool_calls: int = 0
    interactions: int = 0
    external_tasks: int = 0
    actions: int = 0

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(
            self.runs + other.runs,
            self.events + other.events,
            self.tool_calls + other.tool_calls,
            self.interactions + other.interactions,
            self.external_tasks + other.external_tasks,
            self.actions + other.actions,
        )


@dataclass(frozen=True, slots=True)
class _Batch:
    """What one transaction deletes: all of some runs, or some events of a long one."""

    run_ids: tuple[str, ...]
    up_to_seq: int | None = None


async def prune(
    executor: Executor,
    before: datetime,
    *,
    batch: int,
    dry_run: bool = False,
    pause_seconds: float = PAUSE_SECONDS,
) -> Pruned:
    """Delete the logs of runs that ended before then; returns the counts.

    Each transaction deletes at most `batch` events with the rows that go with them. A run's log
    goes at once, unless it is longer. Between two transactions other writers get their turn.
    Cancelled or interrupted, it can simply be called again.
    """
    total, after = Pruned(), ""
    while page := await executor.run(partial(_prunable, before, after)):
        after = page[-1][0]
        if dry_run:
            total += await executor.run(partial(_count, [run_id for run_id, _ in page]))
            continue
        for part in _batches(page, batch):
            total += await executor.run(partial(_delete, part))
            await trio.sleep(pause_seconds)
    return total


def _prunable(before: datetime, after: str, engine: Engine) -> list[tuple[str, int]]:
    """Ended runs with a log, and how long it may be."""
    c = runs.c
    statement = (
        select(c.id, c.event_seq)
        .where(c.status.in_(_ENDED), c.updated_at < before, c.id > after)
        .where(exists().where(events.c.run_id == c.id))
        .order_by(c.id)
        .limit(PAGE)
    )
    with engine.connect() as connection:
        return [(row.id, row.event_seq) for row in connection.execute(statement)]


def _batches(page: Sequence[tuple[str, int]], batch: int) -> Iterator[_Batch]:
    """Whole runs together for as long as they fit; a run that never fits in slices."""
    together: list[str] = []
    size = 0
    for run_id, length in page:
        if together and size + length > batch:
            yield _Batch(tuple(together))
            together, size = [], 0
        for up_to in range(batch, length, batch):
            yield _Batch((run_id,), up_to)
        together.append(run_id)
        size += length - (length - 1) // batch * batch if length else 0
    yield _Batch(tuple(together))


def _delete(part: _Batch, engine: Engine) -> Pruned:
    with engine.begin() as connection:
        lock_for_writing(connection, writes_first=False)
        gone = delete(events).where(events.c.run_id.in_(part.run_ids))
        if part.up_to_seq is not None:
            sliced = connection.execute(gone.where(events.c.seq <= part.up_to_seq)).rowcount
            return Pruned(events=sliced)
        deleted = [
            connection.execute(delete(table).where(table.c.run_id.in_(part.run_ids))).rowcount
            for table in _EXPLAINING
        ]
        return Pruned(len(part.run_ids), connection.execute(gone).rowcount, *deleted)


def _count(run_ids: Sequence[str], engine: Engine) -> Pruned:
    with engine.connect() as connection:
        return Pruned(len(run_ids), *(_size(connection, table, run_ids) for table in _ALL))


def _size(connection: Connection, table: Table, run_ids: Sequence[str]) -> int:
    statement = select(func.count()).where(table.c.run_id.in_(run_ids))
    return connection.scalar(statement) or 0
