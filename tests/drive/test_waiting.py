"""Silence of a model, and text that piles up: what a waiting user sees, second by second."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import trio
from pydantic import JsonValue
from trio.testing import MockClock, wait_all_tasks_blocked

from rungent import Agent, Event, Run, RunActivity, Session, ToolCall, ToolContext, tool
from rungent.llm.port import Heartbeat, ModelCompleted, ModelFailure, TextDelta
from rungent.testing.scripted import Delay
from tests.drive.stores import GatedStore
from tests.helpers import OWNER, asking, calls, of, opened, rows, stage, texts, types


def busy(**changes: Any) -> Agent:
    """An agent whose runs say what they are busy with."""
    activity: dict[str, Any] = {
        "message": "Looking.",
        "waiting_message": "Still looking.",
        "long_wait_message": "This takes long.",
        "continuation_message": "Going on.",
        **changes,
    }

    async def run_activity(ctx: ToolContext, content: str) -> RunActivity:
        return RunActivity(**activity)

    return Agent("helper", "Help.", run_activity=run_activity)


async def test_ticks_come_after_three_seconds_and_then_every_five(
    autojump_clock: MockClock,
) -> None:
    async with stage([[Delay(14), ModelCompleted("x")]]) as on:
        events = await on.play()
    assert rows(events) == [
        (3, "running", "Still working."),
        (8, "running", "Still working."),
        (13, "running", "Still working."),
        (14, "completed", "Continuing."),
    ]
    shown: list[JsonValue] = [data["public"] for data in of(events, "activity.updated")]
    assert shown == [{"elapsed_seconds": n} for n in (3, 8, 13)] + [{}]


async def test_the_ticks_of_each_run_keep_their_own_time(autojump_clock: MockClock) -> None:
    silent = [Delay(9), ModelCompleted("x")]
    async with stage([silent, silent, silent]) as on:
        logs: dict[float, list[Event]] = {}

        async def play(delay: float) -> None:
            await trio.sleep(delay)
            own = await opened(on.runtime, on.store, on.model)
            logs[delay] = await own.play()

        async with trio.open_nursery() as nursery:
            for delay in (0, 0.7, 4):
                nursery.start_soon(play, delay)
    for events in logs.values():
        assert [second for second, status, _ in rows(events) if status == "running"] == [3, 8]


async def test_a_listener_sees_the_context_of_its_run_in_ticks(autojump_clock: MockClock) -> None:
    whose: ContextVar[str] = ContextVar("whose", default="nobody")
    heard: list[tuple[str, str]] = []

    def provide(session: Session, run: Run) -> dict[str, Any]:
        whose.set(run.id)
        return {}

    def listen(event: Event) -> None:
        if event.type == "activity.updated":
            heard.append((event.run_id, whose.get()))

    script = [[Delay(4), TextDelta("a"), ModelCompleted()]]
    async with stage(script, dependency_provider=provide, event_listener=listen) as on:
        run_id = await on.start()
        await on.log(run_id)
    assert heard == [(run_id, run_id)] * 2


async def test_the_texts_of_an_activity_are_shown_in_their_places(
    autojump_clock: MockClock,
) -> None:
    script = [
        [Delay(9), TextDelta("a"), Delay(6), ModelCompleted(tool_calls=(ToolCall("nothing"),))],
        [Delay(9), ModelCompleted("Done.")],
    ]
    async with stage(script, agent=busy(public={"icon": "eye"})) as on:
        events = await on.play()
    assert rows(events) == [
        (0, "running", "Looking."),
        (3, "running", "Still looking."),
        (8, "running", "This takes long."),
        (9, "completed", "Looking."),
        (14, "running", "This takes long."),
        (15, "completed", "Looking."),
        (18, "running", "Going on."),
        (23, "running", "Going on."),
        (24, "completed", "Going on."),
    ]
    shown = [data["public"] for data in of(events, "activity.updated")]
    assert shown[0] == {"icon": "eye"}
    assert shown[1] == {"icon": "eye", "elapsed_seconds": 3}
    assert shown[4]["elapsed_seconds"] == 14
    assert [data["step"] for data in of(events, "activity.updated")] == [0, *[1] * 5, *[2] * 3]


async def test_a_quick_answer_completes_the_initial_row_and_has_no_tick(
    autojump_clock: MockClock,
) -> None:
    async with stage([calls("nothing"), "Done."], agent=busy()) as on:
        events = await on.play()
    assert rows(events) == [(0, "running", "Looking."), (0, "completed", "Looking.")]
    assert types(events)[:5] == [
        "run.started",
        "activity.updated",
        "model.started",
        "activity.updated",
        "model.completed",
    ]


async def test_texts_of_an_activity_have_defaults(autojump_clock: MockClock) -> None:
    agent = busy(waiting_message=None, long_wait_message=None, continuation_message=None)
    async with stage(
        [[Delay(9), calls("nothing")], [Delay(4), ModelCompleted("x")]], agent=agent
    ) as on:
        assert {message for _, _, message in rows(await on.play())} == {"Looking."}


async def test_silence_counts_anew_from_each_delta(autojump_clock: MockClock) -> None:
    parts = [Delay(2), TextDelta("a"), Delay(4.5), TextDelta("b"), Delay(5.5), ModelCompleted()]
    async with stage([parts]) as on:
        events = await on.play()
    assert rows(events) == [(11.5, "running", "Still working."), (12, "completed", "Continuing.")]


async def test_heartbeats_and_blank_text_do_not_end_silence(autojump_clock: MockClock) -> None:
    parts = [part for _ in range(6) for part in (Heartbeat(), TextDelta(" "), Delay(1))]
    async with stage([[*parts, ModelCompleted("x")]]) as on:
        assert [second for second, _, _ in rows(await on.play())] == [3, 6]


async def test_silence_counts_anew_from_each_repetition(autojump_clock: MockClock) -> None:
    script = [[Delay(2), ModelFailure("network")], [Delay(6), ModelCompleted("x")]]
    async with stage(script) as on:
        events = await on.play()
    # Repeated at second 2, so silent until second 7.
    assert rows(events) == [(7, "running", "Still working."), (8.5, "completed", "Continuing.")]
    assert of(events, "activity.updated")[0]["public"] == {"elapsed_seconds": 7}


async def test_a_tick_within_the_first_second_says_one(autojump_clock: MockClock) -> None:
    async with stage(
        [[Delay(0.6), ModelCompleted("x")]],
        model_wait_progress_after_seconds=0.25,
        model_wait_progress_interval_seconds=0.25,
    ) as on:
        events = await on.play()
    ticks = [d["public"]["elapsed_seconds"] for d in of(events, "activity.updated")[:-1]]
    assert ticks == [1, 1]


async def test_ticks_count_while_the_context_is_made_and_not_while_tools_run(
    autojump_clock: MockClock,
) -> None:
    @tool(effect="read", approval="never")
    async def look(ctx: ToolContext) -> str:
        """Look for long."""
        await trio.sleep(30)
        return "seen"

    async def context(ctx: ToolContext) -> str:
        await trio.sleep(4)
        return ""

    agent = Agent("helper", "Help.", tools=[look], context=context)
    async with stage([asking(ToolCall("look")), "Done."], agent=agent) as on:
        events = await on.play()
    assert [second for second, _, _ in rows(events)] == [3, 4, 37, 38]


# --- text ----------------------------------------------------------------------------------------


async def test_deltas_are_not_delayed_while_nothing_is_stored(autojump_clock: MockClock) -> None:
    parts = [part for letter in "abc" for part in (TextDelta(letter), Delay(1))]
    async with stage([[*parts, ModelCompleted()]]) as on:
        events = await on.play()
    assert texts(events) == ["a", "b", "c"]
    first = events[0].created_at
    at = [(e.created_at - first).total_seconds() for e in events if e.type == "message.delta"]
    assert at == [0, 1, 2]


async def test_text_that_arrives_during_a_commit_is_joined(autojump_clock: MockClock) -> None:
    store = GatedStore()
    letters = [part for letter in "abcdef" for part in (TextDelta(letter), Delay(0.1))]
    async with stage([[Delay(1), *letters, Delay(9), ModelCompleted()]], store=store) as on:
        run_id = await on.start()
        await on.until(run_id, "model.started")
        store.shut()
        await trio.sleep(2)
        await wait_all_tasks_blocked()
        assert store.waiting == 1
        assert texts(await on.so_far(run_id)) == []
        store.open_gate()
        assert texts(await on.log(run_id)) == ["a", "bcdef"]


async def test_nothing_is_delivered_before_it_is_stored(autojump_clock: MockClock) -> None:
    store, heard = GatedStore(), list[str]()
    async with stage(
        ["Hello."], store=store, event_listener=lambda event: heard.append(event.type)
    ) as on:
        store.shut()
        run_id = await on.start()
        seen: list[str] = []

        async def follow() -> None:
            async for event in on.runtime.stream_events(run_id, identity=OWNER):
                seen.append(event.type)  # noqa: PERF401 - seen while it grows

        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await wait_all_tasks_blocked()
            assert store.waiting == 1
            assert seen == heard == ["run.started"]
            store.open_gate()
        assert seen == types(await on.log(run_id)) == heard


async def test_a_slow_store_does_not_slow_the_reading_of_a_reply(
    autojump_clock: MockClock,
) -> None:
    """The provider's stream is read to its end while the first delta is still being stored."""
    store = GatedStore()
    parts = [TextDelta(f"{n} ") for n in range(50)]
    async with stage([[Delay(1), *parts, ModelCompleted()]], store=store) as on:
        run_id = await on.start()
        await on.until(run_id, "model.started")
        store.shut()
        await trio.sleep(100)
        store.open_gate()
        events = await on.log(run_id)
        assert "".join(texts(events)) == "".join(part.text for part in parts)


async def test_no_tick_follows_a_delta_that_took_long_to_store(autojump_clock: MockClock) -> None:
    """A delta stored at second 10 ends the silence: the next tick is due at 15."""
    store = GatedStore()
    parts = [Delay(1), TextDelta("a"), Delay(15), ModelCompleted()]
    async with stage([parts], store=store) as on:
        run_id = await on.start()
        await on.until(run_id, "model.started")
        store.shut()
        await trio.sleep(10)
        store.open_gate()
        events = await on.log(run_id)
    assert [second for second, _, _ in rows(events)] == [15, 16]
