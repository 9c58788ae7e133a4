"""One run that does everything a run can do, to be hit at any place, and its promises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import trio

from rungent import (
    Conflict,
    Event,
    Message,
    Run,
    Runtime,
    Session,
    ToolResult,
)
from rungent.records import RunStatus, ToolClaim
from rungent.store import Store
from rungent.testing.store_samples import creation_of, session_of
from tests.grammar import check_log
from tests.helpers import OWNER, START, of
from tests.recovery.agent import AGENT, ONCE, REPEATABLE, Reader

__all__ = ["CancelledJourney", "Journey", "check", "check_cancelled", "check_transcript"]


@dataclass
class Journey:
    """The scenario: what the world looks like, whoever works on the run.

    `done` is the world outside: for each tool the keys under which it took effect. `doubtful` are
    the calls that were begun when the worker was lost, and that nobody may begin again.
    """

    store: Store
    session: Session
    now: Callable[[], datetime]
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    done: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in ONCE})
    doubtful: set[str] | None = None
    lapse: timedelta = timedelta()
    heard: list[list[Event]] = field(default_factory=list[list[Event]])

    @classmethod
    async def begin(
        cls, store: Store, now: Callable[[], datetime] | None = None, **options: Any
    ) -> Journey:
        """A journey in a new session; without `now` time stands still but for lapses."""
        session = session_of(OWNER.subject_id, agent_name="helper")
        await store.create_session(session)
        return cls(store, session, now or (lambda: START), options)

    # --- workers -----------------------------------------------------------------------------

    def runtime(self, store: Store) -> Runtime:
        """A worker; what its listener hears is kept."""
        heard: list[Event] = []
        self.heard.append(heard)
        return Runtime(
            agents=[AGENT],
            model=Reader(),
            store=store,
            now=lambda: self.now() + self.lapse,
            event_listener=heard.append,
            dependency_provider=lambda session, run: {"world": self},
            **self.options,
        )

    async def recovering(self) -> None:
        """Note what was begun, and let the lost worker's lease lapse."""
        claims = await self.claims()
        started = {claim.tool_name for claim in claims if claim.state == "started"}
        self.doubtful = (self.doubtful or set()) | (started - REPEATABLE)
        self.lapse += timedelta(seconds=31)

    async def act(self, tool_name: str, key: str) -> None:
        """Take effect between two checkpoints; a service knows a key that it has seen."""
        await trio.lowlevel.checkpoint()
        done = self.done[tool_name]
        if tool_name != "charge" or key not in done:
            done.append(key)
        await trio.lowlevel.checkpoint()

    async def find(self, tool_name: str, key: str) -> bool:
        """Whether the tool took effect under this key."""
        await trio.lowlevel.checkpoint()
        return key in self.done[tool_name]

    # --- the client --------------------------------------------------------------------------

    async def client(self, runtime: Runtime) -> None:
        """Create the run, answer what is asked, complete what is deferred, see it end."""
        with trio.fail_after(1000):
            while not await self._tolerant(self._accompany, runtime):
                await trio.lowlevel.checkpoint()

    async def _tolerant(self, do: Callable[[Runtime], Awaitable[bool]], runtime: Runtime) -> bool:
        """False also when somebody else was faster or the store failed: then look again."""
        try:
            return await do(runtime)
        except (OSError, Conflict):
            return False

    async def _accompany(self, runtime: Runtime) -> bool:
        receipt = await runtime.create_run(
            self.session.id, "go", identity=OWNER, idempotency_key="once"
        )
        while await self._until_asked(runtime, receipt.run_id):
            pass
        return True

    async def _until_asked(self, runtime: Runtime, run_id: str) -> bool:
        """Follow the run and answer what it asks; whether it may go on then."""
        asked = ""
        async for event in runtime.stream_events(run_id, identity=OWNER):
            if event.type == "interaction.requested":
                asked = event.data["id"]
            if event.type == "run.waiting_external":
                await self._complete(runtime, run_id)
        run = await runtime.get_run(run_id, identity=OWNER)
        if run.status is RunStatus.WAITING_INPUT:
            await runtime.submit_response(run_id, asked, "approve", identity=OWNER)
        return run.active

    async def _complete(self, runtime: Runtime, run_id: str) -> None:
        run = await runtime.get_run(run_id, identity=OWNER)
        if run.status is RunStatus.WAITING_EXTERNAL:
            await runtime.resume_deferred(run_id, "job", ToolResult(data="ok"), identity=OWNER)

    # --- looking -----------------------------------------------------------------------------

    async def run(self) -> Run | None:
        """The run, if it was created."""
        every = await self.store.list_runs(self.session.id, limit=9)
        runs = [run for run in every if run.agent_name == AGENT.name]
        assert len(runs) <= 1, "it was created twice"
        return runs[0] if runs else None

    async def claims(self) -> list[ToolClaim]:
        """The ledger."""
        run = await self.run()
        return [] if run is None else await self.store.list_claims(run.id)


