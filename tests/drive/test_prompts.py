"""What the model is sent: pieces of the system message, history, budget, ids, echoes."""

from __future__ import annotations

import json
from typing import Any

from trio.testing import MockClock

from rungent import Agent, ToolCall, ToolContext, tool
from rungent.llm.port import Echo, ModelCompleted, ModelRequest
from tests.helpers import asking, calls, of, stage, system, types


@tool(effect="read", approval="never")
async def look(ctx: ToolContext, n: int = 1) -> dict[str, int]:
    """Look."""
    return {"seen": n}


@tool(effect="write", approval="never", requires_interaction_response=True)
async def accept(ctx: ToolContext) -> None:
    """Accept."""
    raise NotImplementedError


def roles(request: ModelRequest) -> list[str]:
    return [str(message["role"]) for message in request.messages]


def estimate(request: ModelRequest) -> float:
    """Tokens of a request: the bytes of its JSON, divided by four."""
    body = {"messages": list(request.messages), "tools": list(request.tools)}
    return len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()) / 4


async def test_the_system_message_joins_its_pieces_with_blank_lines(
    autojump_clock: MockClock,
) -> None:
    agent = Agent("helper", "  Help.\n  Well.", context=lambda ctx: "Day 1.", model="large")
    async with stage(["ok"], agent=agent) as on:
        await on.play("hello")
        request = on.model.requests[0]
        pieces = system(request).split("\n\n")
        assert pieces[0] == "Help.\nWell."
        assert "report_progress" in pieces[1]
        assert pieces[2] == "Current context:\nDay 1."
        assert len(pieces) == 3
        assert request.messages[1:] == ({"role": "user", "content": "hello"},)
        assert request.model == "large"


async def test_blank_context_is_left_out(autojump_clock: MockClock) -> None:
    for blank in ("", " \n", None):
        agent = Agent("helper", "Help.", context=lambda ctx, text=blank: text)  # type: ignore[misc]
        async with stage(["ok"], agent=agent) as on:
            await on.play()
            assert "Current context" not in system(on.model.requests[0])


async def test_tools_are_offered_in_order_and_flagged_ones_only_after_an_answer(
    autojump_clock: MockClock,
) -> None:
    async with stage(["ok"], tools=[look, accept]) as on:
        await on.play()
        offered: Any = on.model.requests[0].tools
        names = [one["function"]["name"] for one in offered]
        assert names == ["report_progress", "request_input", "look"]
        assert {one["type"] for one in offered} == {"function"}
        assert offered[2]["function"]["parameters"]["additionalProperties"] is False


async def test_history_holds_all_runs_of_the_session_in_order(autojump_clock: MockClock) -> None:
    asked = asking(ToolCall("look", {"n": 2}, "a"), ToolCall("look", {}, "b"), text="Let me see.")
    async with stage([asked, "Seen.", "Again."], tools=[look]) as on:
        await on.play("one")
        await on.play("two")
        last = on.model.requests[2]
        assert roles(last) == ["system", "user", "assistant", "tool", "tool", "assistant", "user"]
        assert last.messages[2] == {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [
                {
                    "id": "a",
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"n":2}'},
                },
                {"id": "b", "type": "function", "function": {"name": "look", "arguments": "{}"}},
            ],
        }
        assert last.messages[3] == {
            "role": "tool",
            "content": '{"tool_status":"success","data":{"seen":2}}',
            "tool_call_id": "a",
            "name": "look",
        }


async def test_a_failed_or_cancelled_run_leaves_a_transcript_that_can_be_sent(
    autojump_clock: MockClock,
) -> None:
    script = [calls("look", "look"), ZeroDivisionError(), "Fine."]
    async with stage(script, tools=[look]) as on:
        assert types(await on.play())[-1] == "run.failed"
        await on.play("again")
        assert roles(on.model.requests[-1]) == [
            "system",
            "user",
            "assistant",
            "tool",
            "tool",
            "user",
        ]


