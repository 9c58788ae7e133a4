"""Lost workers: what goes on elsewhere, and what is never done twice."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rungent import Agent, RunActivity, ToolCall, ToolContext, tool
from rungent.llm.port import ModelCompleted, ModelFailure
from rungent.records import Lease
from rungent.store.memory import MemoryStore
from rungent.testing.scripted import Delay
from rungent.testing.store_samples import creation_of, session_of
from tests.drive.stores import FaultyStore
from tests.helpers import OWNER, START, Stage, asking, calls, of, opened, stage, types
from tests.runtime.twins import never

CUT_OFF = {"commit", "renew_lease", "release_lease", "claim_run", "get_session", "create_run"}


async def lost_worker(on: Stage, store: FaultyStore) -> None:
    """The worker's store answers no more; its drives stop when the lease runs out."""
    store.broken |= CUT_OFF
    await wait_all_tasks_blocked()


async def test_a_worker_that_cannot_renew_stops_its_drive_before_another_begins(
    autojump_clock: MockClock,
) -> None:
    spans: list[tuple[str, float]] = []

    @tool(effect="read", approval="never")
    async def look(ctx: ToolContext) -> str:
        """Look for long."""
        try:
            spans.append(("begin", trio.current_time()))
            await trio.sleep(500)
        finally:
            spans.append(("end", trio.current_time()))
        return "seen"

    data = MemoryStore()
    mine = FaultyStore.beside(data)
    agent = Agent("helper", "Help.", tools=[look])
    async with (
        stage([calls("look")], agent=agent, store=mine) as on,
        stage(["Done."], agent=agent, store=data) as other,
    ):
        run_id = await on.start()
        await on.until(run_id, "tool.started")
        await trio.sleep(12)
        await lost_worker(on, mine)
        await other.until(run_id, "tool.started", 2)
        assert [what for what, _ in spans] == ["begin", "end", "begin"]
        assert spans[1][1] <= spans[2][1] <= 46
        await other.cancel(run_id)


async def test_a_drive_that_lost_its_lease_stores_nothing_even_if_nobody_took_it_over(
    autojump_clock: MockClock,
) -> None:
    refused: list[Exception] = []

    @tool(effect="read", approval="never")
    async def look(ctx: ToolContext) -> None:
        """Hide from being stopped, then report."""
        with trio.CancelScope(shield=True):
            await trio.sleep(60)
            try:
                await ctx.report_progress("Still here.")
            except RuntimeError as error:
                refused.append(error)

    store = FaultyStore()
    async with stage([calls("look")], tools=[look], store=store) as on:
        run_id = await on.start()
        await on.until(run_id, "tool.started")
        store.broken.add("renew_lease")
        await trio.sleep(50)
        store.broken.clear()
        await trio.sleep(10.1)
        assert len(refused) == 1
        assert "activity.updated" not in types(await on.so_far(run_id))
        await on.cancel(run_id)


@pytest.mark.parametrize(
    ("effect", "idempotent", "executions"),
    [("read", False, 2), ("write", True, 2), ("write", False, 1), ("destructive", False, 1)],
)
async def test_a_call_of_a_lost_worker_is_repeated_only_if_that_is_harmless(
    autojump_clock: MockClock, effect: Any, idempotent: bool, executions: int
) -> None:
    keys: list[str | None] = []

    @tool(effect=effect, approval="never", idempotent=idempotent)
    async def act(ctx: ToolContext) -> str:
        """Act; the first time for ever."""
        keys.append(ctx.idempotency_key)
        await ctx.report_progress("Half.")
        if len(keys) == 1:
            await trio.sleep_forever()
        return "done"

    store = MemoryStore()
    agent = Agent("helper", "Help.", tools=[act])
    async with stage([asking(ToolCall("act", {}, "id1"))], agent=agent, store=store) as on:
        run_id = await on.start()
        await on.until(run_id, "activity.updated")
        await on.runtime.stop(0)
        async with stage(["Done."], agent=agent, store=store) as other:
            events = await other.log(run_id)
            told = json.loads(other.model.requests[0].messages[-1]["content"])  # type: ignore[arg-type]
    assert len(keys) == executions
    assert len(set(keys)) == 1
    if executions == 2:
        assert told["tool_status"] == "success"
        assert types(events).count("tool.started") == 2
    else:
        assert (told["code"], told["retryable"]) == ("outcome_unknown", False)
        assert of(events, "tool.failed")[0]["code"] == "outcome_unknown"
        assert of(events, "activity.updated")[-1]["status"] == "failed"
        assert [c.state for c in await store.list_claims(run_id)] == ["in_doubt"]


