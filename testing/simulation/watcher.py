"""Looks at everything that is stored after each commit, and checks it.

Source: docs/simulation.md#what-is-checked.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import trio

from rungent.records import Run, RunStatus
from rungent.testing.simulation.rules import RunRules, Snapshot, Violation
from rungent.testing.simulation.scenario import Seen
from rungent.testing.simulation.stage import Stage

__all__ = ["Watcher"]

PAGE = 500


@dataclass
class Watcher:
    """The rules of each run, and the picture that the scenario's own checks get."""

    stage: Stage
    seen: Seen = field(default_factory=Seen)
    _rules: dict[str, RunRules] = field(default_factory=dict[str, RunRules])

    async def run(self) -> None:
        """Look after each commit, until cancelled."""
        while True:
            await self.stage.committed.wait()
            self.stage.committed = trio.Event()
            await self._checked_look()

    async def _checked_look(self) -> None:
        try:
            await self.look()
        except AssertionError as broken:
            self.stage.fail(_text(broken))

    async def look(self) -> None:
        """Check what is stored now. Raises AssertionError."""
        for session_id in self.stage.session_ids:
            runs = await self.stage.store.list_runs(session_id, limit=PAGE)
            if sum(run.active for run in runs) > 1:
                raise Violation(f"session {session_id}: two runs are active at once")
            for run in runs:
                before = self.seen.runs.get(run.id)
                if before is None or before.version != run.version:
                    await self._look_at(run)
        self.seen.executions = self.stage.executions
        self.stage.scenario.check(self.seen)

    async def _look_at(self, run: Run) -> None:
        rules = self._rules.get(run.id)
        if rules is None:
            rules = self._rules[run.id] = RunRules(run.id, self.stage.tools)
            self.seen.logs[run.id] = []
        snapshot = await self._snapshot(run, rules.seen)
        self.seen.runs[run.id] = snapshot.run
        if not snapshot.run.active:
            self.stage.ended_at.setdefault(run.id, trio.current_time())
        self.seen.logs[run.id] += snapshot.events
        for event in snapshot.events:
            self.stage.note(
                f"   {event.run_id[:8]} {event.seq:3} {event.type} {_brief(event.data)}"
            )
        rules.take(snapshot, harmed=bool(self.stage.harms))

    async def _snapshot(self, run: Run, after: int) -> Snapshot:
        """The run, its new events and its ledger, all of one moment."""
        store = self.stage.store
        while True:
            events = await store.list_events(run.id, after=after, limit=PAGE)
            claims = await store.list_claims(run.id)
            again = await store.get_run(run.id)
            if again.version == run.version:
                return Snapshot(again, events, claims)
            run = again

    async def look_last(self) -> None:
        """Check what is left when every conversation is over and every worker stopped."""
        await self.look()
        for session_id in self.stage.session_ids:
            messages = await self.stage.store.list_messages(session_id)
            for run in await self.stage.store.list_runs(session_id, limit=PAGE):
                if run.status is RunStatus.RUNNING or run.status is RunStatus.QUEUED:
                    raise Violation(f"run {run.id}: {run.status} although its user is done")
                own = [m for m in messages if m.run_id == run.id]
                if not run.active:
                    self._rules[run.id].check_transcript(run, own)
        self.stage.scenario.check_end(self.seen)
        if self.stage.open_streams:
            raise Violation(f"{self.stage.open_streams} attempts of the model are still open")


def _brief(data: object) -> str:
    text = str(data)
    return text if len(text) <= 100 else f"{text[:99]}…"


def _text(broken: AssertionError) -> str:
    """Its first line: pytest adds whole pictures of everything below it."""
    return next(iter(str(broken).strip().splitlines()), type(broken).__name__)
