"""Executions: what a tool may do to itself without harm to the run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from rungent import Tool, ToolCall, ToolContext, ToolResult, tool
from tests.helpers import asking, calls, of, stage, types


def returning(value: object) -> Tool[..., Any]:
    """A tool that returns this value."""

    @tool(effect="write", approval="never", deduplicate=False)
    async def act(ctx: ToolContext) -> Any:
        """Act."""
        await trio.lowlevel.checkpoint()
        return value() if callable(value) else value

    return act


async def outcome_of(value: object) -> dict[str, Any]:
    """What the model reads about a call that returned this value."""
    async with stage([calls("act"), "Done."], tools=[returning(value)]) as on:
        events = await on.play()
        assert types(events)[-1] == "run.completed"
        return (await on.answers())[0]


async def test_a_call_is_opened_executed_and_answered(autojump_clock: MockClock) -> None:
    seen: list[ToolContext] = []

    @tool(effect="write", approval="never")
    async def book(ctx: ToolContext, seat: str, n: int = 2) -> ToolResult:
        """Book."""
        seen.append(ctx)
        return ToolResult({"seat": seat, "n": n}, message="Booked.", public={"seat": seat})

    call = ToolCall("book", {"seat": "4a"}, "call-7")
    async with stage([asking(call, text="Wait."), "Done."], tools=[book], resource={"a": 1}) as on:
        events = await on.play(" please ", deps={"db": "x"})
        assert types(events)[3:8] == [
            "model.completed",
            "message.reset",
            "tool.started",
            "tool.completed",
            "model.started",
        ]
        named = {"call_id": "call-7", "name": "book", "title": "Book", "effect": "write"}
        assert of(events, "tool.started") == [named]
        shown = {**named, "message": "Booked.", "public": {"seat": "4a"}}
        assert of(events, "tool.completed") == [shown]
        assert await on.answers() == [
            {"tool_status": "success", "data": {"seat": "4a", "n": 2}, "message": "Booked."}
        ]
        ctx, run_id = seen[0], events[0].run_id
        assert (ctx.call_id, ctx.idempotency_key) == ("call-7", f"{run_id}:call-7")
        assert (ctx.current_input, ctx.resource, ctx.deps) == ("please", {"a": 1}, {"db": "x"})
        claim = (await on.store.list_claims(run_id))[0]
        assert (claim.state, claim.arguments) == ("succeeded", {"n": 2, "seat": "4a"})


async def test_an_execution_is_cut_off_after_its_time(autojump_clock: MockClock) -> None:
    @tool(effect="write", approval="never", timeout_seconds=7)
    async def act(ctx: ToolContext) -> None:
        """Hang."""
        await trio.sleep_forever()

    async with stage([calls("act"), "Sorry."], tools=[act]) as on:
        events = await on.play()
        failed = of(events, "tool.failed")[0]
        assert (failed["code"], failed["message"]) == ("timeout", "The operation took too long.")
        assert (events[-1].created_at - events[0].created_at).total_seconds() == 7
        assert (await on.answers())[0]["retryable"] is True
        assert (await on.store.list_claims(events[0].run_id))[0].code == "timeout"


@pytest.mark.parametrize(
    "error",
    [
        trio.TooSlowError(),
        TimeoutError("canary"),
        ValueError("canary"),
        ExceptionGroup("canary", [KeyError("canary")]),
        StopIteration("canary"),
        RecursionError(),
        AssertionError("canary"),
    ],
)
async def test_whatever_a_tool_raises_is_a_tool_error(
    autojump_clock: MockClock, error: Exception
) -> None:
    @tool(effect="write", approval="never")
    async def act(ctx: ToolContext) -> None:
        """Fail."""
        raise error

    async with stage([calls("act"), "Sorry."], tools=[act]) as on:
        events = await on.play()
        assert of(events, "tool.failed")[0]["code"] == "tool_error"
        assert await on.answers() == [
            {
                "tool_status": "error",
                "code": "tool_error",
                "message": "The operation failed.",
                "retryable": True,
            }
        ]


async def test_a_validation_error_inside_a_tool_is_no_argument_error(
    autojump_clock: MockClock,
) -> None:
    from pydantic import TypeAdapter

    @tool(effect="read", approval="never")
    async def act(ctx: ToolContext) -> int:
        """Fail."""
        return TypeAdapter(int).validate_python("canary")

    async with stage([calls("act"), "Sorry."], tools=[act]) as on:
        assert of(await on.play(), "tool.failed")[0]["code"] == "tool_error"


async def test_a_timeout_of_the_tools_own_is_no_timeout_of_ours(autojump_clock: MockClock) -> None:
    @tool(effect="read", approval="never", timeout_seconds=50)
    async def act(ctx: ToolContext) -> None:
        """Fail."""
        with trio.fail_after(5):
            await trio.sleep_forever()

    async with stage([calls("act"), "Sorry."], tools=[act]) as on:
        assert of(await on.play(), "tool.failed")[0]["code"] == "tool_error"


async def test_an_error_while_being_cut_off_does_not_break_the_run(
    autojump_clock: MockClock,
) -> None:
    @tool(effect="read", approval="never", timeout_seconds=5)
    async def act(ctx: ToolContext) -> None:
        """Fail in cleaning up."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError("canary")

    async with stage([calls("act"), "Sorry."], tools=[act]) as on:
        events = await on.play()
        assert of(events, "tool.failed")[0]["code"] in {"tool_error", "timeout"}
        assert types(events)[-1] == "run.completed"


