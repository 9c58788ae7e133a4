"""Group commit: drives queue, and whoever comes first writes for everybody queued.

There is no background task and no delay. A batch is what arrived while the previous transaction
ran; alone, a commit is a batch of one. Every unit is guarded by its own version, owner and
token and gets its own verdict. Source: docs/persistence.md#group-commit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import trio
from sqlalchemy import Connection, Engine

from rungent.errors import StaleRun
from rungent.persistence.commits import DriveCommit, commit_all, commit_each, is_stored
from rungent.persistence.sqlite import lock_for_writing

__all__ = ["GroupCommit", "write_batch"]

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

    async def commit(self, unit: DriveCommit) -> None:
        """Store the unit, or raise why not: StaleRun, or the database's error.

        A cancellation that comes after the first checkpoint is too late: the unit is queued and
        the caller learns its verdict.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        entry = _Entry(unit)
        self._queue.append(entry)
        with trio.CancelScope(shield=True):
            if self._leader:
                await entry.woken.wait()
            if not entry.decided:
                await self._lead()
        if entry.verdict is not None:
            raise entry.verdict

    async def _lead(self) -> None:
        """Write all that is queued, wake those, and hand over to the next in the queue."""
        self._leader = True
        batch: list[_Entry] = []
        try:
            # Taking the turn also lets everybody run who is about to commit in this very moment.
            async with self._turn:
                batch, self._queue = self._queue, []
                verdicts = await self._write([entry.unit for entry in batch])
            for entry, verdict in zip(batch, verdicts, strict=True):
                entry.decide(verdict)
        finally:
            # Reached without verdicts only when the program is being torn down.
            for entry in batch:
                if not entry.decided:
                    entry.decide(RuntimeError("the outcome of the commit is unknown"))
            if self._queue:
                self._queue[0].woken.set()
            else:
                self._leader = False


class _Entry:
    """A unit in the queue. Woken undecided, its owner leads."""

    __slots__ = ("decided", "unit", "verdict", "woken")

    def __init__(self, unit: DriveCommit) -> None:
        self.unit = unit
        self.woken = trio.Event()
        self.decided = False
        self.verdict: Verdict = None

    def decide(self, verdict: Verdict) -> None:
        self.decided = True
        self.verdict = verdict
        self.woken.set()


class _Contested(Exception):
    """Not every unit of a batch holds its run."""


def write_batch(engine: Engine, units: Sequence[DriveCommit]) -> list[Verdict]:
    """Store the units, all in one transaction if possible; one verdict each.

    First together in as few statements as the driver allows. If a unit lost its run, once more
    with one guarded statement a unit. If the database refuses something, each in a transaction
    of its own, so that a bad unit harms nobody but itself.
    """
    try:
        try:
            with engine.begin() as connection:
                lock_for_writing(connection, writes_first=True)
                _all_or_contested(connection, units)
            return [None] * len(units)
        except _Contested:
            with engine.begin() as connection:
                lock_for_writing(connection, writes_first=True)
                stored = commit_each(connection, units)
            return [None if done else _stale() for done in stored]
    except Exception:  # noqa: BLE001 - drivers differ in what they raise; see what each unit gets
        return [_write_alone(engine, unit) for unit in units]


def _all_or_contested(connection: Connection, units: Sequence[DriveCommit]) -> None:
    if not commit_all(connection, units):
        raise _Contested


def _write_alone(engine: Engine, unit: DriveCommit) -> Verdict:
    try:
        with engine.begin() as connection:
            lock_for_writing(connection, writes_first=True)
            stored = commit_each(connection, [unit])[0] or is_stored(connection, unit)
    except Exception as error:  # noqa: BLE001 - the verdict of this unit, raised by its owner
        return error
    return None if stored else _stale()


def _stale() -> StaleRun:
    return StaleRun("The run is no longer this drive's.")
