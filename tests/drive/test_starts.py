"""The start of a run: dependencies, activity texts, the initial call; and the listener."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from rungent import Agent, Event, Run, RunActivity, Session, ToolCall, ToolContext, tool
from rungent.llm.port import ModelCompleted, TextDelta
from rungent.testing.scripted import Delay
from tests.drive.stores import FaultyStore
from tests.helpers import asking, calls, of, stage, texts, types


@tool(effect="write", approval="never")
async def book(ctx: ToolContext, n: int = 1) -> int:
    """Book."""
    await trio.lowlevel.checkpoint()
    return n


def starting(answer: object, **more: Any) -> Agent:
    """An agent whose initializer gives this answer, or raises it."""

    def initializer(ctx: ToolContext, content: str) -> Any:
        assert (ctx.call_id, content) == (None, "hi")
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Agent("helper", "Help.", tools=[book], run_initializer=initializer, **more)


async def test_the_initial_call_runs_before_the_first_step_and_costs_none(
    autojump_clock: MockClock,
) -> None:
    call = ToolCall("book", {"n": 7}, "given")
    async with stage(["Done."], agent=starting(call), max_model_steps=1) as on:
        events = await on.play()
        assert types(events)[:4] == [
            "run.started",
            "tool.started",
            "tool.completed",
            "model.started",
        ]
        messages = await on.messages()
        assert [m.role for m in messages] == ["user", "assistant", "tool", "assistant"]
        made = messages[1].tool_calls[0]
        assert made.arguments == {"n": 7}
        # The runtime names its own calls.
        assert made.id != "given"
        assert made.id is not None
        assert len(made.id) == 9
        assert made.id.isalnum()
        sent = on.model.requests[0].messages
        assert [m["role"] for m in sent] == ["system", "user", "assistant", "tool"]


async def test_the_initial_call_is_checked_like_any_other(autojump_clock: MockClock) -> None:
    async with stage(["Sorry."], agent=starting(ToolCall("book", {"n": "x"}))) as on:
        events = await on.play()
        assert of(events, "tool.failed")[0]["code"] == "invalid_arguments"
        assert types(events)[-1] == "run.completed"


async def test_a_model_call_that_repeats_the_initial_one_is_skipped(
    autojump_clock: MockClock,
) -> None:
    async with stage([calls("book"), "Done."], agent=starting(ToolCall("book"))) as on:
        events = await on.play()
        assert len(of(events, "tool.started")) == 1
        assert of(events, "tool.completed")[1]["deduplicated"] is True


def looking(ctx: ToolContext, content: str) -> RunActivity:
    return RunActivity("Looking.")


def nothing(ctx: ToolContext, content: str) -> None:
    return None


async def test_activity_comes_before_the_initial_call_in_one_commit(
    autojump_clock: MockClock,
) -> None:
    agent = starting(ToolCall("book"), run_activity=looking)
    async with stage(["Done."], agent=agent) as on:
        events = await on.play()
        assert types(events)[:3] == ["run.started", "activity.updated", "tool.started"]
        assert of(events, "activity.updated")[0]["step"] == 0


async def test_none_from_the_callbacks_means_nothing(autojump_clock: MockClock) -> None:
    agent = starting(None, run_activity=nothing)
    async with stage(["Done."], agent=agent) as on:
        assert types(await on.play())[:2] == ["run.started", "model.started"]


@pytest.mark.parametrize(
    "answer",
    [
        ZeroDivisionError("canary"),
        5,
        {"name": "book"},
        ToolCall("nothing_like_that"),
        ToolCall("report_progress", {"message": "x"}),
        ToolCall("request_input", {"kind": "text", "prompt": "x"}),
    ],
)
async def test_a_bad_initializer_fails_the_run(autojump_clock: MockClock, answer: object) -> None:
    async with stage([], agent=starting(answer)) as on:
        events = await on.play()
        assert types(events) == ["run.started", "run.failed"]
        assert of(events, "run.failed")[0]["code"] == "run_initialization_failed"
        assert of(events, "run.failed")[0]["retryable"] is True
        assert [m.role for m in await on.messages()] == ["user"]


@pytest.mark.parametrize("answer", [ZeroDivisionError("canary"), 5, "Looking."])
async def test_a_bad_activity_fails_the_run(autojump_clock: MockClock, answer: Any) -> None:
    async def activity(ctx: ToolContext, content: str) -> RunActivity:
        await trio.lowlevel.checkpoint()
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    async with stage([], agent=Agent("helper", "Help.", run_activity=activity)) as on:
        assert of(await on.play(), "run.failed")[0]["code"] == "run_initialization_failed"


# --- dependencies --------------------------------------------------------------------------------


def keeper(seen: list[object]) -> Agent:
    """An agent whose context notes the dependencies."""

    def context(ctx: ToolContext) -> str:
        seen.append(dict(ctx.deps))
        return ""

    return Agent("helper", "Help.", context=context)


async def test_the_callers_dependencies_outrank_the_provider(autojump_clock: MockClock) -> None:
    seen: list[object] = []

    async def provider(session: Session, run: Run) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        return {"of": (session.id, run.input)}

    async with stage(["a", "b", "c"], agent=keeper(seen), dependency_provider=provider) as on:
        await on.play("one", deps={"mine": 1})
        await on.play("two", deps={})
        await on.play("three")
        assert seen == [{"mine": 1}, {}, {"of": (on.session.id, "three")}]


async def test_without_a_provider_there_are_no_dependencies(autojump_clock: MockClock) -> None:
    seen: list[object] = []
    async with stage(["a"], agent=keeper(seen)) as on:
        await on.play()
    assert seen == [{}]


@pytest.mark.parametrize("answer", [ZeroDivisionError("canary"), None, ["a"]])
async def test_a_bad_provider_fails_the_start_of_a_run(
    autojump_clock: MockClock, answer: Any
) -> None:
    def provider(session: Session, run: Run) -> dict[str, Any]:
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    async with stage([], dependency_provider=provider) as on:
        events = await on.play()
        assert types(events) == ["run.started", "run.failed"]
        assert of(events, "run.failed")[0]["code"] == "run_initialization_failed"


async def test_a_store_that_cannot_be_read_does_not_fail_the_run(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    async with stage(["Hello.", "Done."], store=store) as on:
        await on.play()
        store.broken.add("list_messages")
        run_id = await on.start()
        await trio.testing.wait_all_tasks_blocked()
        waiting = await on.run(run_id)
        assert (waiting.status, waiting.lease) == ("running", None)
        store.broken.clear()
        assert types(await on.log(run_id))[-1] == "run.completed"


async def test_a_store_that_can_never_be_read_fails_the_run_in_the_end(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    async with stage(["Hello."], store=store) as on:
        await on.play()
        assert "list_messages" not in store.used, "the first message of a session is known"
        store.broken.add("list_messages")
        events = await on.play()
        assert types(events) == ["run.started", "run.failed"]
        assert store.used["list_messages"] == 6


# --- the listener --------------------------------------------------------------------------------


async def test_the_listener_hears_every_event_in_order_and_one_at_a_time(
    autojump_clock: MockClock,
) -> None:
    heard: list[Event] = []
    alone = trio.Lock()

    async def listener(event: Event) -> None:
        alone.acquire_nowait()
        await trio.sleep(0.5)
        heard.append(event)
        alone.release()

    script = [[TextDelta("a"), Delay(2), *calls_parts()], [TextDelta("b"), ModelCompleted()]]
    async with stage(script, tools=[book], event_listener=listener) as on:
        events = await on.play()
        await trio.sleep(30)
    assert heard == events


def calls_parts() -> list[ModelCompleted]:
    return [ModelCompleted(tool_calls=(ToolCall("book"),))]


async def test_a_reply_does_not_cut_off_what_is_being_told(autojump_clock: MockClock) -> None:
    """The reply comes while the listener still hears of the tick before it."""
    heard: list[Event] = []

    async def listener(event: Event) -> None:
        await trio.sleep(1)
        heard.append(event)

    script = [[Delay(3.5), ModelCompleted("x")]]
    async with stage(script, event_listener=listener) as on:
        events = await on.play()
        await trio.sleep(30)
    assert of(events, "activity.updated")
    assert heard == events


async def test_a_slow_listener_does_not_hold_up_the_creation_of_a_run(
    autojump_clock: MockClock,
) -> None:
    async def listener(event: Event) -> None:
        await trio.sleep(100)

    async with stage(["Done."], event_listener=listener, shutdown_grace_seconds=1) as on:
        began = trio.current_time()
        await on.start()
        assert trio.current_time() == began


async def test_a_listener_that_hangs_does_not_keep_the_runtime_from_stopping(
    autojump_clock: MockClock,
) -> None:
    async def listener(event: Event) -> None:
        await trio.sleep_forever()

    async with stage(["Done."], event_listener=listener) as on:
        run_id = await on.start()
        with trio.fail_after(30):
            await on.runtime.stop(1)
        assert (await on.run(run_id)).lease is None


async def test_what_a_listener_raises_is_logged_and_changes_nothing(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    def listener(event: Event) -> None:
        raise ZeroDivisionError("canary")

    async with stage(["Done."], event_listener=listener) as on:
        events = await on.play()
        assert types(events)[-1] == "run.completed"
    assert len([r for r in caplog.records if r.exc_info]) == len(events)


async def test_a_listener_may_cancel_the_run_it_hears_of(autojump_clock: MockClock) -> None:
    heard: list[str] = []

    async def listener(event: Event) -> None:
        heard.append(event.type)
        if event.type == "tool.started":
            await on.cancel(event.run_id)

    async with stage([calls("book"), "x"], tools=[book], event_listener=listener) as on:
        events = await on.play()
        assert types(events)[-2:] == ["tool.started", "run.cancelled"]
        await trio.sleep(10)
        assert heard == types(events)


async def test_events_of_a_commit_are_heard_although_the_run_is_cancelled_meanwhile(
    autojump_clock: MockClock,
) -> None:
    heard: list[str] = []

    async def listener(event: Event) -> None:
        heard.append(event.type)
        await trio.sleep(1)

    async with stage([calls("nothing", "nothing"), [Delay(99)]], event_listener=listener) as on:
        run_id = await on.start()
        await on.until(run_id, "model.completed")
        await on.cancel(run_id)
        await trio.sleep(20)
        assert heard == types(await on.log(run_id))


async def test_the_catalog_replaces_texts_everywhere(autojump_clock: MockClock) -> None:
    catalog = {"unknown_tool": "Gibt es nicht.", "model_unavailable": "Ist nicht da."}
    script = [asking(ToolCall("nothing"), text="Hm"), ZeroDivisionError()]
    async with stage(script, error_catalog={**catalog, "internal_error": "Schade."}) as on:
        events = await on.play()
        assert of(events, "run.failed")[0]["error"] == "Schade."
        told = next(m.content for m in await on.messages() if m.role == "tool")
        assert json.loads(told)["message"] == "Gibt es nicht."
    for bad in ({"nope": "x"}, {"cancelled": " "}):
        with pytest.raises(ValueError, match="catalog"):
            async with stage(error_catalog=bad):
                raise NotImplementedError
    assert texts(events) == ["Hm"]
