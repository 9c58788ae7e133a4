"""Group commit: drives queue, and whoever comes first writes for everybody queued.

There is no background task and no delay. A batch is what arrived while the previous transaction
ran; alone, a commit is a batch of one. Every unit is guarded by its own version, owner and
token and gets its own verdict. Source: docs/persistence.md#group-commit.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import trio
from sqlalchemy import Connection

from rungent.errors import StaleRun
from rungent.persistence.bulk import Contested
from rungent.persistence.commits import (
    DriveCommit,
    append_all,
    commit_all,
    commit_each,
    is_append,
    is_stored,
)
from rungent.persistence.outage import LONGEST_PAUSE, Outage
from rungent.persistence.transactions import (
    Source,
    Unreachable,
    Unsure,
    connect,
    is_away,
    read,
    transact,
)

__all__ = ["GroupCommit", "write_batch"]

logger = logging.getLogger("rungent")

Verdict: TypeAlias = Exception | None
"""Why a unit was not stored, or None."""


class GroupCommit:
    """The queue. `write` stores a batch in order and returns one verdict each.

    `turn` is the lock of the store's writers. The batch is taken only when the turn has come, so
    it holds whoever queued while others wrote.
    """

    def __init__(
        self,
        write: Callable[[Sequence[DriveCommit]], Awaitable[Sequence[Verdict]]],
        turn: trio.Lock,
    ) -> None:
        self._write = write
        self._turn = turn
        self._queue: list[_Entry] = []
        self._leader = False
        self._crowded = False
        self._outage = Outage(LONGEST_PAUSE)

    async def commit(self, unit: DriveCommit) -> None:
        """Store the unit, or raise why not: StaleRun, or the database's error.

        A cancellation that comes after the first checkpoint is too late: the unit is queued and
        the caller learns its verdict. Only while the database is away, and this waits to try
        again, is it heeded; then nobody can say what was stored, and whoever looks later sees it.
        """
        while isinstance(verdict := await self._attempt(unit), Unreachable):
            unit = replace(unit, repeated=True)
        if verdict is not None:
            raise verdict

    async def _attempt(self, unit: DriveCommit) -> Verdict:
        if self._outage.lasts:
            await self._outage.wait()
        else:
            await trio.lowlevel.checkpoint_if_cancelled()
        entry = _Entry(unit)
        self._queue.append(entry)
        if self._leader:
            # Whatever is cancelled: the unit is queued and will be written.
            entry.waiter = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(_not_now)
        if not entry.decided:
            with trio.CancelScope(shield=True):
                await self._lead()
        return entry.verdict

    async def _lead(self) -> None:
        """Write all that is queued, wake those, and hand over to the next in the queue."""
        self._leader = True
        batch: list[_Entry] = []
        try:
            async with self._turn:
                if self._crowded:
                    # Whoever was woken together with this task is about to commit, too: trio
                    # runs them in any order, and one more turn lets all of them queue.
                    await trio.lowlevel.cancel_shielded_checkpoint()
                batch, self._queue = self._queue, []
                self._crowded = len(batch) > 1
                verdicts = await self._write([entry.unit for entry in batch])
            self._note(verdicts)
            for entry, verdict in zip(batch, verdicts, strict=True):
                entry.decide(verdict)
        finally:
            # Reached without verdicts only when the program is being torn down.
            for entry in batch:
                if not entry.decided:
                    entry.decide(RuntimeError("the outcome of the commit is unknown"))
            if self._queue:
                self._queue[0].wake()
            else:
                self._leader = False

    def _note(self, verdicts: Sequence[Verdict]) -> None:
        away = next((each for each in verdicts if isinstance(each, Unreachable)), None)
        if away is None:
            self._outage.ended()
            return
        if not self._outage.lasts:
            logger.warning("commits wait for the database: %s", type(away.error).__name__)
        self._outage.failed()


class _Entry:
    """A unit in the queue. Woken undecided, its owner leads."""

    __slots__ = ("decided", "unit", "verdict", "waiter")

    def __init__(self, unit: DriveCommit) -> None:
        self.unit = unit
        self.decided = False
        self.verdict: Verdict = None
        self.waiter: trio.lowlevel.Task | None = None

    def wake(self) -> None:
        if self.waiter is not None:
            trio.lowlevel.reschedule(self.waiter)
            self.waiter = None

    def decide(self, verdict: Verdict) -> None:
        self.decided = True
        self.verdict = verdict
        self.wake()


def _not_now(_: object) -> trio.lowlevel.Abort:
    return trio.lowlevel.Abort.FAILED


def write_batch(source: Source, units: Sequence[DriveCommit]) -> list[Verdict]:
    """Store the units, all in one transaction if possible; one verdict each.

    First together in as few statements as the database allows. If a unit lost its run and it
    cannot be said which, once more with statements for each. If the database refuses something,
    each in a transaction of its own, so that a bad unit harms nobody but itself.
    """
    outcome: list[bool] | Unsure | None
    try:
        with connect(source) as connection:
            outcome = _together(connection, units)
    except Unreachable as away:
        return [away] * len(units)
    except Exception:  # noqa: BLE001 - drivers differ in what they raise; see what each unit gets
        outcome = None
    if isinstance(outcome, list):
        return [_verdict(stored) for stored in outcome]
    if outcome is not None and is_away(outcome.error):
        return [Unreachable(outcome.error)] * len(units)
    return [_alone(source, replace(unit, repeated=True)) for unit in units]


def _together(connection: Connection, units: Sequence[DriveCommit]) -> list[bool] | Unsure:
    if is_append(connection, units):
        try:
            return transact(connection, partial(append_all, units=units), writes_first=True)
        except Unreachable as away:
            return Unsure(None, away.error)
    try:
        return transact(connection, partial(commit_all, units=units), writes_first=True)
    except Contested:
        return transact(connection, partial(commit_each, units=units), writes_first=True)


def _alone(source: Source, unit: DriveCommit) -> Verdict:
    try:
        with connect(source) as connection:
            outcome = transact(connection, partial(commit_each, units=[unit]), writes_first=True)
        if not isinstance(outcome, Unsure):
            return _verdict(outcome[0])
        if is_away(outcome.error):
            return Unreachable(outcome.error)
        stored = read(source, partial(is_stored, commit=unit.commit))
    except Exception as error:  # noqa: BLE001 - the verdict of this unit, raised by its owner
        return error
    return None if stored else outcome.error


def _verdict(stored: bool) -> Verdict:
    return None if stored else StaleRun("The run is no longer this drive's.")
