"""Work left to the host: parked runs, progress, and the one completion."""

from __future__ import annotations

import random
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rungent import (
    ActiveRunConflict,
    DeferredRequest,
    Event,
    Identity,
    NotFound,
    RunNotWaiting,
    ShuttingDown,
    TaskMismatch,
    ToolCall,
    ToolContext,
    ToolContinuation,
    ToolResult,
    tool,
)
from rungent.store import Store
from tests.helpers import OWNER, Stage, asking, calls, of, opened, stage, types
from tests.pauses.shop import (
    Shop,
    answer,
    envelopes,
    finish,
    parked,
    paused,
    snapshot,
)

DONE = ToolResult(data={"rows": 3}, message="Imported.", public={"rows": 3})


async def complete(on: Stage, run_id: str, result: ToolResult = DONE, task: str = "t1") -> Any:
    return await on.runtime.resume_deferred(run_id, task, result, identity=OWNER)


async def report(
    on: Stage, run_id: str, message: str, task: str = "t1", public: Any = None
) -> Event:
    return await on.runtime.report_external_progress(
        run_id, task, message, identity=OWNER, public=public
    )


async def test_a_deferred_call_parks_the_run_until_the_host_completes_it(
    autojump_clock: MockClock, store: Store
) -> None:
    shop = Shop()
    async with stage([calls("job", "note"), "Imported."], tools=shop.tools(), store=store) as on:
        run_id = await parked(on)
        run = await on.run(run_id)
        assert (run.status, run.lease) == ("waiting_external", None)
        assert await envelopes(on) == []
        assert len(on.model.requests) == 1
        call_id = run.state.turn[0].id
        assert [c.state for c in await store.list_claims(run_id)] == ["deferred"]
        sent = await report(on, run_id, " Half. ", public={"at": 50})
        assert sent.data == {
            "task_id": "t1",
            "call_id": call_id,
            "message": "Half.",
            "public": {"at": 50},
        }
        resumed = await complete(on, run_id)
        assert (resumed.status, resumed.fencing_token) == ("running", run.fencing_token + 1)
        events = await finish(on, run_id)
        kinds = types(events)
        begin = kinds.index("tool.started")
        assert kinds[begin : begin + 9] == [
            "tool.started",
            "activity.updated",
            "activity.updated",
            "external_task.started",
            "run.waiting_external",
            "external_task.progress",
            "external_task.completed",
            "tool.completed",
            "tool.started",
        ]
        assert [d["status"] for d in of(events, "activity.updated")] == ["running", "completed"]
        shared = {"call_id": call_id, "message": "Imported.", "public": {"rows": 3}}
        assert of(events, "external_task.completed") == [{"task_id": "t1", **shared}]
        assert of(events, "tool.completed")[0].items() >= shared.items()
        assert (await envelopes(on))[0] == {
            "tool_status": "success",
            "data": {"rows": 3},
            "message": "Imported.",
        }
        assert shop.names == ["job", "note"]
        states = {c.call_id: c.state for c in await store.list_claims(run_id)}
        assert states[call_id] == "succeeded"


async def test_a_failing_completion_fails_the_call_and_the_model_goes_on(
    autojump_clock: MockClock, store: Store
) -> None:
    failing = ToolResult(data={"ok": False, "line": 7}, message="Line 7 is bad.", public=[7])
    async with stage([calls("job"), "It failed."], tools=Shop().tools(), store=store) as on:
        run_id = await parked(on)
        await complete(on, run_id, failing)
        events = await finish(on, run_id)
        assert of(events, "external_task.failed")[0]["message"] == "Line 7 is bad."
        (failed,) = of(events, "tool.failed")
        assert (failed["code"], failed["message"], failed["public"]) == (
            "external_task_failed",
            "Line 7 is bad.",
            [7],
        )
        assert await envelopes(on) == [
            {
                "tool_status": "error",
                "code": "external_task_failed",
                "message": "Line 7 is bad.",
                "retryable": True,
                "data": {"ok": False, "line": 7},
            }
        ]


async def test_a_failing_completion_without_a_message_has_the_catalogs(
    autojump_clock: MockClock,
) -> None:
    async with stage([calls("job"), "x"], tools=Shop().tools()) as on:
        run_id = await parked(on)
        await complete(on, run_id, ToolResult(data={"ok": False}))
        events = await finish(on, run_id)
        assert "message" not in of(events, "external_task.failed")[0]
        assert of(events, "tool.failed")[0]["message"] == "The task did not succeed."


