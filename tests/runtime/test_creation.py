"""Creating runs: what is refused leaves no trace, and what is repeated happens once."""

from __future__ import annotations

import contextvars
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from rungent import (
    ActiveRunConflict,
    Agent,
    IdempotencyKeyReused,
    Identity,
    InvalidRequest,
    NotFound,
    Run,
    Runtime,
    ShuttingDown,
    ToolContext,
)
from rungent.llm.port import ModelCompleted
from rungent.store.memory import MemoryStore
from rungent.testing.scripted import Delay, ScriptedModel
from tests.helpers import OWNER, START, Stage, stage, types
from tests.runtime.twins import never

STRANGER = Identity("eve")


async def runs(on: Stage) -> list[Run]:
    """The session's runs."""
    return (await on.runtime.list_session_runs(on.session.id, identity=OWNER))[0]


async def test_input_is_trimmed_and_stored_exactly_once(autojump_clock: MockClock) -> None:
    async with stage(["ok"]) as on:
        events = await on.play(" \n hi \x00\ud800 ")
        messages = await on.messages()
        assert messages[0].content == (await on.run(events[0].run_id)).input == "hi \ufffd\ufffd"
        assert [m.role for m in messages] == ["user", "assistant"]


@pytest.mark.parametrize("content", ["", " \n\t", "x" * 21, None, 5, b"hi", ["hi"]])
async def test_bad_input_is_refused_without_trace(autojump_clock: MockClock, content: Any) -> None:
    async with stage(max_input_chars=20) as on:
        with pytest.raises(InvalidRequest) as caught:
            await on.start(content)
        assert caught.value.errors[0]["loc"] == ["body", "input"]
        assert await runs(on) == []
        assert await on.messages() == []


async def test_input_of_the_largest_size_is_taken_and_characters_are_counted(
    autojump_clock: MockClock,
) -> None:
    async with stage(["ok"], max_input_chars=20) as on:
        assert types(await on.play(" " * 50 + "🦉" * 20))[-1] == "run.completed"


@pytest.mark.parametrize(
    "options",
    [
        {"idempotency_key": " "},
        {"idempotency_key": "x" * 201},
        {"idempotency_key": 5},
        {"if_active": "cancel"},
        {"if_active": None},
    ],
)
async def test_bad_options_are_refused_without_trace(
    autojump_clock: MockClock, options: Any
) -> None:
    async with stage() as on:
        with pytest.raises(InvalidRequest):
            await on.start(**options)
        assert await runs(on) == []


async def test_foreign_and_unknown_sessions_look_the_same(autojump_clock: MockClock) -> None:
    async with stage() as on:
        told = set[str]()
        for session_id, identity in [
            (on.session.id, STRANGER),
            (on.session.id, Identity("ada", "tenant")),
            ("ses_unknown", OWNER),
        ]:
            with pytest.raises(NotFound) as caught:
                await on.runtime.create_run(session_id, "hi", identity=identity)
            told.add(str(caught.value))
        assert len(told) == 1
        assert await runs(on) == []


async def test_a_second_run_is_refused_at_once_while_one_is_active(
    autojump_clock: MockClock,
) -> None:
    async with stage([never()]) as on:
        run_id = await on.start()
        await on.until(run_id, "model.started")
        began = trio.current_time()
        for mode in ("reject", "cancel_waiting"):
            with pytest.raises(ActiveRunConflict) as caught:
                await on.start("again", if_active=mode)
            assert (caught.value.run_id, caught.value.status) == (run_id, "running")
        assert trio.current_time() == began
        assert len(await on.messages()) == 1
        await on.cancel(run_id)


async def test_two_creations_at_the_same_instant_make_one_run(autojump_clock: MockClock) -> None:
    async with stage([never()]) as on:
        refused: list[str] = []
        made: list[str] = []

        async def create(content: str) -> None:
            try:
                made.append(await on.start(content))
            except ActiveRunConflict as error:
                refused.append(error.run_id)

        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(create, f"{number}")
        assert len(made) == 1
        assert refused == made * 4
        assert len(await on.messages()) == 1
        await on.cancel(made[0])


async def test_the_same_key_and_request_get_the_same_run(autojump_clock: MockClock) -> None:
    async with stage([[Delay(9), ModelCompleted("ok")]]) as on:
        receipts = [
            await on.runtime.create_run(on.session.id, content, identity=OWNER, idempotency_key=key)
            for content, key in [("hi", "k"), (" hi ", " k ")]
        ]
        assert receipts[0].run_id == receipts[1].run_id
        assert [r.replayed for r in receipts] == [False, True]
        assert [r.status for r in receipts] == ["running", "running"]
        await on.log(receipts[0].run_id)
        late = await on.runtime.create_run(on.session.id, "hi", identity=OWNER, idempotency_key="k")
        assert (late.replayed, late.status) == (True, "completed")
        assert len(await runs(on)) == 1
        assert len(on.model.requests) == 1


