"""A worker is lost at any write and any await: nobody is answered twice or closed twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
import trio
from trio.testing import MockClock

from rungent import Agent, Conflict, Identity, Run, Runtime, Session
from rungent.llm import ModelRequest
from rungent.records import RunStatus
from rungent.store import MemoryStore, Store
from rungent.testing import ScriptedModel
from rungent.testing.clock import HoldAutojump, virtual_now
from rungent.testing.faults import CRASHES, Fault, crash_points
from rungent.testing.store_samples import session_of
from tests.asking.channel import ASK, Channel, ask_channel
from tests.grammar import check_log
from tests.helpers import OWNER, START, of
from tests.persistence.stores import sql_store
from tests.recovery.journey import check_transcript

End = Literal["click", "cancel", "expire"]


def reply(request: ModelRequest) -> Any:
    """Asks in the channel first, and says a word then."""
    return "Done." if any(m["role"] == "tool" for m in request.messages) else ASK


@dataclass
class Asking:
    """One run that asks in the channel, and what then becomes of it."""

    store: Store
    session: Session
    end: End
    now: Callable[[], datetime]
    idempotent: bool = False
    channel: Channel = field(default_factory=Channel)
    accepted: int = 0

    def runtime(self, store: Store) -> Runtime:
        """A worker, its tools made anew."""
        made = ask_channel(expires_in=timedelta(seconds=5), idempotent=self.idempotent)
        return Runtime(
            agents=[Agent("helper", "Help.", tools=[made])],
            model=ScriptedModel([reply] * 9),
            store=store,
            now=self.now,
            dependency_provider=lambda session, run: {"chat": self.channel},
            # Few sweeps make few places to be hit.
            recovery_interval_seconds=10,
            lease_renew_seconds=25,
            follow_poll_seconds=30,
        )

    async def recovering(self) -> None:
        """The lease lapses while the next worker waits."""
        await trio.lowlevel.checkpoint()

    async def client(self, runtime: Runtime) -> None:
        """Start the run, do what this is about, and see the end of it and of the message."""
        with trio.fail_after(3000):
            over = False
            while not over:
                over = await self._see(runtime)
            if self.end != "click":
                await trio.sleep(11)

    async def _see(self, runtime: Runtime) -> bool:
        try:
            receipt = await runtime.create_run(
                self.session.id, "go", identity=OWNER, idempotency_key="once"
            )
            stream = runtime.stream_events(receipt.run_id, identity=OWNER)
            events = [event async for event in stream]
            if events[-1].type == "interaction.requested":
                await self._act(runtime, receipt.run_id)
            return not (await runtime.get_run(receipt.run_id, identity=OWNER)).active
        except (OSError, Conflict):
            await trio.sleep(1)
            return False

    async def _act(self, runtime: Runtime, run_id: str) -> None:
        if self.end == "expire":
            await trio.sleep(6)
        if self.end == "cancel":
            await runtime.cancel_run(run_id, identity=OWNER)
        if self.end == "click":
            token = self.channel.last.buttons["Approve"]
            outcome = await runtime.act(token, identity=Identity("bob"))
            self.accepted += outcome.accepted

    async def run(self) -> Run:
        """The one run."""
        (run,) = await self.store.list_runs(self.session.id, limit=9)
        return run


async def check(played: Asking) -> str:
    """Every promise, however often the worker was hit; how the run ended."""
    run = await played.run()
    assert not run.active
    events = await played.store.list_events(run.id, after=0, limit=999)
    check_log(events)
    check_transcript(await played.store.list_messages(played.session.id))
    asked, resolved = of(events, "interaction.requested"), of(events, "interaction.resolved")
    assert len(asked) == len(resolved) <= 1, "asked or answered twice"
    assert played.accepted <= 1
    heard = [text for message in played.channel.messages for text in message.texts[1:]]
    assert len(heard) <= 1, "told twice"
    (claim,) = await played.store.list_claims(run.id)
    failed = [one["code"] for one in of(events, "tool.failed")]
    if asked:
        stored = await played.store.get_interaction(asked[0]["id"])
        assert stored.closing is None, "nobody took the message's end"
        assert stored.status == "resolved"
    if played.end == "click" and not failed:
        assert heard == ["Ship it: approved by bob"]
        assert claim.state == "succeeded"
    if failed and played.end != "expire":
        assert set(failed) == {"outcome_unknown"}
    return run.status


@pytest.mark.parametrize("end", ["click", "cancel", "expire"])
async def test_a_worker_is_lost_at_any_await(autojump_clock: MockClock, end: End) -> None:
    async def make() -> Asking:
        return await begin(MemoryStore(), end, virtual_now(START))

    told = 0
    async for played in crash_points(make, Fault.CRASH_IN_STEP):
        status = await check(played.scenario)
        assert (status == RunStatus.CANCELLED) <= (end == "cancel")
        told += any(len(message.texts) > 1 for message in played.scenario.channel.messages)
    assert told, "it never came so far"


async def test_an_idempotent_tool_always_comes_to_its_end(autojump_clock: MockClock) -> None:
    async def make() -> Asking:
        made = await begin(MemoryStore(), "click", virtual_now(START))
        made.idempotent = True
        return made

    async for played in crash_points(make, *CRASHES):
        scenario = played.scenario
        run = await scenario.run()
        assert run.status == RunStatus.COMPLETED
        events = await scenario.store.list_events(run.id, after=0, limit=999)
        check_log(events)
        assert of(events, "tool.failed") == []
        assert len(of(events, "interaction.resolved")) == 1


@pytest.mark.parametrize("end", ["click", "cancel", "expire"])
async def test_a_worker_is_lost_at_any_write_to_a_file(
    autojump_clock: MockClock, tmp_path: Path, end: End
) -> None:
    store = sql_store("sqlite", tmp_path, hold=HoldAutojump(autojump_clock))
    await store.create_schema()

    async def make() -> Asking:
        return await begin(store, end, virtual_now(START))

    async with store.open():
        async for played in crash_points(make, Fault.CRASH_BEFORE, Fault.CRASH_AFTER):
            await check(played.scenario)


async def begin(store: Store, end: End, now: Callable[[], datetime]) -> Asking:
    """The scenario in a session of its own."""
    session = session_of(OWNER.subject_id, agent_name="helper")
    await store.create_session(session)
    return Asking(store, session, end, now)