async def test_a_completion_counts_once(autojump_clock: MockClock, store: Store) -> None:
    async with stage([calls("job"), "Done."], tools=Shop().tools(), store=store) as on:
        run_id = await parked(on)
        await complete(on, run_id)
        with pytest.raises((RunNotWaiting, TaskMismatch)):
            await complete(on, run_id)
        events = await finish(on, run_id)
        with pytest.raises(RunNotWaiting) as late:
            await complete(on, run_id)
        assert late.value.status == "completed"
        with pytest.raises(RunNotWaiting):
            await report(on, run_id, "Half.")
        assert await on.log(run_id) == events
        assert len(of(events, "external_task.completed")) == 1


@pytest.mark.parametrize("seed", range(5))
async def test_of_completions_at_the_same_instant_one_counts(
    autojump_clock: MockClock, store: Store, seed: int
) -> None:
    mood, verdicts = random.Random(seed), list[str]()
    async with stage([calls("job"), "Done."], tools=Shop().tools(), store=store) as on:
        run_id = await parked(on)

        async def one(number: int, pause: int) -> None:
            for _ in range(pause):
                await trio.lowlevel.checkpoint()
            try:
                await complete(on, run_id, ToolResult(data=number))
            except (RunNotWaiting, TaskMismatch) as lost:
                verdicts.append(lost.code)
            else:
                verdicts.append(f"won {number}")

        async with trio.open_nursery() as nursery:
            for number in range(6):
                nursery.start_soon(one, number, mood.randrange(4))
        await finish(on, run_id)
        (winner,) = [int(verdict[4:]) for verdict in verdicts if verdict.startswith("won")]
        assert (await envelopes(on))[0].get("data") == winner


async def test_a_task_of_another_name_run_or_owner_is_refused(
    autojump_clock: MockClock, store: Store
) -> None:
    async with stage([calls("job")] * 2, tools=Shop().tools(), store=store) as on:
        run_id = await parked(on)
        other = await opened(on.runtime, store, on.model)
        other_id = await parked(other)
        await on.cancel(other_id)
        before = await snapshot(on, run_id)
        for task in ("t2", "", "x" * 5000):
            with pytest.raises(TaskMismatch):
                await complete(on, run_id, task=task)
            with pytest.raises(TaskMismatch):
                await report(on, run_id, "Half.", task=task)
        for who in (Identity("bob"), Identity("ada", "t")):
            with pytest.raises(NotFound):
                await on.runtime.resume_deferred(run_id, "t1", DONE, identity=who)
            with pytest.raises(NotFound):
                await on.runtime.report_external_progress(run_id, "t1", "Half.", identity=who)
        for message in ("", "  ", "x" * 281):
            with pytest.raises(ValueError, match="280"):
                await report(on, run_id, message)
        again = DeferredRequest("t2", "More.")
        with pytest.raises(ValueError, match="deferred"):
            await complete(on, run_id, ToolResult(deferred=again))
        assert await snapshot(on, run_id) == before
        for refused in (other_id,):
            with pytest.raises(RunNotWaiting) as ended:
                await complete(on, refused)
            assert ended.value.status == "cancelled"
        await on.cancel(run_id)


async def test_a_failing_completion_cannot_defer_and_what_it_carries_counts_for_nothing(
    autojump_clock: MockClock, store: Store
) -> None:
    again = DeferredRequest("again", "Once more.")
    async with stage([calls("job"), "Well."], tools=Shop().tools(), store=store) as on:
        run_id = await parked(on)
        with pytest.raises(ValueError, match="deferred again"):
            await complete(on, run_id, ToolResult(deferred=again))
        await complete(on, run_id, ToolResult(data={"ok": False}, deferred=again))
        events = await finish(on, run_id)
        assert [data["code"] for data in of(events, "tool.failed")] == ["external_task_failed"]


async def test_a_completion_may_ask(autojump_clock: MockClock, store: Store) -> None:
    shop = Shop()
    async with stage([calls("job", "note"), "Done."], tools=shop.tools(), store=store) as on:
        run_id = await parked(on)
        seq = (await on.run(run_id)).event_seq
        run = await complete(on, run_id, ToolResult(data=1, interaction=shop.request()))
        assert (run.status, run.lease) == ("waiting_input", None)
        question = await paused(on, run_id, after=seq)
        new = await on.store.list_events(run_id, after=seq, limit=9)
        assert types(new) == [
            "external_task.completed",
            "tool.completed",
            "run.waiting_input",
            "interaction.requested",
        ]
        await answer(on, run_id, question, "red")
        await finish(on, run_id)
        assert [(d.name, d.answer) for d in shop.deeds] == [
            ("job", None),
            ("accept", "red"),
            ("note", None),
        ]


