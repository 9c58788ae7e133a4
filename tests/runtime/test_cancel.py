"""Cancel, in every phase: one terminal event, the session free, nothing executed afterwards."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rungent import Agent, Identity, NotFound, Run, RunActivity, Tool, ToolCall, ToolContext, tool
from rungent.llm.port import ModelCompleted, ModelFailure, TextDelta
from rungent.store.memory import MemoryStore
from rungent.testing.scripted import Delay
from tests.drive.stores import FaultyStore, GatedStore, QuietStore
from tests.helpers import PATIENCE_SECONDS, Stage, asking, calls, of, stage, types
from tests.runtime.twins import never

done: list[str] = []


def writing() -> Tool[..., Any]:
    """A write that takes a minute; `done` notes that it went through."""
    done.clear()

    @tool(effect="write", approval="never", deduplicate=False)
    async def act(ctx: ToolContext) -> str:
        """Act."""
        await trio.sleep(60)
        done.append("act")
        return "done"

    return act


async def check_free(on: Stage, run_id: str) -> None:
    """The run ended once, writes nothing more, and the session takes another run."""
    events = await on.log(run_id)
    assert len([kind for kind in types(events) if kind == "run.cancelled"]) == 1
    run, written = await on.run(run_id), await on.messages()
    assert (run.status, run.lease) == ("cancelled", None)
    await trio.sleep(200)
    assert await on.run(run_id) == run
    assert await on.messages() == written
    assert done == []
    wanted: list[str | None] = []
    for message in written:
        if message.role == "tool":
            assert message.tool_call_id == wanted.pop(0)
        wanted += [call.id for call in message.tool_calls]
    assert wanted == []
    assert await on.cancel(run_id) == run


@pytest.mark.parametrize(
    ("script", "phase"),
    [
        ([never()], "run.started"),
        ([never()], "model.started"),
        ([[TextDelta("Hm"), *never()]], "message.delta"),
        ([[Delay(4), *never()]], "activity.updated"),
        ([ModelFailure("rate_limit", retry_after=50), never()], "model.retrying"),
        ([calls("act", "act", text="Wait.")], "tool.started"),
    ],
)
async def test_a_run_is_cancelled_in_any_phase(
    autojump_clock: MockClock, script: list[Any], phase: str
) -> None:
    async with stage([*script, *["ok"] * 2], tools=[writing()]) as on:
        run_id = await on.start()
        await on.until(run_id, phase)
        began = trio.current_time()
        run = await on.cancel(run_id)
        assert trio.current_time() == began
        assert run.status == "cancelled"
        await check_free(on, run_id)
        on.model._played = len(script)  # pyright: ignore[reportPrivateUsage]
        assert types(await on.play("next"))[-1] == "run.completed"


async def test_a_run_is_cancelled_before_its_drive_began(autojump_clock: MockClock) -> None:
    heard: list[str] = []

    async def look_up(*_: object) -> dict[str, Any]:
        await trio.sleep(1)
        return {}

    async with stage(
        ["ok"],
        event_listener=lambda event: heard.append(event.type),
        dependency_provider=look_up,
    ) as on:
        run_id = await on.start()
        await on.cancel(run_id)
        await check_free(on, run_id)
        assert heard == types(await on.log(run_id)) == ["run.started", "run.cancelled"]
        assert types(await on.play("next"))[-1] == "run.completed"


async def test_a_queued_run_is_cancelled_with_one_event(autojump_clock: MockClock) -> None:
    heard: list[str] = []
    async with stage(
        [never(), "ok"],
        max_concurrent_runs=1,
        event_listener=lambda event: heard.append(event.run_id),
    ) as on:
        other = Stage(
            on.runtime,
            on.store,
            on.model,
            await on.runtime.create_session(identity=Identity("ada")),
        )
        first = await on.start()
        queued = await other.start()
        await other.cancel(queued)
        events = await other.log(queued)
        assert types(events) == ["run.cancelled"]
        assert heard.count(queued) == 1
        await on.cancel(first)
        assert types(await other.play("next"))[-1] == "run.completed"
        assert len(on.model.requests) == 2


@pytest.mark.parametrize("place", ["context", "activity", "initializer", "provider"])
async def test_a_run_is_cancelled_inside_a_callback(autojump_clock: MockClock, place: str) -> None:
    async def hang(*_: object) -> Any:
        await trio.sleep_forever()

    agent = Agent(
        "helper",
        "Help.",
        context=hang if place == "context" else None,
        run_activity=hang if place == "activity" else None,
        run_initializer=hang if place == "initializer" else None,
    )
    provider = hang if place == "provider" else None
    async with stage([], agent=agent, dependency_provider=provider) as on:
        run_id = await on.start()
        await wait_all_tasks_blocked()
        await on.cancel(run_id)
        done.clear()
        await check_free(on, run_id)


async def test_a_run_that_ended_is_returned_as_it_is(autojump_clock: MockClock) -> None:
    async with stage(["ok", ZeroDivisionError()]) as on:
        for status in ("completed", "failed"):
            events = await on.play()
            run = await on.cancel(events[0].run_id)
            assert run.status == status
            assert await on.log(run.id) == events


async def test_many_cancels_at_the_same_instant_end_the_run_once(
    autojump_clock: MockClock,
) -> None:
    heard: list[str] = []
    async with stage([never()], event_listener=lambda event: heard.append(event.type)) as on:
        run_id = await on.start()
        await on.until(run_id, "model.started")
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(on.cancel, run_id)
        assert types(await on.log(run_id)).count("run.cancelled") == 1
        assert heard.count("run.cancelled") == 1


@pytest.mark.parametrize("ticks", range(30))
async def test_cancel_and_end_at_the_same_time_give_one_end(
    autojump_clock: MockClock, ticks: int
) -> None:
    """The cancel comes after this many turns of the scheduler, whatever the run does then."""
    script = [calls("nothing", text="Hm"), "Done."]
    heard: list[str] = []
    async with stage(script, event_listener=lambda event: heard.append(event.type)) as on:
        run_id = await on.start()
        for _ in range(ticks):
            await trio.lowlevel.checkpoint()
        run = await on.cancel(run_id)
        events = await on.log(run_id)
        assert types(events)[-1] == f"run.{run.status}"
        assert (await on.run(run_id)).status == run.status
        await trio.sleep(1)
        assert heard == types(events)


async def test_a_cancel_by_another_worker_stops_the_tool_at_its_next_commit_or_renewal(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    script: list[Any] = [calls("act"), "ok"]
    async with stage(script, tools=[writing()], store=store) as on, stage(store=store) as other:
        run_id = await on.start()
        await on.until(run_id, "tool.started")
        await other.cancel(run_id)
        assert types(await other.log(run_id))[-1] == "run.cancelled"
        await check_free(on, run_id)
        assert types(await on.play("next"))[-1] == "run.completed"


async def test_nobody_else_can_cancel_a_run(autojump_clock: MockClock) -> None:
    async with stage([[Delay(5), ModelCompleted("ok")]]) as on:
        run_id = await on.start()
        for identity, wanted in ((Identity("eve"), run_id), (Identity("ada"), "run_unknown")):
            with pytest.raises(NotFound):
                await on.runtime.cancel_run(wanted, identity=identity)
        assert types(await on.log(run_id))[-1] == "run.completed"


async def test_an_open_parallel_group_is_answered_when_it_is_cancelled(
    autojump_clock: MockClock,
) -> None:
    @tool(effect="read", approval="never", parallel=True)
    async def peek(ctx: ToolContext, n: int) -> int:
        """Take n seconds."""
        await trio.sleep(n)
        return n

    asked = asking(*(ToolCall("peek", {"n": n}) for n in (50, 1, 70)))
    async with stage([asked], tools=[peek]) as on:
        run_id = await on.start()
        await on.until(run_id, "tool.completed")
        await on.cancel(run_id)
        done.clear()
        await check_free(on, run_id)
        told = [json.loads(m.content) for m in await on.messages() if m.role == "tool"]
        assert [one.get("code") for one in told] == ["cancelled", None, "cancelled"]
        states = {c.state for c in await on.store.list_claims(run_id)}
        assert states == {"cancelled", "succeeded"}


async def test_followers_see_the_end_although_the_caller_of_cancel_is_gone(
    autojump_clock: MockClock,
) -> None:
    """The caller is cancelled while the drive is still busy storing."""

    async def listener(event: Any) -> None:
        await trio.sleep(20)

    async with stage([never()], event_listener=listener, store=QuietStore()) as on:
        run_id = await on.start()
        await on.until(run_id, "model.started")
        with trio.move_on_after(1):
            await on.runtime.cancel_run(run_id, identity=Identity("ada"))
        assert types(await on.log(run_id))[-1] == "run.cancelled"


async def test_followers_and_listener_learn_of_a_cancel_although_the_tool_ignores_it(
    autojump_clock: MockClock,
) -> None:
    heard: list[str] = []

    @tool(effect="read", approval="never")
    async def look(ctx: ToolContext) -> None:
        """Ignore being cancelled for long."""
        with trio.CancelScope(shield=True):
            await trio.sleep(300)

    async with stage(
        [calls("look")],
        tools=[look],
        store=QuietStore(),
        event_listener=lambda event: heard.append(event.type),
    ) as on:
        run_id = await on.start()
        await on.until(run_id, "tool.started")
        with trio.fail_after(1):
            await on.cancel(run_id)
            assert heard == types(await on.log(run_id))


async def test_a_cancel_does_not_wait_for_a_drive_that_cannot_store(
    autojump_clock: MockClock,
) -> None:
    store = GatedStore()
    async with stage(["ok"], store=store) as on:
        store.shut()
        run_id = await on.start()
        await wait_all_tasks_blocked()
        assert store.waiting == 1
        with trio.fail_after(5):
            await on.cancel(run_id)
        store.open_gate()
        assert types(await on.log(run_id)) == ["run.started", "run.cancelled"]


async def test_an_open_activity_row_is_left_to_the_client(autojump_clock: MockClock) -> None:
    agent = Agent("helper", "Help.", run_activity=lambda ctx, text: RunActivity("Looking."))
    async with stage([never()], agent=agent) as on:
        run_id = await on.start()
        await on.until(run_id, "model.started")
        await on.cancel(run_id)
        events = await on.log(run_id)
        assert [data["status"] for data in of(events, "activity.updated")] == ["running"]


# --- callers that are cancelled themselves -------------------------------------------------------


class _Countdown:
    """Cancels a scope at the n-th checkpoint of one task."""

    def __init__(self, task: trio.lowlevel.Task, scope: trio.CancelScope, left: int) -> None:
        self._task, self._scope, self._left = task, scope, left

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self._task:
            self._left -= 1
            if self._left == 0:
                self._scope.cancel()


async def cut(function: Any, at: int) -> bool:
    """Call a function and cancel it at its n-th step; returns whether it was cut off."""
    with trio.CancelScope() as scope:
        countdown: Any = _Countdown(trio.lowlevel.current_task(), scope, at)
        trio.lowlevel.add_instrument(countdown)
        try:
            await function()
        finally:
            trio.lowlevel.remove_instrument(countdown)
    return scope.cancelled_caught


async def test_a_creator_that_is_cancelled_anywhere_created_the_run_or_left_no_trace(
    autojump_clock: MockClock,
) -> None:
    outcomes: list[int] = []
    for at in range(1, 12):
        async with stage(["ok"]) as on:
            was_cut = await cut(on.start, at)
            runs = await on.store.list_runs(on.session.id, limit=9)
            outcomes.append(len(runs))
            assert len(await on.messages()) == len(runs)
            if runs:
                with trio.fail_after(PATIENCE_SECONDS):
                    assert types(await on.log(runs[0].id))[-1] == "run.completed"
                assert trio.current_time() < 100
            else:
                assert was_cut
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {0, 1}


async def test_a_canceller_that_is_cancelled_anywhere_ended_the_run_or_changed_nothing(
    autojump_clock: MockClock,
) -> None:
    states: list[str] = []
    for at in range(1, 12):
        heard: list[str] = []
        async with stage(
            [[Delay(5), ModelCompleted("ok")]],
            event_listener=lambda event, heard=heard: heard.append(event.type),  # type: ignore[misc]
        ) as on:
            run_id = await on.start()
            await on.until(run_id, "model.started")

            async def cancel(on: Stage = on, run_id: str = run_id) -> None:
                await on.runtime.cancel_run(run_id, identity=Identity("ada"))

            await cut(cancel, at)
            events = await on.log(run_id)
            assert types(events)[-1] in {"run.completed", "run.cancelled"}
            await wait_all_tasks_blocked()
            assert heard == types(events)
            states.append(types(events)[-1])
    assert states == sorted(states, reverse=True)
    assert len(set(states)) == 2


@pytest.mark.parametrize("at", range(1, 6))
async def test_a_drive_that_is_lost_at_any_commit_writes_nothing_more(
    autojump_clock: MockClock, at: int
) -> None:
    """Somebody else takes the run over right before this commit."""
    script = [calls("nothing", text="Hm"), [TextDelta("a"), Delay(9), ModelCompleted("ok")]]
    store = FaultyStore()
    async with stage(script, store=store) as on:
        run_id = ""
        taken: list[Run] = []

        def take_over(operation: str) -> None:
            if operation == "commit" and store.used["commit"] == at:
                run = store._runs[run_id]  # pyright: ignore[reportPrivateUsage]
                run = run.model_copy(update={"fencing_token": run.fencing_token + 1})
                store._runs[run_id] = run  # pyright: ignore[reportPrivateUsage]
                taken.append(run)

        store.before = take_over
        run_id = await on.start()
        await trio.sleep(29)
        assert await on.run(run_id) == taken[0]
        assert len(await on.so_far(run_id)) == taken[0].event_seq
        assert store.used["commit"] == at
