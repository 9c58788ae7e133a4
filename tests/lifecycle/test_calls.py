"""How calls are handled: order, repetitions, failures, refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import JsonValue

from rungent import ToolCall, ToolResult
from rungent._lifecycle.actions import CallModel, Park, RunTools, SkipDuplicate
from rungent._lifecycle.outcomes import (
    DuplicateSkipped,
    Initialised,
    Outcome,
    ProgressReported,
    ToolBroke,
    ToolFinished,
)
from rungent.records import RunStatus
from tests.lifecycle.world import World, facts_of, replied


def turn(*calls: ToolCall, **limits: Any) -> tuple[World, object]:
    """A run whose first step asked for these calls, and what it needs next."""
    world = World(facts_of(**limits))
    world.proceed()
    return world, world.proceed(replied(*calls))


def call(name: str, number: int = 1, arguments: dict[str, JsonValue] | None = None) -> ToolCall:
    return ToolCall(name, {"n": 1} if arguments is None else arguments, f"id{number}")


def fine(number: int = 1) -> Outcome:
    return ToolFinished(f"id{number}", ToolResult(data={"done": number}))


def failing(number: int = 1) -> Outcome:
    return ToolFinished(f"id{number}", ToolResult(data={"ok": False}))


def codes(world: World) -> list[str | None]:
    """The code of each tool message, None for a success."""
    return [json.loads(content).get("code") for content in world.contents()]


def running(pending: object) -> list[str]:
    assert isinstance(pending, RunTools)
    return [invocation.call.id for invocation in pending.invocations]


def test_an_outcome_is_committed_together_with_the_opening_of_the_next_action() -> None:
    world, pending = turn(call("book"))
    assert running(pending) == ["id1"]
    assert world.types()[-2:] == ["model.completed", "tool.started"]
    assert world.commits == 3
    world.proceed(fine())
    assert world.types()[-2:] == ["tool.completed", "model.started"]
    assert world.commits == 4


def test_calls_that_need_no_execution_settle_in_one_commit() -> None:
    world, pending = turn(
        call("nothing"), call("book", 2, {}), call("report_progress", 3, {"message": " Hm. "})
    )
    assert isinstance(pending, CallModel)
    assert pending.step == 2
    assert world.commits == 3
    assert world.types()[2:] == [
        "model.completed",
        "tool.failed",
        "activity.updated",
        "model.started",
    ]
    assert codes(world) == ["unknown_tool", "invalid_arguments", None]
    assert world.last("activity.updated") == {
        "id": "id3",
        "step": 1,
        "kind": "progress",
        "message": "Hm.",
        "status": "completed",
    }


@pytest.mark.parametrize(
    ("asked", "code", "shown"),
    [
        (call("nothing"), "unknown_tool", False),
        (call("accept"), "interaction_required", True),
        (call("accept", 1, {}), "interaction_required", True),
        (call("book", 1, {"n": "one"}), "invalid_arguments", True),
        (call("delete", 1, {"n": []}), "invalid_arguments", True),
        (call("request_input", 1, {}), "invalid_interaction", True),
        (call("report_progress", 1, {"message": "x" * 281}), "invalid_progress", False),
        (call("report_progress", 1, {"message": None}), "invalid_progress", False),
    ],
)
def test_a_refused_call_is_answered_and_never_executed(
    asked: ToolCall, code: str, shown: bool
) -> None:
    world, pending = turn(asked)
    assert isinstance(pending, CallModel)
    assert codes(world) == [code]
    assert world.ledger == {}
    assert ("tool.failed" in world.types()) is shown


def test_the_model_learns_which_arguments_are_wrong_without_their_values() -> None:
    world, _ = turn(call("book", 1, {"n": "secret"}))
    envelope = json.loads(world.contents()[0])
    assert envelope["retryable"] is True
    assert [detail["path"] for detail in envelope["details"]] == ["n"]
    assert "secret" not in world.contents()[0]


def test_parallel_reads_open_together_and_are_answered_in_call_order() -> None:
    world, pending = turn(call("peek", 1), call("peek", 2), call("peek", 3), call("book", 4))
    assert running(pending) == ["id1", "id2", "id3"]
    world.apply(fine(3))
    world.apply(fine(1))
    assert [json.loads(c)["data"]["done"] for c in world.contents()] == [1]
    world.apply(failing(2))
    assert [json.loads(c)["data"].get("done") for c in world.contents()] == [1, None, 3]
    assert running(world.proceed()) == ["id4"]


def test_a_group_of_parallel_reads_ends_before_a_call_that_is_none() -> None:
    world, pending = turn(call("peek", 1), call("look", 2), call("peek", 3), call("peek", 4))
    assert running(pending) == ["id1"]
    assert running(world.proceed(fine(1))) == ["id2"]
    assert running(world.proceed(fine(2))) == ["id3", "id4"]


def test_a_refused_call_ends_a_group_of_parallel_reads() -> None:
    world, pending = turn(call("peek", 1), call("peek", 2, {}), call("peek", 3))
    assert running(pending) == ["id1"]
    assert running(world.proceed(fine(1))) == ["id3"]
    assert codes(world) == [None, "invalid_arguments"]


# --- repetitions -------------------------------------------------------------------------------


def test_a_write_that_succeeded_is_not_executed_again_in_the_run() -> None:
    world, _ = turn(call("book", 1), call("book", 2))
    skipped = world.proceed(fine(1))
    assert isinstance(skipped, SkipDuplicate)
    assert (skipped.call.id, skipped.earlier_id) == ("id2", "id1")
    world.proceed(DuplicateSkipped("id2", {"done": 1}))
    assert world.last("tool.completed")["deduplicated"] is True
    assert json.loads(world.contents()[1]) == {
        "tool_status": "success",
        "deduplicated": True,
        "data": {"done": 1},
        "message": "This was already done; it was not repeated.",
    }
    assert set(world.ledger) == {"id1"}


def test_repetitions_are_found_by_normalised_arguments() -> None:
    world, _ = turn(call("book", 1, {"n": 1}), call("book", 2, {"n": "1"}))
    assert isinstance(world.proceed(fine(1)), SkipDuplicate)


def test_a_failed_first_attempt_does_not_suppress_the_second() -> None:
    world, _ = turn(call("book", 1), call("book", 2), call("book", 3))
    assert running(world.proceed(failing(1))) == ["id2"]
    assert running(world.proceed(ToolBroke("id2", "timeout"))) == ["id3"]


def test_reads_and_tools_that_say_so_are_repeated() -> None:
    world, _ = turn(call("look", 1), call("look", 2), call("append", 3), call("append", 4))
    assert running(world.proceed(fine(1))) == ["id2"]
    assert running(world.proceed(fine(2))) == ["id3"]
    assert running(world.proceed(fine(3))) == ["id4"]


def test_the_initializers_call_counts_as_the_first_of_its_kind() -> None:
    world = World(facts_of(initialised=True))
    world.proceed()
    assert running(world.proceed(Initialised(call=call("book", 1)))) == ["id1"]
    world.proceed(fine(1))
    assert isinstance(world.proceed(replied(call("book", 2))), SkipDuplicate)


# --- identical failures ------------------------------------------------------------------------


def test_the_third_identical_failure_in_a_row_fails_the_run_for_good() -> None:
    world, _ = turn(*(call("append", n) for n in (1, 2, 3, 4)))
    world.proceed(failing(1))
    world.proceed(ToolBroke("id2", "tool_error"))
    assert isinstance(world.proceed(failing(3)), Park)
    assert (world.stored.failure_code, world.stored.failure_retryable) == (
        "tool_retry_exhausted",
        False,
    )
    assert codes(world) == ["tool_rejected", "tool_error", "tool_rejected", "cancelled"]


def test_identical_failures_are_counted_over_steps() -> None:
    world, _ = turn(call("append", 1), failures=2)
    world.proceed(failing(1))
    world.proceed(replied(call("append", 2)))
    assert isinstance(world.proceed(failing(2)), Park)
    assert world.stored.failure_code == "tool_retry_exhausted"


def test_refused_calls_count_by_their_raw_arguments() -> None:
    world, pending = turn(*(call("book", n, {"x": 1}) for n in (1, 2, 3)))
    assert isinstance(pending, Park)
    assert world.stored.failure_code == "tool_retry_exhausted"
    _, pending = turn(*(call("book", n, {"x": n}) for n in (1, 2, 3)))
    assert isinstance(pending, CallModel)


def test_a_call_that_waits_for_an_answer_counts_by_its_normalised_arguments() -> None:
    world, pending = turn(
        call("accept", 1, {"n": 1}), call("accept", 2, {"n": "1"}), call("accept", 3, {"n": 1})
    )
    assert isinstance(pending, Park)
    assert world.stored.failure_code == "tool_retry_exhausted"


def test_another_call_restarts_the_count() -> None:
    world, _ = turn(*(call("append", n, {"n": 2 if n == 3 else 1}) for n in range(1, 6)))
    for number in (1, 2, 3, 4):
        world.proceed(failing(number))
    assert isinstance(world.proceed(failing(5)), CallModel)


def test_a_success_clears_the_count() -> None:
    world, _ = turn(*(call("append", n, {"n": 2 if n == 3 else 1}) for n in range(1, 6)))
    for number in (1, 2):
        world.proceed(failing(number))
    world.proceed(fine(3))
    world.proceed(failing(4))
    assert isinstance(world.proceed(failing(5)), CallModel)


def test_a_skipped_repetition_is_a_success_and_clears_the_count() -> None:
    world, _ = turn(
        call("book", 1), call("append", 2), call("append", 3), call("book", 4), call("append", 5)
    )
    world.proceed(fine(1))
    world.proceed(failing(2))
    assert isinstance(world.proceed(failing(3)), SkipDuplicate)
    world.proceed(DuplicateSkipped("id4", {"done": 1}))
    assert isinstance(world.proceed(failing(5)), CallModel)


def test_a_progress_report_leaves_the_count() -> None:
    said: dict[str, JsonValue] = {"message": "Again."}
    world, _ = turn(
        call("append", 1),
        call("append", 2),
        ToolCall("report_progress", said, "id3"),
        call("append", 4),
    )
    world.proceed(failing(1))
    world.proceed(failing(2))
    assert isinstance(world.proceed(failing(4)), Park)


def test_parallel_failures_are_counted_in_call_order() -> None:
    """The success in the middle separates the failures, however late it comes."""
    world, _ = turn(*(call("peek", n, {"n": 2 if n == 3 else 1}) for n in range(1, 6)))
    for number in (5, 4, 2, 1):
        world.apply(failing(number))
    world.apply(fine(3))
    assert isinstance(world.proceed(), CallModel)
    world, _ = turn(call("peek", 1), call("peek", 2), call("peek", 3))
    for number in (3, 1, 2):
        world.apply(failing(number))
    assert isinstance(world.proceed(), Park)


# --- progress ----------------------------------------------------------------------------------


def test_the_progress_row_is_closed_as_the_call_ends() -> None:
    world, _ = turn(call("book", 1), call("append", 2))
    world.apply(ProgressReported("id1", "Half.", {"at": 1}))
    world.proceed(fine(1))
    assert world.types()[-4:] == [
        "activity.updated",
        "activity.updated",
        "tool.completed",
        "tool.started",
    ]
    assert world.last("activity.updated") == {
        "id": "id1:progress",
        "step": 1,
        "kind": "progress",
        "message": "Half.",
        "status": "completed",
        "public": {"at": 1},
    }
    world.apply(ProgressReported("id2", "Half."))
    world.proceed(ToolBroke("id2", "timeout"))
    assert world.last("activity.updated")["status"] == "failed"
    assert world.types()[-3:] == ["activity.updated", "tool.failed", "model.started"]


def test_the_public_message_of_a_failing_result_is_its_own_or_the_catalogs() -> None:
    world, _ = turn(call("append", 1), call("append", 2))
    result = ToolResult(data={"ok": False}, message="No seat left.", public={"seats": 0})
    world.proceed(ToolFinished("id1", result))
    failed = world.last("tool.failed")
    assert (failed["code"], failed["message"]) == ("tool_rejected", "No seat left.")
    assert failed["public"] == {"seats": 0}
    world.proceed(failing(2))
    assert world.last("tool.failed")["message"] == "The operation was not carried out."
    assert json.loads(world.contents()[0])["data"] == {"ok": False}


def test_a_run_that_failed_is_over() -> None:
    world, _ = turn(*(call("nothing", n) for n in (1, 2, 3)))
    assert world.stored.status is RunStatus.FAILED
    assert isinstance(world.proceed(), Park)
    assert world.types()[-1] == "run.failed"