@pytest.mark.parametrize("then", [ToolContinuation("note"), ToolContinuation("accept", {"x": 1})])
async def test_a_completion_with_a_bad_question_fails_the_call(
    autojump_clock: MockClock, store: Store, then: ToolContinuation
) -> None:
    shop = Shop(then=then)
    async with stage([calls("job"), "Well."], tools=shop.tools(), store=store) as on:
        run_id = await parked(on)
        seq = (await on.run(run_id)).event_seq
        await complete(on, run_id, ToolResult(data=1, interaction=shop.request()))
        await finish(on, run_id)
        new = await on.store.list_events(run_id, after=seq, limit=9)
        assert types(new)[:2] == ["external_task.failed", "tool.failed"]
        assert new[1].data["code"] == "invalid_interaction"
        assert (await envelopes(on))[0]["retryable"] is False


async def test_a_task_id_is_used_once_in_a_run(autojump_clock: MockClock, store: Store) -> None:
    shop = Shop()
    script = [calls("job", "job"), calls("job", task="t2"), "Done."]
    async with stage(script, tools=shop.tools(), store=store) as on:
        run_id = await parked(on)
        await complete(on, run_id)
        await on.until(run_id, "run.waiting_external", 2)
        told = await envelopes(on)
        assert [one.get("code") for one in told] == [None, "tool_error"]
        with pytest.raises(TaskMismatch):
            await complete(on, run_id, task="t1")
        await complete(on, run_id, task="t2")
        events = await finish(on, run_id)
        assert [d["task_id"] for d in of(events, "external_task.started")] == ["t1", "t2"]
        # Another run may use it again.
    async with stage([calls("job"), "Done."], tools=shop.tools(), store=store) as on:
        await complete(on, await parked(on))


@pytest.mark.parametrize("canceller", ["fine", "async", "raises", "none"])
async def test_a_cancel_ends_the_task_and_then_tells_the_host(
    autojump_clock: MockClock, store: Store, canceller: str, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Any] = []

    async def status_of(run_id: str) -> str:
        return (await store.get_run(run_id)).status.value

    def fine(session: Any, run: Any, task: DeferredRequest) -> None:
        told.append((session.id, run.id, run.status.value, task))

    async def slow(session: Any, run: Any, task: DeferredRequest) -> None:
        await trio.sleep(3)
        assert await status_of(run.id) == "cancelled"
        fine(session, run, task)

    def raises(session: Any, run: Any, task: DeferredRequest) -> None:
        fine(session, run, task)
        raise ZeroDivisionError("canary")

    chosen: Any = {"fine": fine, "async": slow, "raises": raises, "none": None}[canceller]
    async with stage(
        [calls("job", "note")], tools=Shop().tools(), store=store, external_task_canceller=chosen
    ) as on:
        run_id = await parked(on)
        assert (await on.cancel(run_id)).status == "cancelled"
        expected = DeferredRequest("t1", "At work.", {"at": 0})
        assert told == ([] if chosen is None else [(on.session.id, run_id, "cancelled", expected)])
        assert ("canary" in caplog.text) == (canceller == "raises")
        events = await finish(on, run_id, "cancelled")
        assert types(events)[-2:] == ["external_task.cancelled", "run.cancelled"]
        assert of(events, "external_task.cancelled")[0]["message"] == "The task was cancelled."
        assert [one["code"] for one in await envelopes(on)] == ["cancelled", "cancelled"]
        assert [c.state for c in await store.list_claims(run_id)] == ["in_doubt"]
        await on.cancel(run_id)
        assert len(told) == (chosen is not None)
        with pytest.raises(RunNotWaiting):
            await complete(on, run_id)
        with pytest.raises(RunNotWaiting):
            await report(on, run_id, "Half.")
        assert await on.log(run_id) == events


async def test_the_hosts_worker_is_never_cancelled_by_a_cancel(autojump_clock: MockClock) -> None:
    """Neither while it works nor while it reports the completion."""
    ended: list[str] = []
    async with stage([calls("job")], tools=Shop().tools()) as on:

        async def work(run_id: str) -> None:
            for _ in range(3):
                await trio.sleep(1)
                await report(on, run_id, "Going on.")
            await trio.sleep(1)
            with pytest.raises(RunNotWaiting):
                await report(on, run_id, "Going on.")
            with pytest.raises(RunNotWaiting):
                await complete(on, run_id)
            await trio.sleep(1)
            ended.append("in order")

        run_id = await parked(on)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work, run_id)
            await trio.sleep(3.5)
            await on.cancel(run_id)
        assert ended == ["in order"]
        await finish(on, run_id, "cancelled")


