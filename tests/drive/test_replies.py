"""Replies: calls, text and context of a model step."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from rungent import Agent, ToolCall, ToolContext
from rungent.llm.port import (
    ModelCompleted,
    ModelFailure,
    ModelRequest,
    TextDelta,
)
from rungent.testing.scripted import Delay, ScriptedModel
from tests.helpers import calls, failed, of, stage, system, texts, types

NETWORK = ModelFailure("network")


async def test_malformed_calls_are_repeated_with_a_correction(autojump_clock: MockClock) -> None:
    malformed = ModelFailure("invalid_tool_arguments", tool_name="look")
    script = [NETWORK, malformed, NETWORK, calls("nothing"), "Sorry."]
    async with stage(script) as on:
        events = await on.play()
        named = [d.get("tool_name") for d in of(events, "model.retrying")]
        assert named == [None, "look", None]
        corrected = ["valid JSON" in system(request) for request in on.model.requests]
        # On every further attempt of the step, not in the next step.
        assert corrected == [False, False, True, True, False]


@pytest.mark.parametrize("text", ["", "Let me "])
async def test_a_call_cut_by_the_length_limit_is_never_executed(
    autojump_clock: MockClock, text: str
) -> None:
    cut = ModelCompleted(text, (ToolCall("look", {}),), finish_reason="length")
    async with stage([cut, "Sorry."]) as on:
        events = await on.play()
        retrying = of(events, "model.retrying")[0]
        assert (retrying["reason"], retrying["tool_name"]) == ("invalid_tool_arguments", "look")
        assert not [m for m in await on.messages() if m.tool_calls]


async def test_a_text_cut_by_the_length_limit_is_final(autojump_clock: MockClock) -> None:
    async with stage([ModelCompleted("Once upon", finish_reason="length")]) as on:
        events = await on.play()
    assert of(events, "model.completed")[0]["finish_reason"] == "length"
    assert of(events, "message.completed") == [{"content": "Once upon"}]


async def test_calls_outrank_the_finish_reason(autojump_clock: MockClock) -> None:
    said = ModelCompleted("Hm.", (ToolCall("nothing"),), provider_request_id="req-1")
    async with stage([said, "Done."]) as on:
        events = await on.play()
    completed = of(events, "model.completed")
    assert [d["finish_reason"] for d in completed] == ["tool_calls", "stop"]
    assert [d["provider_request_id"] for d in completed] == ["req-1", None]


# --- text ----------------------------------------------------------------------------------------


async def test_leading_white_space_is_never_shown(autojump_clock: MockClock) -> None:
    parts = [TextDelta(" "), TextDelta("\n\t"), TextDelta("  Hi "), TextDelta(" there "), Delay(1)]
    async with stage([[*parts, ModelCompleted()]]) as on:
        events = await on.play()
        assert "".join(texts(events)) == "Hi  there "
        assert (await on.messages())[-1].content == "Hi  there "


async def test_calls_beside_blank_text_show_no_text(autojump_clock: MockClock) -> None:
    blank = [TextDelta(" \n"), Delay(1), ModelCompleted(tool_calls=(ToolCall("nothing"),))]
    async with stage([blank, "Done."]) as on:
        events = await on.play()
        assert texts(events) == ["Done."]
        assert "message.reset" not in types(events)
        assert (await on.messages())[1].content == ""


async def test_text_of_a_failed_attempt_is_not_in_the_answer(autojump_clock: MockClock) -> None:
    async with stage([[TextDelta("Wrong"), Delay(1), NETWORK], "Right."]) as on:
        events = await on.play()
        assert of(events, "message.completed") == [{"content": "Right."}]
        assert [m.content for m in await on.messages()] == ["hi", "Right."]


async def test_unstorable_characters_of_a_model_are_replaced(autojump_clock: MockClock) -> None:
    call = ToolCall("no\x00thing", {"a\ud800": "b\x00", "c": [float("nan")]}, "id\x00")
    async with stage([ModelCompleted("x\x00y", (call,)), "a\udfffb"]) as on:
        events = await on.play()
        assert texts(events) == ["x\ufffdy", "a\ufffdb"]
        stored = (await on.messages())[1].tool_calls[0]
        assert stored == ToolCall("no\ufffdthing", {"a\ufffd": "b\ufffd", "c": [None]}, "id\ufffd")


# --- context -------------------------------------------------------------------------------------


async def test_context_is_asked_for_once_per_step_not_per_attempt(
    autojump_clock: MockClock,
) -> None:
    asked: list[str | None] = []

    def context(ctx: ToolContext) -> str:
        asked.append(ctx.call_id)
        return f"It is day {len(asked)}."

    agent = Agent("helper", "Help.", context=context)
    async with stage([NETWORK, calls("nothing"), NETWORK, "Done."], agent=agent) as on:
        await on.play()
        assert asked == [None, None]
        days = [system(request).split("day ")[1][0] for request in on.model.requests]
        assert days == ["1", "1", "2", "2"]


@pytest.mark.parametrize("answer", [ZeroDivisionError("canary"), 5, b"bytes"])
async def test_a_context_that_cannot_be_had_fails_the_run(
    autojump_clock: MockClock, answer: object
) -> None:
    async def context(ctx: ToolContext) -> str:
        await trio.sleep(1)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]

    async with stage([], agent=Agent("helper", "Help.", context=context)) as on:
        events = await on.play()
    assert failed(events) == "context_failed"
    assert of(events, "run.failed")[0]["retryable"] is True


async def test_unstorable_context_does_not_break_the_run(autojump_clock: MockClock) -> None:
    def context(ctx: ToolContext) -> str:
        return "from a form: \ud800\x00"

    async with stage(["ok"], agent=Agent("helper", "Help.", context=context)) as on:
        assert types(await on.play())[-1] == "run.completed"
        assert "from a form: \ufffd\ufffd" in system(on.model.requests[0])


async def test_a_hanging_context_meets_the_total_deadline(autojump_clock: MockClock) -> None:
    async def context(ctx: ToolContext) -> str:
        await trio.sleep_forever()
        raise AssertionError

    agent = Agent("helper", "Help.", context=context)
    async with stage([], agent=agent, model_step_total_timeout_seconds=20) as on:
        assert failed(await on.play()) == "model_step_timeout"


async def test_a_script_that_is_over_says_where(autojump_clock: MockClock) -> None:
    model = ScriptedModel(["only"])
    with pytest.raises(AssertionError, match=r"after 1 items.*user message 'again'"):  # noqa: PT012
        for content in ("first", "again"):
            request = ModelRequest(({"role": "user", "content": content},))
            async with model.stream(request) as chunks:
                assert [type(chunk) async for chunk in chunks] == [TextDelta, ModelCompleted]
    assert len(model.requests) == 2
    assert (model.remaining, repr(model)) == (0, "<ScriptedModel: 1 of 1 items played>")
    with pytest.raises(TypeError, match="item 2"):
        ScriptedModel(["fine", 5])  # type: ignore[list-item]