class CancelledJourney(Journey):
    """The same run, cancelled by its client as soon as the first write has begun."""

    async def _until_asked(self, runtime: Runtime, run_id: str) -> bool:
        async for event in runtime.stream_events(run_id, identity=OWNER):
            if event.type == "tool.started" and event.data["name"] == "note":
                await runtime.cancel_run(run_id, identity=OWNER)
        return (await runtime.get_run(run_id, identity=OWNER)).active


async def ended(journey: Journey, status: RunStatus) -> list[Event]:
    """The log of a run that has ended so, whole and in order, with its session free again."""
    run = await journey.run()
    assert run is not None
    assert (run.status, run.lease, run.state.turn) == (status, None, ())
    events = await journey.store.list_events(run.id, after=0, limit=1000)
    check_log(events)
    assert run.event_seq == len(events)
    check_transcript(await journey.store.list_messages(journey.session.id))
    for heard in journey.heard:
        seqs = [event.seq for event in heard]
        assert seqs == sorted(set(seqs)), "the listener heard something twice or late"
    # The run that proves it is of an agent that nobody serves.
    await journey.store.create_run(creation_of(journey.session, agent_name="nobody"))
    return events


async def check(journey: Journey) -> None:
    """Every promise about a run that was completed, however often it was hit."""
    events = await ended(journey, RunStatus.COMPLETED)
    check_approval(events)
    unknown = {data["name"] for data in of(events, "tool.failed")}
    assert {data["code"] for data in of(events, "tool.failed")} <= {"outcome_unknown"}
    assert journey.doubtful in (None, unknown)
    assert unknown.isdisjoint(REPEATABLE)
    claims = await journey.claims()
    assert {c.tool_name for c in claims if c.state == "in_doubt"} == unknown
    assert {c.state for c in claims} <= {"in_doubt", "succeeded"}
    for name, keys in journey.done.items():
        assert len(keys) == 1 or (name in unknown and not keys), f"{name} took effect: {keys}"


async def check_cancelled(journey: Journey) -> None:
    """Every promise about a run that was cancelled while, or shortly after, it first wrote."""
    await ended(journey, RunStatus.CANCELLED)
    for claim in await journey.claims():
        assert claim.state != "started"
        if claim.state == "succeeded" and claim.tool_name in ONCE:
            assert len(journey.done[claim.tool_name]) == 1
    assert all(len(keys) <= 1 for keys in journey.done.values())


def check_transcript(messages: Sequence[Message]) -> None:
    """Every call has its one answer before the next other message."""
    wanted: list[str | None] = []
    for message in messages:
        if message.role == "tool":
            assert message.tool_call_id == wanted.pop(0)
            continue
        assert wanted == []
        wanted = [call.id for call in message.tool_calls]
    assert wanted == []
    assert [m.position for m in messages] == list(range(1, len(messages) + 1))
    assert Counter(m.role for m in messages)["user"] == 1


def check_approval(events: Sequence[Event]) -> None:
    """It was asked for once and given once, and then what was approved began at most once."""
    asked = [data["kind"] for data in of(events, "interaction.requested")]
    assert asked == ["approval", "text", "text"]
    outcomes = [data["outcome"] for data in of(events, "interaction.resolved")]
    assert outcomes == ["approved", "answered", "answered"]
    began = Counter(data["name"] for data in of(events, "tool.started"))
    assert all(began[name] == 1 for name in ("note", "delete", "accept", "render"))