async def test_the_drive_belongs_to_the_runtime_and_not_to_who_completed(
    autojump_clock: MockClock,
    store: Store,
) -> None:
    shop = Shop()

    @tool(effect="write", approval="never")
    async def slow(ctx: ToolContext) -> str:
        """Take long."""
        await trio.sleep(20)
        shop.did(ctx, "slow")
        return str(ctx.deps["who"])

    tools = [*shop.tools(), slow]
    async with stage([calls("job"), calls("slow"), "Done."], tools=tools, store=store) as on:
        run_id = await parked(on)
        with trio.move_on_after(5):
            await on.runtime.resume_deferred(
                run_id, "t1", DONE, identity=OWNER, deps={"who": "worker"}
            )
            await trio.sleep_forever()
        await finish(on, run_id)
        assert shop.names == ["job", "slow"]
        assert (await envelopes(on))[1]["data"] == "worker"


async def test_a_completion_can_come_as_soon_as_the_pause_is_known(
    autojump_clock: MockClock,
) -> None:
    """From the listener, which hears of the pause before the drive has left."""
    verdicts: list[str] = []
    on: Stage

    async def listen(event: Event) -> None:
        if event.type in {"tool.started", "external_task.started"}:
            try:
                await complete(on, event.run_id)
            except RunNotWaiting as early:
                verdicts.append(early.status)
            else:
                verdicts.append("completed")

    async with stage([calls("job"), "Done."], tools=Shop().tools(), event_listener=listen) as on:
        await on.play()
        assert verdicts == ["running", "completed"]


async def test_a_completion_before_the_pause_was_committed_is_refused_and_can_be_repeated(
    autojump_clock: MockClock,
) -> None:
    @tool(effect="external", approval="never")
    async def hasty(ctx: ToolContext) -> Any:
        """Be done before the run waits."""
        with pytest.raises(RunNotWaiting) as early:
            await complete(on, ctx.run_id)
        assert early.value.status == "running"
        return ToolResult(deferred=DeferredRequest("t1", "At work."))

    on: Stage
    async with stage([calls("hasty"), "Done."], tools=[hasty]) as on:
        run_id = await parked(on)
        await complete(on, run_id)
        await finish(on, run_id)


async def test_a_stopped_runtime_completes_nothing(autojump_clock: MockClock) -> None:
    async with stage([calls("job")], tools=Shop().tools()) as on:
        run_id = await parked(on)
        await on.runtime.stop()
        before = await snapshot(on, run_id)
        with pytest.raises(ShuttingDown):
            await complete(on, run_id)
        assert await snapshot(on, run_id) == before


async def test_nothing_of_a_parked_run_stays_at_work(autojump_clock: MockClock) -> None:
    """No deadline, no tick, no lease: a run can be parked for as long as it takes."""
    async with stage([calls("job"), "Done."], tools=Shop().tools()) as on:
        run_id = await parked(on)
        before = await snapshot(on, run_id)
        await trio.sleep(3600)
        assert await snapshot(on, run_id) == before
        await complete(on, run_id)
        await finish(on, run_id)


async def test_a_new_message_does_not_replace_a_parked_run(
    autojump_clock: MockClock, store: Store
) -> None:
    async with stage([calls("job")], tools=Shop().tools(), store=store) as on:
        run_id = await parked(on)
        for mode in ("reject", "cancel_waiting"):
            with pytest.raises(ActiveRunConflict) as busy:
                await on.start("more", if_active=mode)
            assert (busy.value.run_id, busy.value.status) == (run_id, "waiting_external")
        await on.cancel(run_id)


async def test_progress_of_a_deferred_execution_is_refused_quietly(
    autojump_clock: MockClock,
) -> None:
    kept: list[ToolContext] = []

    @tool(effect="external", approval="never")
    async def leave(ctx: ToolContext) -> Any:
        """Leave its context behind."""
        kept.append(ctx)
        return ToolResult(deferred=DeferredRequest("t1", "At work."))

    async with stage([asking(ToolCall("leave")), "Done."], tools=[leave]) as on:
        run_id = await parked(on)
        with pytest.raises(RuntimeError):
            await kept[0].report_progress("late")
        await complete(on, run_id)
        await finish(on, run_id)
        await wait_all_tasks_blocked()