async def test_one_key_at_the_same_instant_makes_one_run(autojump_clock: MockClock) -> None:
    async with stage(["ok"]) as on:
        made: list[str] = []

        async def create() -> None:
            made.append(await on.start("hi", idempotency_key="k"))

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(create)
        assert len(set(made)) == 1
        await on.log(made[0])
        assert len(on.model.requests) == 1


async def test_a_key_for_another_request_is_refused(autojump_clock: MockClock) -> None:
    async with stage(["ok", "ok"]) as on:
        run_id = (await on.play("hi", idempotency_key="k"))[0].run_id
        for options in ({"content": "ho"}, {"content": "hi", "if_active": "cancel_waiting"}):
            with pytest.raises(IdempotencyKeyReused) as caught:
                await on.start(**options, idempotency_key="k")
            assert caught.value.run_id == run_id
        # Another session has its own keys.
        other = Stage(
            on.runtime, on.store, on.model, await on.runtime.create_session(identity=OWNER)
        )
        assert types(await other.play("ho", idempotency_key="k"))[-1] == "run.completed"


async def test_nothing_is_created_while_nothing_serves(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    runtime = Runtime(agents=[Agent("helper", "Help.")], model=ScriptedModel([]), store=store)
    session = await runtime.create_session(identity=OWNER)
    for _ in range(2):
        with pytest.raises(ShuttingDown):
            await runtime.create_run(session.id, "hi", identity=OWNER)
        with pytest.raises(ShuttingDown):
            await runtime.recover_runs()
        assert await store.list_runs(session.id, limit=9) == []
        async with runtime:
            pass


async def test_the_context_variables_of_the_creator_are_not_visible_in_the_run(
    autojump_clock: MockClock,
) -> None:
    request: contextvars.ContextVar[str] = contextvars.ContextVar("request", default="none")
    seen: list[str] = []

    def context(ctx: ToolContext) -> str:
        seen.append(request.get())
        return ""

    request.set("serving")
    async with stage(["ok", "ok"], agent=Agent("helper", "Help.", context=context)) as on:
        request.set("canary")
        await on.play()
        await on.play()
    assert seen == ["serving", "serving"]


async def test_sessions_have_bounds_of_their_own(autojump_clock: MockClock) -> None:
    async with stage() as on:
        made = await on.runtime.create_session(
            identity=OWNER, title=" a\x00b ", resource={"n": float("nan"), "t": "\ud800"}
        )
        assert (made.title, made.resource) == ("a\ufffdb", {"n": None, "t": "\ufffd"})
        refused: tuple[dict[str, Any], ...] = (
            {"title": " "},
            {"title": "x" * 201},
            {"title": 5},
            {"resource": [1]},
            {"resource": {"x": "y" * 16_384}},
        )
        for bad in refused:
            with pytest.raises(InvalidRequest):
                await on.runtime.create_session(identity=OWNER, **bad)
        with pytest.raises(NotFound):
            await on.runtime.create_session(identity=OWNER, agent="nobody")
        assert len((await on.runtime.list_sessions(identity=OWNER))[0]) == 2
        assert (await on.runtime.list_sessions(identity=STRANGER))[0] == []


@pytest.mark.parametrize(
    "options",
    [
        {"max_model_steps": 0},
        {"max_model_steps": 129},
        {"max_model_steps": True},
        {"max_model_steps": 2.0},
        {"lease_seconds": float("inf")},
        {"lease_seconds": 10, "lease_renew_seconds": 10},
        {"model_idle_timeout_seconds": 0},
        {"max_concurrent_runs": 0},
        {"max_queued_runs": None},
        {"event_listener": "print"},
        {"error_catalog": {"nope": "x"}},
        {"default_agent": "nobody"},
        {"agents": []},
        {"agents": [Agent("a", "x"), Agent("a", "y")]},
        {"now": lambda: START.replace(tzinfo=None)},
    ],
)
def test_options_that_break_their_rule_are_refused(options: Any) -> None:
    given: dict[str, Any] = {
        "agents": [Agent("helper", "Help.")],
        "model": ScriptedModel([]),
        "store": MemoryStore(),
        **options,
    }
    with pytest.raises(ValueError, match=r"\w"):
        Runtime(**given)