async def test_a_run_that_is_lost_again_and_again_fails_in_the_end(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    async with stage([never()], store=store, max_recoveries=2) as on:
        run_id = await on.start()
        await on.until(run_id, "model.started")
        await on.runtime.stop(0)
        for _ in range(2):
            async with stage([never()], store=store, max_recoveries=2) as other:
                await wait_all_tasks_blocked()
                await other.runtime.stop(0)
        async with stage([], store=store, max_recoveries=2) as other:
            events = await other.log(run_id)
    assert of(events, "run.failed")[0]["code"] == "recovery_exhausted"
    assert [d["retry"] for d in of(events, "model.retrying")] == [1, 2]


async def test_a_recovered_step_has_a_fresh_retry_budget(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    failures = [ModelFailure("network")] * 3
    async with stage([*failures, never()], store=store) as on:
        run_id = await on.start()
        await on.until(run_id, "model.retrying", 3)
        await trio.sleep(5)
        await on.runtime.stop(0)
        async with stage([*failures, "ok"], store=store) as other:
            events = await other.log(run_id)
    assert [d["retry"] for d in of(events, "model.retrying")] == [1, 2, 3, 1, 1, 2, 3]
    assert types(events)[-1] == "run.completed"


async def test_a_healthy_run_is_never_taken_over(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with (
        stage([[Delay(500), ModelCompleted("ok")]], store=store) as on,
        stage([], store=store) as other,
    ):
        run_id = await on.start()
        await on.until(run_id, "model.started")
        token = (await on.run(run_id)).fencing_token
        for _ in range(20):
            await trio.sleep(20)
            assert await other.runtime.recover_runs() == 0
            assert await on.runtime.recover_runs() == 0
        assert (await on.run(run_id)).fencing_token == token
        await on.log(run_id)


async def test_the_sweep_survives_errors_and_goes_on_with_other_runs(
    autojump_clock: MockClock,
) -> None:
    data = MemoryStore()
    async with stage([never(), never()], store=data) as on:
        first = await on.start()
        second = await (await opened(on.runtime, data, on.model)).start()
        await on.until(second, "model.started")
        await on.runtime.stop(0)
    mine = FaultyStore.beside(data)
    claims: list[int] = []

    def breaks(operation: str) -> None:
        if operation == "claim_run":
            claims.append(1)
            (mine.broken.add if len(claims) == 1 else mine.broken.discard)("claim_run")

    mine.before = breaks
    async with stage(["a", "b"], store=mine) as other:
        await wait_all_tasks_blocked()
        assert {(await data.get_run(run_id)).status for run_id in (first, second)} == {
            "running",
            "completed",
        }
        for run_id in (first, second):
            assert types(await other.log(run_id))[-1] == "run.completed"


async def test_only_runs_of_own_agents_are_recovered_and_not_beyond_capacity(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    async with stage([never()] * 3, store=store) as on:
        made = [await on.start()]
        for _ in range(2):
            made.append(await (await opened(on.runtime, store, on.model)).start())  # noqa: PERF401
        await on.runtime.stop(0)
    async with stage([], agent=Agent("stranger", "Help."), store=store) as stranger:
        assert await stranger.runtime.recover_runs() == 0
    slow = [[Delay(20), ModelCompleted("ok")] for _ in range(3)]
    async with stage(slow, store=store, max_concurrent_runs=2) as other:
        await wait_all_tasks_blocked()
        leased = [(await store.get_run(run_id)).lease is not None for run_id in made]
        assert sorted(leased) == [False, True, True]
        for run_id in made:
            assert types(await other.log(run_id))[-1] == "run.completed"


async def test_any_number_of_lost_runs_is_recovered_without_waiting_between_them(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    for _ in range(250):
        session = session_of(OWNER.subject_id, agent_name="helper")
        await store.create_session(session)
        lost = Lease(owner="wrk_gone", expires_at=START - timedelta(seconds=1))
        await store.create_run(creation_of(session, agent_name="helper", lease=lost))
    began = trio.current_time()
    async with stage(["ok"] * 250, store=store, recovery_interval_seconds=3600):
        await wait_all_tasks_blocked()
        assert await store.list_claimable(["helper"], "wrk_x", START, limit=500) == []
    assert trio.current_time() - began < 60


async def test_what_was_initialised_is_not_initialised_again(autojump_clock: MockClock) -> None:
    asked: list[str] = []

    def activity(ctx: ToolContext, content: str) -> RunActivity:
        asked.append("activity")
        return RunActivity("Looking.")

    agent = Agent("helper", "Help.", run_activity=activity)
    store = MemoryStore()
    async with stage([never()], agent=agent, store=store) as on:
        run_id = await on.start()
        await on.until(run_id, "model.started")
        await on.runtime.stop(0)
        async with stage(["ok"], agent=agent, store=store) as other:
            events = await other.log(run_id)
    assert asked == ["activity"]
    assert [d["message"] for d in of(events, "activity.updated")] == ["Looking.", "Looking."]


async def test_a_failing_provider_on_a_later_drive_is_a_failed_context(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    async with stage([never()], store=store) as on:
        run_id = await on.start()
        await on.until(run_id, "model.started")
        await on.runtime.stop(0)

    def provider(session: object, run: object) -> dict[str, Any]:
        raise ZeroDivisionError

    async with stage([], store=store, dependency_provider=provider) as other:
        assert of(await other.log(run_id), "run.failed")[0]["code"] == "context_failed"


async def test_a_store_that_fails_for_a_while_loses_no_run(autojump_clock: MockClock) -> None:
    store = FaultyStore()
    script: list[Any] = [[Delay(5), ModelCompleted("x")], "Done."]
    async with stage(script, store=store) as on:
        run_id = await on.start()
        await on.until(run_id, "model.started")
        await trio.sleep(2)
        store.broken |= CUT_OFF
        await trio.sleep(10)
        store.broken.clear()
        events = await on.log(run_id)
        assert types(events)[-1] == "run.completed"
        assert store.used["commit"] < 20


async def test_a_lease_is_renewed_while_the_drive_only_waits(autojump_clock: MockClock) -> None:
    async with stage([[Delay(95), ModelCompleted("ok")]]) as on:
        run_id = await on.start()
        await on.until(run_id, "model.started")
        left: list[float] = []
        for _ in range(9):
            await trio.sleep(10)
            lease = (await on.run(run_id)).lease
            assert lease is not None
            left.append((lease.expires_at - START).total_seconds() - trio.current_time())
        assert min(left) >= 19.9
        await on.log(run_id)
