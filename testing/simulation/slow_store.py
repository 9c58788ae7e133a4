"""The store as one worker of a play reaches it: slow, and faulty where the plan says.

Source: docs/simulation.md#plans.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import trio
from typing_extensions import override

from rungent.testing.faulty_store import Fault, FaultyStore
from rungent.testing.simulation.plan import Chance, Kind
from rungent.testing.simulation.stage import Stage

__all__ = ["SlowStore", "faults_of"]

T = TypeVar("T")

_FAULTS = {
    (Kind.CRASH, "before"): Fault.CRASH_BEFORE,
    (Kind.CRASH, "after"): Fault.CRASH_AFTER,
    (Kind.DB, "error"): Fault.ERROR,
    (Kind.DB, "lost reply"): Fault.LOST_REPLY,
    (Kind.DB, "stall"): Fault.STALL,
}


def faults_of(stage: Stage, worker: int, after: int) -> dict[int, Chance]:
    """The chances at the writes of a worker that already wrote `after` times, counted anew."""
    chances = (*stage.plan.of(Kind.CRASH, worker=worker), *stage.plan.of(Kind.DB, worker=worker))
    return {
        chance.number - after: chance
        for chance in chances
        if chance.number > after and (chance.kind, chance.way) in _FAULTS
    }


class SlowStore(FaultyStore):
    """Takes its time before and after each operation, so that others come in between."""

    def __init__(self, stage: Stage, worker: int, chances: Mapping[int, Chance]) -> None:
        kinds = {n: _FAULTS[c.kind, c.way] for n, c in chances.items()}
        super().__init__(stage.store, kinds)
        self._stage = stage
        self._who = f"store of {worker}"
        self._chances = chances

    @override
    async def stall(self, seconds: float) -> None:
        chance = self._chances.get(len(self.writes))
        await super().stall(seconds if chance is None else chance.seconds)

    @override
    async def _read(self, read: Callable[[], Awaitable[T]]) -> T:
        await self._stage.latency(self._who)
        result = await super()._read(read)
        await self._stage.latency(self._who)
        return result

    @override
    async def _write(self, what: str, write: Callable[[], Awaitable[T]]) -> T:
        await self._stage.latency(self._who)
        chance = self._chances.get(len(self.writes) + 1)
        if chance is not None and not self.crashed:
            self._stage.fire(f"{chance} ({what})", harm=True)
        result = await super()._write(what, write)
        self._stage.committed.set()
        with trio.CancelScope(shield=True):
            # A writer always learns the verdict.
            await self._stage.latency(self._who)
        return result

    @override
    async def watch(self, wake: Callable[[str | None], None], poll_seconds: float) -> None:
        await self._store.watch(wake, poll_seconds)
