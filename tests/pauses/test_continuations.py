"""Questions that tools ask, and the calls that follow the answers."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from rungent import InvalidResponse, ToolCall, ToolContext, ToolContinuation, ToolResult, tool
from rungent.store import Store
from tests.helpers import asking, calls, of, stage, types
from tests.pauses.shop import (
    Shop,
    answer,
    asked,
    check_calls,
    envelopes,
    finish,
    paused,
    snapshot,
    tool_names,
)


async def test_a_question_of_a_tool_is_followed_up_without_the_model(
    autojump_clock: MockClock, store: Store
) -> None:
    shop = Shop()
    async with stage([calls("offer", "note"), "Done."], tools=shop.tools(), store=store) as on:
        run_id, question = await asked(on)
        first = await on.so_far(run_id)
        assert types(first)[-3:] == ["tool.completed", "run.waiting_input", "interaction.requested"]
        made_id = question["tool_call_id"]
        assert made_id not in {data["call_id"] for data in of(first, "tool.started")}
        assert (len(made_id), made_id.isalnum()) == (9, True)
        assert "tool" not in question
        await answer(on, run_id, question, "the red one")
        events = await finish(on, run_id)
        assert len(on.model.requests) == 2
        assert [(d.name, d.answer) for d in shop.deeds] == [
            ("offer", None),
            ("accept", "the red one"),
            ("note", None),
        ]
        assert shop.deeds[1].call_id == made_id
        assert shop.deeds[1].arguments == '{"what": "hotel"}'
        started = [data["call_id"] for data in of(events, "tool.started")]
        assert started[1] == made_id
        # The made call stands after all answers of the turn that it interrupted.
        shape = [
            (m.role, [call.name for call in m.tool_calls] or m.name) for m in await on.messages()
        ]
        assert shape == [
            ("user", None),
            ("assistant", ["offer", "note"]),
            ("tool", "offer"),
            ("tool", "note"),
            ("assistant", ["accept"]),
            ("tool", "accept"),
            ("assistant", None),
        ]
        assert "accept" not in tool_names(on)


async def test_a_chain_of_questions_goes_through_approvals_and_deferral(
    autojump_clock: MockClock, store: Store
) -> None:
    """offer → grant (approved, asks again) → pay (defers) → done."""
    shop = Shop()
    answers: list[Any] = []

    @tool(
        effect="write",
        approval="always",
        confirmation="Grant {level}?",
        requires_interaction_response=True,
    )
    async def climb(ctx: ToolContext, level: int) -> Any:
        """Ask again and again."""
        assert ctx.interaction_response is not None
        answers.append(ctx.interaction_response.value)
        if level == 3:
            return "top"
        shop.then = ToolContinuation("climb", {"level": level + 1})
        return ToolResult(message=f"At {level}.", interaction=shop.request())

    shop.then = ToolContinuation("climb", {"level": "1"})
    tools = [*shop.tools(), climb]
    async with stage([calls("offer", "note"), "Done."], tools=tools, store=store) as on:
        run_id, question = await asked(on)
        seq = (await on.run(run_id)).event_seq
        for level in (1, 2, 3):
            await answer(on, run_id, question, f"answer {level}")
            approval = await paused(on, run_id, after=seq)
            assert (approval["kind"], approval["prompt"]) == ("approval", f"Grant {level}?")
            assert approval["tool_call_id"] == question["tool_call_id"]
            seq = (await on.run(run_id)).event_seq
            await answer(on, run_id, approval, True)
            if level < 3:
                question = await paused(on, run_id, after=seq)
                seq = (await on.run(run_id)).event_seq
        await finish(on, run_id)
        assert answers == ["answer 1", "answer 2", "answer 3"]
        assert shop.names == ["offer", "note"]
        assert len(on.model.requests) == 2


async def test_a_rejected_continuation_is_over_and_the_turn_goes_on(
    autojump_clock: MockClock, store: Store
) -> None:
    shop = Shop(then=ToolContinuation("grant", {"what": "key"}))
    async with stage([calls("offer", "note"), "Done."], tools=shop.tools(), store=store) as on:
        run_id, question = await asked(on)
        seq = (await on.run(run_id)).event_seq
        await answer(on, run_id, question, "x")
        approval = await paused(on, run_id, after=seq)
        await answer(on, run_id, approval, False)
        await finish(on, run_id)
        assert shop.names == ["offer", "note"]
        assert [one.get("code") for one in await envelopes(on)] == [None, None, "rejected"]


async def test_a_continuation_is_executed_although_an_equal_call_succeeded(
    autojump_clock: MockClock,
) -> None:
    shop = Shop()
    async with stage([calls("offer"), calls("offer"), "Done."], tools=shop.tools()) as on:
        run_id, first = await asked(on)
        seq = (await on.run(run_id)).event_seq
        await answer(on, run_id, first, "one")
        second = await paused(on, run_id, after=seq)
        await answer(on, run_id, second, "two")
        await finish(on, run_id)
        assert [(d.name, d.answer) for d in shop.deeds if d.name == "accept"] == [
            ("accept", "one"),
            ("accept", "two"),
        ]


BROKEN: list[Any] = [
    ToolContinuation("nothing_like_that", {}),
    ToolContinuation("note", {"n": 1}),
    ToolContinuation("request_input", {"kind": "text", "prompt": "?"}),
    ToolContinuation("accept", {"what": ["x"]}),
    ToolContinuation("accept", {"more": 1}),
    ToolContinuation("accept", None),  # type: ignore[arg-type]
    ToolContinuation(["accept"], {}),  # type: ignore[arg-type]
    ToolContinuation(None, {}),  # type: ignore[arg-type]
    None,
    "accept",
    {"tool": "accept"},
]


@pytest.mark.parametrize("then", BROKEN)
async def test_a_continuation_that_cannot_follow_fails_the_asking_call(
    autojump_clock: MockClock, then: Any
) -> None:
    await check_refused(Shop(then=then))


@pytest.mark.parametrize(
    "question",
    [
        {"kind": "text", "prompt": ""},
        {"kind": "text", "prompt": None},
        {"kind": "text", "prompt": "1. a\n2. b"},
        {"kind": "approval", "prompt": "Sure?"},
        {"kind": None, "prompt": "?"},
        {"kind": "choice", "prompt": "?"},
        {"kind": "choice", "prompt": "?", "options": [object()]},
        {"kind": "choice", "prompt": "?", "options": iter(())},
        {"kind": "form", "prompt": "?", "questions": 5},
        {"kind": "text", "prompt": "?", "multiple": 1},
    ],
)
async def test_a_question_that_breaks_a_rule_fails_the_asking_call(
    autojump_clock: MockClock, question: dict[str, Any]
) -> None:
    await check_refused(Shop(question=question))


async def check_refused(shop: Shop) -> None:
    async with stage([calls("offer", "note"), "Well."], tools=shop.tools()) as on:
        events = await on.play()
        (failed,) = of(events, "tool.failed")
        assert (failed["name"], failed["code"]) == ("offer", "invalid_interaction")
        told = await envelopes(on)
        assert told[0] == {
            "tool_status": "error",
            "code": "invalid_interaction",
            "message": "The question is not valid.",
            "retryable": False,
        }
        assert types(events)[-1] == "run.completed"
        assert shop.names == ["offer", "note"]
        claims = await on.store.list_claims(events[0].run_id)
        states = {claim.tool_name: claim.state for claim in claims}
        assert states == {"offer": "failed", "note": "succeeded"}


async def test_a_failing_result_asks_nothing(autojump_clock: MockClock) -> None:
    shop = Shop()

    @tool(effect="read", approval="never", parallel=True)
    async def fails(ctx: ToolContext) -> Any:
        """Fail with a question."""
        return ToolResult(data={"ok": False}, interaction=shop.request())

    async with stage([calls("fails"), "Well."], tools=[fails, *shop.tools()]) as on:
        events = await on.play()
        assert of(events, "tool.failed")[0]["code"] == "tool_rejected"
        assert types(events)[-1] == "run.completed"


async def test_a_parallel_tool_cannot_ask(autojump_clock: MockClock) -> None:
    shop = Shop()

    @tool(effect="read", approval="never", parallel=True)
    async def asks(ctx: ToolContext, n: int) -> Any:
        """Ask beside others."""
        return shop.request() if n == 9 else ToolResult(interaction=shop.request())

    script = [asking(*(ToolCall("asks", {"n": n}) for n in range(2))), calls("asks", n=3), "Well."]
    async with stage(script, tools=[asks, *shop.tools()]) as on:
        events = await on.play()
        assert [data["code"] for data in of(events, "tool.failed")] == ["tool_error"] * 3


async def test_a_refused_answer_to_a_tool_changes_nothing(
    autojump_clock: MockClock, store: Store
) -> None:
    shop = Shop()
    async with stage([calls("offer"), "Done."], tools=shop.tools(), store=store) as on:
        run_id, question = await asked(on)
        before = await snapshot(on, run_id)
        with pytest.raises(InvalidResponse):
            await answer(on, run_id, question, " ")
        assert await snapshot(on, run_id) == before
        await answer(on, run_id, question, "x")
        await finish(on, run_id)


@pytest.mark.parametrize("phase", ["asked", "running"])
async def test_a_cancel_answers_the_made_call_too(
    autojump_clock: MockClock, store: Store, phase: str
) -> None:
    shop = Shop(then=ToolContinuation("slow"))

    @tool(effect="write", approval="never", requires_interaction_response=True)
    async def slow(ctx: ToolContext) -> None:
        """Take long."""
        await trio.sleep(50)
        shop.did(ctx, "slow")

    tools = [*shop.tools(), slow]
    async with stage([calls("offer", "note"), "Hello."], tools=tools, store=store) as on:
        run_id, question = await asked(on)
        if phase == "running":
            await answer(on, run_id, question, "x")
            await on.until(run_id, "tool.started", 2)
        await on.cancel(run_id)
        await finish(on, run_id, "cancelled")
        await trio.sleep(100)
        assert shop.names == ["offer"]
        told = await envelopes(on)
        assert [one.get("code") for one in told] == [None, "cancelled", "cancelled"]
        await on.play("again")
        await check_calls(on)


async def test_a_broken_continuation_uses_the_answer_up(autojump_clock: MockClock) -> None:
    shop = Shop(then=ToolContinuation("breaks"))

    @tool(effect="write", approval="never", requires_interaction_response=True)
    async def breaks(ctx: ToolContext) -> None:
        """Break."""
        raise ZeroDivisionError

    tools = [*shop.tools(), breaks]
    async with stage([calls("offer", "accept"), "Done."], tools=tools) as on:
        run_id, question = await asked(on)
        await answer(on, run_id, question, "x")
        await finish(on, run_id)
        codes = [one.get("code") for one in await envelopes(on)]
        assert codes == [None, "interaction_required", "tool_error"]


@tool(effect="read", approval="never", parallel=True, requires_interaction_response=True)
async def consult(ctx: ToolContext, n: int) -> str:
    """Read with the answer of the user."""
    assert ctx.interaction_response is not None
    return f"{n}: {ctx.interaction_response.value}"


async def test_one_answer_serves_one_call_also_of_a_parallel_tool(
    autojump_clock: MockClock, store: Store
) -> None:
    model = [
        asking(ToolCall("request_input", {"kind": "text", "prompt": "Which?"})),
        asking(ToolCall("consult", {"n": 1}), ToolCall("consult", {"n": 2})),
        "Done.",
    ]
    async with stage(model, tools=[consult], store=store) as on:
        run_id, question = await asked(on)
        await answer(on, run_id, question, "red")
        events = await finish(on, run_id)
        assert len(of(events, "tool.completed")) == 1
        assert [data["code"] for data in of(events, "tool.failed")] == ["interaction_required"]
