"""A suite plays conversations: sessions, answers, follow-ups, hooks, time limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from trio.testing import MockClock

from rungent import Agent, Identity, Runtime, ToolCall, ToolContext, tool
from rungent.llm import ModelCompleted, ModelFailure
from rungent.store import MemoryStore
from rungent.testing import (
    BaselineCase,
    BaselineContext,
    BaselineEnvironment,
    BaselineReport,
    BaselineResult,
    BaselineSuite,
    Delay,
    ScriptedModel,
    run_baseline,
)
from tests.helpers import calls


@tool(effect="write", approval="never", deduplicate=False)
async def note(ctx: ToolContext) -> str:
    """Write."""
    ctx.deps.get("notes", []).append(ctx.resource.get("book"))
    return "noted"


@tool(effect="destructive", approval="always", confirmation="Really?")
async def drop(ctx: ToolContext) -> str:
    """Delete."""
    return "gone"


def runtime_of(*replies: Any) -> Runtime:
    agent = Agent("helper", "Help.", tools=[note, drop])
    return Runtime(agents=[agent], model=ScriptedModel(replies), store=MemoryStore())


def which() -> ModelCompleted:
    options = [{"id": "a", "label": "A"}, {"id": "b", "label": "B"}]
    asked: dict[str, Any] = {"kind": "choice", "prompt": "Which?", "options": options}
    return ModelCompleted(tool_calls=(ToolCall("request_input", asked),))


async def only(report: BaselineReport) -> BaselineResult:
    (result,) = report.results
    return result


async def played(replies: Sequence[Any], **case: Any) -> BaselineResult:
    cases = [BaselineCase("it", "Go", **case)]
    return await only(await run_baseline(runtime_of(*replies), cases))


async def test_a_case_passes_with_the_tools_and_the_answer_it_expects() -> None:
    result = await played([calls("note"), "Done."], expected_tools=("note",))
    assert (result.passed, result.error) == (True, None)
    assert (result.tools, result.interactions, result.final_text) == (("note",), (), "Done.")


async def test_questions_get_the_responses_in_order() -> None:
    result = await played(
        [which(), calls("drop"), "Done."],
        responses=("b", "approve"),
        expected_tools=("drop",),
        expected_interactions=("choice", "approval"),
    )
    assert result.error is None


async def test_a_run_left_waiting_is_cancelled_and_told_apart() -> None:
    runtime = runtime_of(which(), "Next.")
    cases = [
        BaselineCase("waits", "Go", expected_interactions=("choice",)),
        BaselineCase("goes on", "Go"),
    ]
    report = await run_baseline(runtime, cases)
    waits, goes_on = report.results
    assert waits.error == "status: expected completed, got waiting_input"
    assert goes_on.passed


async def test_followups_stop_after_a_turn_that_did_not_complete() -> None:
    result = await played([ModelFailure("model_rejected", terminal=True)], followups=("More",))
    assert result.error == "status: expected completed, got failed"
    result = await played(["One.", "Two."], followups=("More",))
    assert (result.passed, result.final_text) == (True, "Two.")


async def test_the_state_is_checked_last_and_may_be_checked_async() -> None:
    seen: list[BaselineContext] = []

    async def wrong(ctx: BaselineContext) -> None:
        seen.append(ctx)
        raise AssertionError("nothing was noted")

    result = await played(["Done."], assert_state=wrong)
    assert result.error == "nothing was noted"
    assert result.measures.state_correct is False
    assert [event.type for event in seen[0].events][-1] == "run.completed"
    result = await played([calls("note"), "Done."], assert_state=fine)
    assert result.error is not None
    assert result.error.startswith("tools:")
    assert result.measures.state_correct is True


def fine(ctx: BaselineContext) -> None:
    """Nothing is wrong."""


async def test_an_invalid_response_fails_the_case_with_its_text() -> None:
    result = await played([which()], responses=("z",), expected_interactions=("choice",))
    assert result.error is not None
    assert not result.passed


async def test_a_case_that_takes_too_long_fails(autojump_clock: MockClock) -> None:
    runtime = runtime_of([Delay(500), ModelCompleted("Late.")], "In time.")
    suite = BaselineSuite(runtime, [BaselineCase("late", "Go"), BaselineCase("next", "Go")])
    late, following = (await suite.run()).results
    assert late.error == "timed out after 300 s"
    assert late.measures.seconds == 300
    assert following.passed


async def test_each_case_may_have_an_environment_of_its_own() -> None:
    notes: list[Any] = []

    async def setup(case: BaselineCase) -> BaselineEnvironment:
        return BaselineEnvironment({"book": case.name}, {"notes": notes})

    cases = [BaselineCase(name, "Go", expected_tools=("note",)) for name in ("a", "b")]
    runtime = runtime_of(calls("note"), "1", calls("note"), "2")
    report = await run_baseline(runtime, cases, setup_case=setup, identity=Identity("me"))
    report.assert_passed()
    assert notes == ["a", "b"]


async def test_hooks_bracket_the_suite_whatever_happens() -> None:
    order: list[str] = []

    async def before() -> None:
        order.append("before")

    suite = BaselineSuite(
        runtime_of("Done."),
        [BaselineCase("it", "Go")],
        before_all=before,
        after_all=lambda: order.append("after"),
    )
    (await suite.run(finished=lambda result: order.append(result.name))).assert_passed()
    assert order == ["before", "it", "after"]

    def broken() -> None:
        raise ZeroDivisionError

    suite.before_all = broken
    with pytest.raises(ZeroDivisionError):
        await suite.run()
    assert order[-1] == "after"


async def test_a_served_runtime_stays_served() -> None:
    runtime = runtime_of("Done.", "Done.")
    async with runtime:
        suite = BaselineSuite(runtime, [BaselineCase("it", "Go")])
        report = await suite.run(repeat=2)
        assert runtime.serving
    assert report.by_case() == {"it": (2, 2)}