async def test_missing_repeated_and_old_call_ids_are_replaced(autojump_clock: MockClock) -> None:
    def asked(*ids: str | None) -> ModelCompleted:
        return asking(*(ToolCall("look", {"n": n}, one) for n, one in enumerate(ids)))

    async with stage([asked("a", "a", None, ""), asked("b", "a"), "x"], tools=[look]) as on:
        events = await on.play()
        ids = [d["call_id"] for d in of(events, "tool.started")]
        assert (ids[0], ids[4]) == ("a", "b")
        assert len(set(ids)) == 6
        assert all(len(ids[n]) == 9 and ids[n].isalnum() for n in (1, 2, 3, 5))
        answered = [m.tool_call_id for m in await on.messages() if m.role == "tool"]
        assert answered == ids
        data = [json.loads(m.content)["data"] for m in await on.messages() if m.role == "tool"]
        assert [one["seen"] for one in data] == [0, 1, 2, 3, 0, 1]


async def test_the_oldest_whole_exchanges_are_left_out_of_a_long_history(
    autojump_clock: MockClock,
) -> None:
    budget = 2000
    script = [calls("look"), "Answer " + "x" * 3000, "Answer " + "y" * 3000, "z", "ok"]
    async with stage(script, tools=[look], context_budget_tokens=budget) as on:
        for content in ("one", "two", "three", "four"):
            await on.play(content)
        first, *_, last = on.model.requests
        assert "left out" not in system(first)
        assert "left out" in system(last)
        contents = [m["content"] for m in last.messages if m["role"] == "user"]
        assert contents[-1] == "four"
        assert "one" not in contents
        # A kept exchange begins with its user message.
        assert roles(last)[1] == "user"
        assert estimate(last) <= budget
        assert len(await on.messages()) == 10


async def test_as_much_of_the_history_is_sent_as_fits(autojump_clock: MockClock) -> None:
    """At every budget: within it, and the next older exchange would not have fitted."""
    answers = ["Answer " + "ä\n" * 200 for _ in range(6)]
    async with stage([*answers, *["ok"] * 60]) as on:
        for number in range(6):
            await on.play(f"question {number}")
        whole = on.model.requests[-1]
        left_out: set[int] = set()
        for budget in range(1050, 1900, 20):
            object.__setattr__(on.runtime.options, "context_budget_tokens", budget)
            run_id = await on.start("x")
            await on.log(run_id)
            request = on.model.requests[-1]
            assert estimate(request) <= budget
            left_out.add(roles(request).count("user"))
        assert len(left_out) > 2
        assert roles(whole).count("user") == 6


async def test_the_current_exchange_is_sent_whole_whatever_its_size(
    autojump_clock: MockClock,
) -> None:
    script = ["short", calls("look", text="x" * 9000), "Done."]
    async with stage(script, tools=[look], context_budget_tokens=100) as on:
        await on.play("one")
        await on.play("two " + "y" * 9000)
        assert roles(on.model.requests[-1]) == ["system", "user", "assistant", "tool"]
        assert "left out" in system(on.model.requests[-1])


async def test_echoes_are_returned_in_later_requests_of_the_drive_only(
    autojump_clock: MockClock,
) -> None:
    echo = Echo({"reasoning": "canary-thought"}, ({"sig": "s1"}, {"sig": "s2"}))
    reply = ModelCompleted("Hm.", (ToolCall("look", {}, "a"), ToolCall("look", {}, "a")), echo=echo)
    async with stage([reply, calls("look"), "Done.", "Next."], tools=[look]) as on:
        events = await on.play()
        for request in on.model.requests[1:3]:
            sent: Any = request.messages[2]
            assert sent["reasoning"] == "canary-thought"
            assert [call["sig"] for call in sent["tool_calls"]] == ["s1", "s2"]
            assert sent["tool_calls"][0]["id"] == "a"
        await on.play("next")
        assert "canary-thought" not in str(on.model.requests[-1])
        assert "canary-thought" not in "".join(event.to_json() for event in events)
        stored = [m.model_dump_json() for m in await on.messages()]
        assert "canary-thought" not in "".join(stored)
