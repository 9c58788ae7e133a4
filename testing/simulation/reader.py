"""A reader of a run that stops, leaves and comes back: in the end it must have read the log.

Source: docs/simulation.md#what-is-checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import trio

from rungent.events import TERMINAL_TYPES, Event
from rungent.runtime import Runtime
from rungent.testing.simulation.client import USER
from rungent.testing.simulation.plan import Chance, Kind
from rungent.testing.simulation.stage import Stage
from rungent.testing.simulation.workers import Worker

__all__ = ["Reader"]


@dataclass
class Reader:
    """Reads one run from its first event to its last, over whatever worker there is."""

    stage: Stage
    workers: Sequence[Worker]
    run_id: str
    read: list[Event] = field(default_factory=list[Event])
    _done: set[Chance] = field(default_factory=set[Chance])

    async def run(self) -> None:
        """Read until the run has ended, whatever comes between."""
        while not self._ended:
            worker = self.stage.stream("readers").choice(self.workers)
            try:
                pause = await worker.use(self._once)
            except OSError:
                pause = 0.5
            await trio.sleep(pause)
        stored = await self.stage.store.list_events(self.run_id, after=0, limit=10_000)
        same = [event.id for event in stored] == [event.id for event in self.read]
        self.stage.require(same, f"run {self.run_id}: a reader did not get exactly the log")

    @property
    def _ended(self) -> bool:
        return bool(self.read) and self.read[-1].type in TERMINAL_TYPES

    async def _once(self, runtime: Runtime) -> float:
        """Read until the stream ends or the reader leaves; how long it stays away."""
        after = self.read[-1].seq if self.read else 0
        stream = runtime.stream_events(
            self.run_id, identity=USER, after_seq=after, until="terminal"
        )
        async for event in stream:
            self.read.append(event)
            chance = self._chance_at(event.seq)
            if chance is None:
                continue
            if chance.way == "leave":
                return chance.seconds
            await trio.sleep(chance.seconds)
        return 0.5

    def _chance_at(self, seq: int) -> Chance | None:
        for chance in self.stage.plan.of(Kind.SLOW_READER):
            if chance.number == seq and chance not in self._done:
                self._done.add(chance)
                self.stage.fire(str(chance))
                return chance
        return None
