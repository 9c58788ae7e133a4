"""Workers that stand still, lose their database or come too late, and runs that are not theirs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rungent import Agent, InteractionRequest, ToolContext, ToolContinuation, ToolResult, tool
from rungent.store.memory import MemoryStore
from rungent.testing.clock import virtual_now
from rungent.testing.faults import Fault, FaultyStore, Point, WorkerGone, crash_points, play
from tests.grammar import check_log
from tests.helpers import OWNER, START, calls, failed, of, opened, stage, types
from tests.recovery.journey import Journey, check
from tests.runtime.twins import never, runtime_over


class DeafStore(FaultyStore):
    """Hears of no commit of others, so that only its own next write can tell it."""

    async def watch(self, wake: Callable[[str | None], None], poll_seconds: float) -> None:
        await trio.sleep_forever()


@pytest.mark.parametrize("effect", ["write", "read"])
async def test_the_late_result_of_a_worker_that_stood_still_is_refused(
    autojump_clock: MockClock, effect: Any
) -> None:
    data = MemoryStore()
    mine = DeafStore(data)
    woke = trio.Event()
    runs: list[str | None] = []

    @tool(effect=effect, approval="never", timeout_seconds=500)
    async def act(ctx: ToolContext) -> str:
        """Suspend the whole worker in the first execution."""
        runs.append(ctx.idempotency_key)
        if len(runs) == 1:
            # It wakes shortly before its next renewal.
            await mine.stall(57)
            woke.set()
            return "late"
        return "in time"

    agent = Agent("helper", "Help.", tools=[act])
    async with (
        stage([calls("act")], agent=agent, store=mine) as on,
        stage(["Done."], agent=agent, store=data) as other,
    ):
        run_id = await on.start()
        events = await other.log(run_id)
        assert not woke.is_set()
        ended = await data.get_run(run_id)
        before = len(mine.writes)
        await woke.wait()
        await wait_all_tasks_blocked()
        assert "tool.completed" in mine.writes[before], "it did not even try"
        assert await data.get_run(run_id) == ended
        assert await data.list_events(run_id, after=0, limit=500) == events
    assert len(runs) == (2 if effect == "read" else 1)
    answers = of(events, "tool.completed") + of(events, "tool.failed")
    assert len(answers) == 1
    assert answers[0].get("code") == (None if effect == "read" else "outcome_unknown")


async def test_a_worker_that_stands_still_does_not_notice_it_and_holds_up_nobody(
    autojump_clock: MockClock,
) -> None:
    data = MemoryStore()
    mine = FaultyStore(data)
    async with (
        stage([never()], store=mine, agent=Agent("helper", "Help.")) as on,
        stage(["Done."], store=data, agent=Agent("helper", "Help.")) as other,
    ):
        run_id = await on.start()
        await on.until(run_id, "model.started")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(mine.stall, 50)
            events = await other.log(run_id)
            assert trio.current_time() < 50
    # Its lease counted from its start; the sweep of the other one finds it at most 5 s later.
    taken = next(event for event in events if event.type == "model.retrying")
    assert timedelta(seconds=30) <= taken.created_at - START <= timedelta(seconds=36)


async def test_a_run_is_safe_from_recovery_directly_after_an_answer(
    autojump_clock: MockClock,
) -> None:
    @tool(effect="read", approval="never")
    async def ask(ctx: ToolContext) -> ToolResult:
        """Ask."""
        following = ToolContinuation("accept", {})
        return ToolResult(interaction=InteractionRequest("text", "And?", continuation=following))

    @tool(effect="write", approval="never", requires_interaction_response=True)
    async def accept(ctx: ToolContext) -> str:
        """Accept, slowly."""
        await trio.sleep(55)
        return "accepted"

    store, agent = MemoryStore(), Agent("helper", "Help.", tools=[ask, accept])
    async with (
        stage([calls("ask"), "Done."], agent=agent, store=store) as on,
        stage([], agent=agent, store=store) as other,
    ):
        run_id = await on.start()
        asked = (await on.until(run_id, "interaction.requested"))[-1].data
        # It waited for longer than any lease.
        await trio.sleep(100)
        assert await other.runtime.recover_runs() == await on.runtime.recover_runs() == 0
        await on.runtime.submit_response(run_id, asked["id"], "yes", identity=OWNER)
        for _ in range(11):
            assert await other.runtime.recover_runs() == await on.runtime.recover_runs() == 0
            await trio.sleep(5)
        events = await on.log(run_id)
    assert types(events).count("tool.started") == 2
    assert "tool.failed" not in types(events)


async def test_a_run_that_breaks_whoever_takes_it_over_does_not_stop_the_others(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    async with stage([never(), never(), never()], store=store) as on:
        made = [await on.start()]
        made += [await (await opened(on.runtime, store, on.model)).start() for _ in range(2)]
        await on.until(made[2], "model.started")
        await on.runtime.stop(0)

    def provider(session: Any, run: Any) -> dict[str, Any]:
        if run.id == made[0]:
            raise ZeroDivisionError
        return {}

    async with stage(["a", "b"], store=store, dependency_provider=provider) as other:
        assert failed(await other.log(made[0])) == "context_failed"
        for run_id in made[1:]:
            assert types(await other.log(run_id))[-1] == "run.completed"


async def test_the_sweep_goes_on_after_an_error_of_the_database(
    autojump_clock: MockClock,
) -> None:
    """Also when the claim itself was stored and only its reply was lost."""
    for fault in (Fault.ERROR, Fault.LOST_REPLY):
        store = MemoryStore()
        async with stage([never()], store=store) as on:
            run_id = await on.start()
            await on.until(run_id, "model.started")
            await on.runtime.stop(0)
        faulty = FaultyStore(store, {1: fault})
        agent, now = Agent("helper", "Help."), virtual_now(START)
        async with runtime_over(faulty, ["Done."], agent, now=now) as other:
            stream = other.stream_events(run_id, identity=OWNER)
            events = [event async for event in stream]
        check_log(events)
        assert faulty.writes[0] == "claim_run"
        assert faulty.writes.count("claim_run") == 2
        assert types(events)[-1] == "run.completed"
        retries = [data["retry"] for data in of(events, "model.retrying")]
        assert retries == [2 if fault is Fault.LOST_REPLY else 1]


@pytest.mark.parametrize("fault", [f for f in Fault if f is not Fault.CRASH_IN_STEP])
async def test_a_stop_that_cannot_give_its_lease_back_only_delays_the_next_worker(
    autojump_clock: MockClock, fault: Fault
) -> None:
    store = MemoryStore()
    agent = Agent("helper", "Help.")
    # Writes: the session, the run, its first step, the release.
    mine = FaultyStore(store, {4: fault})
    async with stage([never()], store=mine, agent=agent) as on:
        run_id = await on.start()
        await on.until(run_id, "model.started")
        await on.runtime.stop(0)
    assert mine.writes[3:] == ["release_lease"]
    stopped = await store.get_run(run_id)
    assert stopped.status == "running"
    assert (stopped.lease is None) == (fault in {Fault.CRASH_AFTER, Fault.LOST_REPLY})
    async with stage(["Done."], store=store, agent=agent) as other:
        assert types(await other.log(run_id))[-1] == "run.completed"
    assert trio.current_time() < 40


async def test_a_run_lost_more_often_than_allowed_fails_and_frees_its_session(
    autojump_clock: MockClock,
) -> None:
    async def make() -> Journey:
        return await Journey.begin(MemoryStore(), virtual_now(START), max_recoveries=2)

    # Each worker is lost before the first commit after its claim.
    points = [Point(Fault.CRASH_BEFORE, number) for number in (2, 3, 3)]
    played = await play(make, *points)
    assert played.hit
    run = await played.scenario.run()
    assert run is not None
    assert (run.status, run.failure_code) == ("failed", "recovery_exhausted")
    assert played.scenario.done == {name: [] for name in played.scenario.done}


async def test_a_cancel_in_another_worker_stops_the_tool_within_a_second(
    autojump_clock: MockClock,
) -> None:
    over: list[float] = []

    @tool(effect="write", approval="never", timeout_seconds=500)
    async def act(ctx: ToolContext) -> None:
        """Act for long."""
        try:
            await trio.sleep(400)
        finally:
            over.append(trio.current_time())

    store, agent = MemoryStore(), Agent("helper", "Help.", tools=[act])
    async with (
        stage([calls("act")], agent=agent, store=store) as on,
        stage([], agent=agent, store=store) as other,
    ):
        run_id = await on.start()
        await on.until(run_id, "tool.started")
        await trio.sleep(20)
        await other.cancel(run_id)
        cancelled = trio.current_time()
        assert types(await other.log(run_id))[-1] == "run.cancelled"
        await trio.sleep(1)
        assert len(over) == 1
        assert over[0] <= cancelled + 1
        assert types(await on.log(run_id))[-1] == "run.cancelled"
        assert [claim.state for claim in await store.list_claims(run_id)] == ["in_doubt"]


# --- the faults themselves ---------------------------------------------------------------------


async def test_nothing_of_a_crashed_worker_reaches_the_store_also_not_its_clean_up(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    mine = FaultyStore(store)
    async with stage([never()], store=mine) as on:
        run_id = await on.start()
        await on.until(run_id, "model.started")
        before = await store.get_run(run_id)
        assert before.lease is not None
        mine.crash()
        with pytest.raises(WorkerGone):
            await mine.get_run(run_id)
        with pytest.raises(WorkerGone):
            await on.start()
        await on.runtime.stop(0)
    assert await store.get_run(run_id) == before
    assert "release_lease" not in mine.writes


async def test_an_error_of_the_client_is_not_hidden(autojump_clock: MockClock) -> None:
    class Impatient(Journey):
        async def client(self, runtime: Any) -> None:
            raise ZeroDivisionError

    async def make() -> Journey:
        return await Impatient.begin(MemoryStore(), virtual_now(START))

    with pytest.RaisesGroup(pytest.RaisesGroup(ZeroDivisionError)):
        await play(make)


async def test_a_point_that_is_never_reached_is_told(autojump_clock: MockClock) -> None:
    async def make() -> Journey:
        return await Journey.begin(MemoryStore(), virtual_now(START))

    for fault in Fault:
        played = await play(make, Point(fault, 10_000))
        assert not played.hit
        await check(played.scenario)


async def test_every_kind_of_crash_is_tried_when_none_is_named(
    autojump_clock: MockClock,
) -> None:
    class Brief(Journey):
        async def client(self, runtime: Any) -> None:
            await runtime.set_session_title(self.session.id, "x", identity=OWNER)

    async def make() -> Journey:
        return await Brief.begin(MemoryStore(), virtual_now(START))

    tried = [played.points[0] async for played in crash_points(make)]
    assert [str(point) for point in tried[:3]] == [
        "crash before, write 1 set_title",
        "crash after, write 1 set_title",
        "crash, step 1",
    ]
