"""What a call does and what it answers, without any question in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from rungent import Agent, DeferredRequest, ToolContext, ToolResult, tool
from rungent.tools import AnyTool
from tests.mcp.calling import CAN_ASK, envelope, wire
from tests.mcp.desk import AGENT, ask, book


def one(function: AnyTool) -> Agent:
    return Agent(name="one", instructions="-", tools=[function])


async def answer_of(function: AnyTool, arguments: Any = None, **options: Any) -> dict[str, Any]:
    async with wire(one(function), **options) as w:
        return envelope(await w.call(function.name, arguments=arguments or {}))


async def test_tools_are_described_with_what_they_do() -> None:
    async with wire() as w:
        listed = (await w.legacy("tools/list")).json()["result"]["tools"]
    shown = {tool["name"]: tool for tool in listed}
    assert "answered" not in shown
    assert shown["book"] == {
        "name": "book",
        "title": "Book",
        "description": "Book a city.",
        "inputSchema": book.schema,
        "annotations": {
            "title": "Book",
            "readOnlyHint": False,
            "destructiveHint": False,
            "openWorldHint": False,
            "idempotentHint": False,
        },
        "_meta": {"effect": "write", "approval": "always", "confirmation": "Book {city}?"},
    }


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"tools": ["wait", "add"]}, ["add", "wait"]),
        ({"tools": [ask, "answered"]}, ["ask"]),
        ({"tools": []}, []),
        ({"approval": "exclude"}, ["add", "fail", "wait", "ask", "ship"]),
    ],
)
async def test_a_host_chooses_what_is_exported(options: Any, names: list[str]) -> None:
    async with wire(**options) as w:
        listed = (await w.legacy("tools/list")).json()["result"]["tools"]
        hidden = await w.legacy("tools/call", {"name": "book", "arguments": {"city": "Rome"}})
    assert [tool["name"] for tool in listed] == names
    assert "error" in hidden.json()
    assert w.desk.booked == []


async def test_a_tool_knows_who_calls_and_where_it_is() -> None:
    async with wire() as w:
        await w.call("add", arguments={"a": 1, "b": 2})
        await w.call("add", arguments={"a": 1, "b": 2})
    first, second = w.desk.contexts
    assert first.identity.subject_id == "ada"
    assert first.session_id.startswith("mcp_")
    assert first.run_id != second.run_id
    assert first.idempotency_key == f"{first.run_id}:1"
    assert dict(first.resource) == {}
    assert (first.current_input, first.interaction_response) == ("", None)


async def test_progress_is_checked_and_refused_once_the_call_is_over() -> None:
    async with wire() as w:
        await w.call("add", arguments={"a": 1, "b": 2})
        with pytest.raises(ValueError, match="280"):
            await w.desk.contexts[0].report_progress("")
        with pytest.raises(RuntimeError):
            await w.desk.contexts[0].report_progress("late")


async def test_an_exception_text_leaves_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    async with wire() as w:
        result = await w.call("fail")
    assert envelope(result) == {
        "tool_status": "error",
        "code": "tool_error",
        "message": "The operation failed.",
        "retryable": True,
    }
    assert "canary" in caplog.text


async def test_invalid_arguments_are_named_and_not_shown() -> None:
    async with wire() as w:
        result = await w.call("add", arguments={"a": "canary", "c": 1})
    read = envelope(result)
    assert read["code"] == "invalid_arguments"
    assert {detail["path"] for detail in read["details"]} == {"a", "b", "c"}
    assert "canary" not in str(result)


async def test_a_tool_is_cut_off_at_its_time_limit(autojump_clock: trio.testing.MockClock) -> None:
    async with wire() as w:
        result = await w.call("wait")
    assert envelope(result)["code"] == "timeout"
    assert trio.current_time() == 30


@tool(effect="read", approval="never")
async def fussy(ctx: ToolContext) -> ToolResult:
    """Say no."""
    return ToolResult(
        data={"ok": False, "why": float("nan")}, message="Not today.", public={"x": 1}
    )


@tool(effect="read", approval="never", parallel=True)
async def deferring(ctx: ToolContext) -> ToolResult:
    """Defer where that is not possible."""
    return ToolResult(deferred=DeferredRequest("job", "Wait."))


async def test_a_failing_result_says_why() -> None:
    assert await answer_of(fussy) == {
        "tool_status": "error",
        "code": "tool_rejected",
        "message": "Not today.",
        "retryable": True,
        "data": {"ok": False, "why": None},
    }


async def test_a_parallel_tool_cannot_defer() -> None:
    assert (await answer_of(deferring))["code"] == "tool_error"


async def test_by_default_a_client_that_cannot_ask_is_trusted_to_have_asked() -> None:
    async with wire() as w:
        result = await w.call("book", arguments={"city": "Rome"})
    assert envelope(result)["data"] == "booked"


@pytest.mark.parametrize(
    ("verdict", "code"), [(True, None), (False, "rejected"), (1, "rejected"), (None, "rejected")]
)
@pytest.mark.parametrize("wrapped", [False, True])
async def test_a_host_may_decide_itself(verdict: Any, code: str | None, wrapped: bool) -> None:
    seen: list[Any] = []

    def decide(ctx: ToolContext, asked: AnyTool, arguments: Any) -> Any:
        seen.append((ctx.identity.subject_id, asked.name, dict(arguments)))
        return verdict

    async def decide_later(*given: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return decide(*given)

    approval: Callable[..., Any] = decide_later if wrapped else decide
    async with wire(approval=approval) as w:
        read = envelope(await w.call("book", CAN_ASK, arguments={"city": "Rome"}))
        await w.call("add", arguments={"a": 1, "b": 2})
    assert seen == [("ada", "book", {"city": "Rome"})]
    assert read.get("code") == code
    assert w.desk.booked == ([] if code else ["Rome"])


async def test_a_gate_that_breaks_or_hangs_lets_nothing_through(
    autojump_clock: trio.testing.MockClock,
) -> None:
    def broken(*_: Any) -> bool:
        raise RuntimeError("canary")

    async def hanging(*_: Any) -> bool:
        await trio.sleep(3600)
        return True

    for gate in (broken, hanging):
        async with wire(approval=gate) as w:
            read = envelope(await w.call("book", arguments={"city": "Rome"}))
        assert read["code"] == "approval_unavailable"
        assert w.desk.booked == []


async def test_a_confirmation_that_cannot_be_made_lets_nothing_through() -> None:
    def confirm(ctx: ToolContext) -> str:
        raise RuntimeError("canary")

    @tool(effect="write", approval="always", confirmation=confirm)
    async def write(ctx: ToolContext) -> None:
        """Write."""
        raise AssertionError

    async with wire(one(write)) as w:
        assert envelope(await w.call("write", CAN_ASK))["code"] == "approval_unavailable"


async def test_nothing_is_deduplicated() -> None:
    async with wire(AGENT) as w:
        for _ in range(2):
            await w.call("book", arguments={"city": "Rome"})
    assert w.desk.booked == ["Rome", "Rome"]
