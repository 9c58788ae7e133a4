"""Model steps, budgets, lost workers and early ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rungent import ToolCall, ToolResult
from rungent._lifecycle import cancel
from rungent._lifecycle.actions import CallModel, Park, RunTools
from rungent._lifecycle.outcomes import (
    Initialised,
    ModelGaveUp,
    ProgressReported,
    Retrying,
    RunBroke,
    Ticked,
    ToolFinished,
    Wrote,
)
from rungent.catalog import RUN_FAILURES
from rungent.events import Usage
from rungent.records import ActivityTexts, RunStatus
from tests.lifecycle.world import World, facts_of, replied

TEXTS = ActivityTexts(
    message="m", waiting_message="w", long_wait_message="l", continuation_message="c"
)
USED = Usage(input_tokens=3, output_tokens=4, total_tokens=7)


def begun(**limits: Any) -> World:
    """A run in its first model step."""
    world = World(facts_of(**limits))
    world.proceed()
    return world


def ask(world: World, name: str, number: int = 1, count: int = 1) -> object:
    ids = range(number, number + count)
    return world.proceed(replied(*(ToolCall(name, {"n": 1}, f"id{n}") for n in ids)))


def fine(number: int = 1) -> ToolFinished:
    return ToolFinished(f"id{number}", ToolResult(data={"done": number}))


def test_the_final_answer_completes_step_message_and_run_at_once() -> None:
    world = begun()
    world.apply(Wrote("Bye."))
    assert isinstance(world.proceed(replied(text="Bye.", usage=USED, shown=True)), Park)
    assert world.types()[-3:] == ["model.completed", "message.completed", "run.completed"]
    assert world.commits == 4
    assert world.messages[-1].public
    assert world.stored.status is RunStatus.COMPLETED
    assert world.stored.lease is None


def test_text_that_nobody_wrote_yet_goes_out_with_the_answer() -> None:
    world = begun()
    world.apply(Ticked(first=True, elapsed_seconds=3))
    assert isinstance(world.proceed(replied(text="Bye.", unwritten="Bye.")), Park)
    assert world.types()[-5:] == [
        "activity.updated",
        "message.delta",
        "model.completed",
        "message.completed",
        "run.completed",
    ]
    assert world.last("message.delta") == {"delta": "Bye."}
    assert world.commits == 4


def test_unwritten_text_beside_calls_is_told_and_reset_at_once() -> None:
    world = begun()
    call = ToolCall("look", {"n": 1}, "id1")
    world.proceed(replied(call, text="Let me see.", unwritten="Let me see."))
    assert world.types()[-4:] == [
        "message.delta",
        "model.completed",
        "message.reset",
        "tool.started",
    ]


def test_a_step_beyond_the_budget_fails_the_run() -> None:
    world = begun(steps=2)
    for number in (1, 2):
        ask(world, "look", number)
        world.proceed(fine(number))
    assert isinstance(world.proceed(), Park)
    assert world.stored.failure_code == "model_step_limit_exceeded"
    assert world.stored.failure_retryable is True
    assert world.stored.model_steps == 2


def test_usage_is_summed_over_steps_and_null_when_nobody_counted() -> None:
    world = begun()
    world.proceed(replied(ToolCall("look", {"n": 1}, "id1"), usage=USED))
    world.proceed(fine(1))
    ask(world, "look", 2)
    world.proceed(fine(2))
    world.apply(Wrote("x"))
    world.proceed(replied(text="x", usage=USED, shown=True))
    assert world.last("run.completed")["usage"] == {
        "input_tokens": 6,
        "output_tokens": 8,
        "total_tokens": 14,
    }
    world = begun()
    world.apply(Wrote("x"))
    world.proceed(replied(text="x", shown=True))
    assert world.last("run.completed")["usage"] is None


def test_text_beside_calls_is_reset_for_clients_and_kept_in_the_transcript() -> None:
    world = begun()
    world.apply(Wrote("Let me see."))
    world.proceed(replied(ToolCall("look", {"n": 1}, "id1"), text="Let me see.", shown=True))
    assert world.types()[-3:] == ["model.completed", "message.reset", "tool.started"]
    assert (world.messages[-1].content, world.messages[-1].public) == ("Let me see.", False)


def test_the_wait_row_closes_before_the_first_delta_and_opens_again() -> None:
    world = World(facts_of(initialised=True))
    world.proceed()
    world.proceed(Initialised(TEXTS))
    assert world.last("activity.updated")["message"] == "m"
    world.apply(Ticked(first=True, elapsed_seconds=3))
    assert world.last("activity.updated")["message"] == "w"
    world.apply(Ticked(first=False, elapsed_seconds=8))
    assert world.last("activity.updated")["message"] == "l"
    world.apply(Wrote("a"))
    assert world.types()[-2:] == ["activity.updated", "message.delta"]
    assert world.last("activity.updated")["message"] == "m"
    world.apply(Wrote("b"))
    assert world.types()[-1] == "message.delta"
    assert world.types()[-2] == "message.delta"
    world.apply(Ticked(first=False, elapsed_seconds=13))
    world.proceed(replied(ToolCall("look", {"n": 1}, "id1"), text="ab", shown=True))
    world.proceed(fine())
    world.apply(Ticked(first=True, elapsed_seconds=3))
    assert world.last("activity.updated")["message"] == "c"
    world.apply(Wrote("a"))
    assert world.last("activity.updated")["message"] == "c"
    assert world.last("activity.updated")["status"] == "completed"
    world.types()


@pytest.mark.parametrize("code", sorted(RUN_FAILURES))
def test_every_failure_tells_its_text_and_whether_to_retry(code: str) -> None:
    world = begun()
    assert isinstance(world.proceed(ModelGaveUp(code)), Park)
    text, retryable = RUN_FAILURES[code]
    assert world.last("run.failed") == {
        "status": "failed",
        "code": code,
        "error": text,
        "retryable": retryable,
    }


# --- lost workers ------------------------------------------------------------------------------


def test_a_step_of_a_lost_worker_goes_on_under_the_same_number() -> None:
    world = begun()
    world.apply(Wrote("half"))
    world.crash()
    pending = world.proceed()
    assert isinstance(pending, CallModel)
    assert (pending.step, pending.resumed, world.stored.model_steps) == (1, True, 1)
    assert world.types()[-2:] == ["message.reset", "model.retrying"]
    assert world.last("model.retrying") == {
        "step": 1,
        "retry": 1,
        "max_retries": 5,
        "delay_seconds": 0,
        "reason": "worker_lost",
    }


def test_a_run_that_is_lost_too_often_in_a_row_fails() -> None:
    world = begun(recoveries=2)
    for _ in range(2):
        world.crash()
        assert isinstance(world.proceed(), CallModel)
    world.crash()
    assert isinstance(world.proceed(), Park)
    assert world.stored.failure_code == "recovery_exhausted"


def test_a_settled_step_or_call_starts_the_count_of_losses_anew() -> None:
    world = begun(recoveries=2)

    def lose_twice() -> None:
        for _ in range(2):
            world.crash()
            assert not isinstance(world.proceed(), Park)

    lose_twice()
    ask(world, "look", count=2)
    lose_twice()
    world.proceed(fine(1))
    lose_twice()
    world.proceed(fine(2))
    lose_twice()
    assert world.stored.status is RunStatus.RUNNING


@pytest.mark.parametrize("name", ["look", "send"])
def test_a_harmless_call_of_a_lost_worker_is_executed_again_as_the_same_call(name: str) -> None:
    world = begun()
    ask(world, name)
    world.apply(ProgressReported("id1", "Half."))
    world.crash()
    pending = world.proceed()
    assert isinstance(pending, RunTools)
    assert pending.invocations[0].call.id == "id1"
    assert world.ledger["id1"].attempts == 2
    assert world.types()[-1] == "tool.started"
    world.proceed(fine())
    assert world.last("activity.updated")["status"] == "completed"


def test_a_write_of_a_lost_worker_is_never_executed_again() -> None:
    world = begun()
    ask(world, "book", count=2)
    world.apply(ProgressReported("id1", "Half."))
    world.crash()
    pending = world.proceed()
    assert world.ledger["id1"].state == "in_doubt"
    assert world.ledger["id1"].code == "outcome_unknown"
    assert json.loads(world.contents()[0])["code"] == "outcome_unknown"
    assert world.types()[-3:] == ["activity.updated", "tool.failed", "tool.started"]
    assert world.last("activity.updated")["status"] == "failed"
    # Nobody knows whether the first took effect: it does not suppress the second.
    assert isinstance(pending, RunTools)
    assert pending.invocations[0].call.id == "id2"


def test_an_unknown_outcome_does_not_count_as_a_failure() -> None:
    world = begun()
    pending = ask(world, "append", count=3)
    for _ in range(3):
        world.crash()
        pending = world.proceed()
    assert isinstance(pending, CallModel)
    assert world.stored.state.streak is None


def test_parallel_reads_of_a_lost_worker_keep_what_was_settled() -> None:
    world = begun()
    ask(world, "peek", count=3)
    world.apply(fine(2))
    world.crash()
    pending = world.proceed()
    while isinstance(pending, RunTools):
        for invocation in pending.invocations:
            assert invocation.call.id != "id2"
            world.apply(fine(int(invocation.call.id[2:])))
        pending = world.proceed()
    done = [json.loads(content)["data"]["done"] for content in world.contents()]
    assert done == [1, 2, 3]
    assert [world.ledger[f"id{n}"].attempts for n in (1, 2, 3)] == [2, 1, 2]


def test_the_initializers_answer_is_not_asked_for_twice() -> None:
    world = World(facts_of(initialised=True))
    world.proceed()
    world.proceed(Initialised(TEXTS))
    world.crash()
    assert isinstance(world.proceed(), CallModel)


# --- early ends --------------------------------------------------------------------------------


def test_a_failed_run_answers_its_open_calls_as_cancelled() -> None:
    world = begun()
    ask(world, "book", count=3)
    world.proceed(fine(1))
    world.proceed(RunBroke("internal_error"))
    contents = [json.loads(content) for content in world.contents()]
    assert [content.get("code") for content in contents[-2:]] == ["cancelled", "cancelled"]
    assert world.types()[-1] == "run.failed"


def test_a_cut_off_write_is_in_doubt_and_a_cut_off_read_is_cancelled() -> None:
    for name, state in (("book", "in_doubt"), ("look", "cancelled"), ("send", "in_doubt")):
        world = begun()
        ask(world, name)
        world.cancel()
        assert world.ledger["id1"].state == state


def test_a_cancel_keeps_what_parallel_reads_found() -> None:
    world = begun()
    ask(world, "peek", count=3)
    world.apply(fine(2))
    world.cancel()
    contents = [json.loads(content) for content in world.contents()]
    assert [content.get("code") for content in contents] == ["cancelled", None, "cancelled"]
    assert contents[1]["data"] == {"done": 2}
    assert world.ledger["id2"].state == "succeeded"


def test_a_cancel_raises_the_fencing_token_and_ends_the_lease() -> None:
    world = begun()
    before = world.stored.fencing_token
    world.cancel()
    assert world.stored.fencing_token == before + 1
    assert world.stored.lease is None
    assert world.types()[-1] == "run.cancelled"
    assert isinstance(world.proceed(), Park)


def test_a_run_that_ended_is_not_cancelled() -> None:
    world = begun()
    world.proceed(ModelGaveUp("model_unavailable"))
    assert cancel(world.stored, world.facts) is None


def test_a_retry_tells_the_malformed_tool_only_when_it_is_known() -> None:
    world = begun()
    world.apply(Retrying(1, 3, 0.5, "invalid_tool_arguments", "book"))
    assert world.last("model.retrying")["tool_name"] == "book"
    world.apply(Retrying(2, 3, 0.5, "network"))
    assert "tool_name" not in world.last("model.retrying")
    assert world.types()[-4:] == ["message.reset", "model.retrying"] * 2