def numbers() -> Iterator[int]:
    yield 1
    raise AssertionError("a generator is not to be run")


async def letters() -> AsyncIterator[str]:
    yield "a"
    raise AssertionError("a generator is not to be run")


class Opaque:
    def __str__(self) -> str:
        return "opaque"


class Hostile:
    def __str__(self) -> str:
        raise ZeroDivisionError("canary")


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (None, None),
        ("text", "text"),
        ({"ok": True}, {"ok": True}),
        ({"ok": 0}, {"ok": 0}),
        (float("nan"), None),
        ([float("inf"), 1], [None, 1]),
        ({1: "a", None: "b"}, {"1": "a", "null": "b"}),
        (b"bytes", "bytes"),
        (Opaque(), "opaque"),
        ("a\x00\ud800", "a\ufffd\ufffd"),
        ((1, {2}), [1, [2]]),
    ],
)
async def test_any_value_reaches_the_model_in_some_json_form(
    autojump_clock: MockClock, value: object, data: object
) -> None:
    envelope = await outcome_of(value)
    assert envelope["tool_status"] == "success"
    assert envelope.get("data") == data


@pytest.mark.parametrize("value", [numbers, letters])
async def test_a_generator_is_named_and_not_run(autojump_clock: MockClock, value: object) -> None:
    assert "generator" in (await outcome_of(value))["data"]


async def test_a_result_that_cannot_be_shown_is_a_tool_error(autojump_clock: MockClock) -> None:
    assert (await outcome_of(Hostile()))["code"] == "tool_error"


async def test_cyclic_and_huge_results_are_survived(autojump_clock: MockClock) -> None:
    cyclic: list[object] = []
    cyclic.append(cyclic)
    assert (await outcome_of(cyclic))["tool_status"] == "success"
    assert len((await outcome_of("x" * 5_000_000))["data"]) == 5_000_000


async def test_a_failing_result_is_a_refusal_with_data(autojump_clock: MockClock) -> None:
    assert await outcome_of({"ok": False, "why": "full"}) == {
        "tool_status": "error",
        "code": "tool_rejected",
        "message": "The operation was not carried out.",
        "retryable": True,
        "data": {"ok": False, "why": "full"},
    }


# --- parallel reads ------------------------------------------------------------------------------


async def test_parallel_reads_overlap_and_are_answered_in_call_order(
    autojump_clock: MockClock,
) -> None:
    together = trio.Event()
    running: set[int] = set()

    @tool(effect="read", approval="never", parallel=True)
    async def peek(ctx: ToolContext, n: int) -> int:
        """Wait until all three run, then end in reverse order."""
        running.add(n)
        if len(running) == 3:
            together.set()
        await together.wait()
        await trio.sleep(3 - n)
        return n

    asked = asking(*(ToolCall("peek", {"n": n}, f"id{n}") for n in range(3)))
    async with stage([asked, "Done."], tools=[peek]) as on:
        events = await on.play()
        assert [d["call_id"] for d in of(events, "tool.started")] == ["id0", "id1", "id2"]
        assert [d["call_id"] for d in of(events, "tool.completed")] == ["id2", "id1", "id0"]
        assert [a["data"] for a in await on.answers()] == [0, 1, 2]


async def test_a_failing_parallel_read_leaves_the_others_alone(autojump_clock: MockClock) -> None:
    @tool(effect="read", approval="never", parallel=True, timeout_seconds=10)
    async def peek(ctx: ToolContext, n: int) -> int:
        """Fail, hang or answer."""
        if n == 0:
            raise ValueError("canary")
        await trio.sleep(100 if n == 1 else 5)
        return n

    asked = asking(*(ToolCall("peek", {"n": n}, f"id{n}") for n in range(3)))
    async with stage([asked, "Done."], tools=[peek]) as on:
        await on.play()
        assert [a.get("code") for a in await on.answers()] == ["tool_error", "timeout", None]


async def test_writes_never_overlap(autojump_clock: MockClock) -> None:
    busy = trio.Lock()

    @tool(effect="write", approval="never", deduplicate=False)
    async def act(ctx: ToolContext) -> None:
        """Take long."""
        busy.acquire_nowait()
        await trio.sleep(1)
        busy.release()

    async with stage([calls("act", "act", "act"), "Done."], tools=[act]) as on:
        assert len(of(await on.play(), "tool.completed")) == 3


async def test_a_parallel_tool_may_neither_ask_nor_defer(autojump_clock: MockClock) -> None:
    from rungent import DeferredRequest

    @tool(effect="read", approval="never", parallel=True)
    async def peek(ctx: ToolContext) -> ToolResult:
        """Defer."""
        return ToolResult(deferred=DeferredRequest("job", "Working."))

    async with stage([calls("peek"), "Done."], tools=[peek]) as on:
        assert of(await on.play(), "tool.failed")[0]["code"] == "tool_error"


# --- repetitions ---------------------------------------------------------------------------------


async def test_the_model_gets_the_earlier_data_of_a_repeated_write(
    autojump_clock: MockClock,
) -> None:
    done: list[int] = []

    @tool(effect="write", approval="never")
    async def book(ctx: ToolContext, n: int) -> int:
        """Book."""
        done.append(n)
        return len(done)

    def asked() -> Any:
        return asking(ToolCall("book", {"n": 1}, "same"))

    async with stage([asked(), asked(), "Done.", asked(), "Done."], tools=[book]) as on:
        events = await on.play()
        assert done == [1]
        assert of(events, "tool.completed")[1]["deduplicated"] is True
        assert (await on.answers())[1]["data"] == 1
        # Another run does it again, also under the provider's old call id.
        await on.play("again")
        assert done == [1, 1]
        ids = [m.tool_call_id for m in await on.messages() if m.role == "tool"]
        assert len(set(ids)) == 3
        assert ids[0] == "same"


async def test_a_repetition_inside_one_reply_is_skipped(autojump_clock: MockClock) -> None:
    async with stage([calls("act", "act"), "Done."], tools=[returning_once()]) as on:
        await on.play()
        assert [a.get("deduplicated") for a in await on.answers()] == [None, True]
        assert [a["data"] for a in await on.answers()] == [{"n": 1}, {"n": 1}]


def returning_once() -> Tool[..., Any]:
    done: list[int] = []

    @tool(effect="write", approval="never")
    async def act(ctx: ToolContext) -> dict[str, int]:
        """Act once."""
        done.append(1)
        assert len(done) == 1
        return {"n": len(done)}

    return act
