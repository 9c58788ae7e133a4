"""The fold of a run's events into what a terminal shows."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import reduce
from typing import Any

from rungent import Event
from rungent.demo.progress import Progress, Row, advance, visible


def event(kind: str, /, **data: Any) -> Event:
    return Event(
        id="evt_1",
        seq=1,
        type=kind,
        session_id="ses_1",
        run_id="run_1",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        data=data,
    )


def folded(*events: Event) -> Progress:
    return reduce(advance, events, Progress())


def test_a_tool_call_is_one_row_from_start_to_end() -> None:
    call = {"call_id": "c", "name": "move_place", "title": "Move Place", "effect": "write"}
    started = folded(event("tool.started", **call))
    assert started.rows == (Row("c", "Move Place"),)
    assert advance(started, event("tool.completed", **call, message="Moved.")).rows == (
        Row("c", "Move Place", "completed", "Moved."),
    )
    assert advance(started, event("tool.failed", **call, code="x", message="No.")).rows == (
        Row("c", "Move Place", "failed", "No."),
    )


def test_text_grows_is_reset_and_ends_as_completed() -> None:
    progress = folded(
        event("model.started", step=1),
        event("message.delta", delta="Wrong"),
        event("message.reset"),
        event("model.retrying", step=1, retry=1, max_retries=3, delay_seconds=0, reason="timeout"),
        event("message.delta", delta="Mo"),
        event("message.delta", delta="ved."),
    )
    assert progress.text == "Moved."
    assert progress.rows == (Row("model:1", "Model step 1", "running", "again, 1 of 3 (timeout)"),)
    assert advance(progress, event("message.completed", content="Moved.")).text == "Moved."


def test_a_new_model_step_clears_the_text_of_the_last() -> None:
    progress = folded(event("message.delta", delta="Looking it up"), event("model.started", step=2))
    assert progress.text == ""


def test_an_end_settles_open_rows() -> None:
    rows = (
        event(
            "activity.updated",
            id="a",
            step=0,
            kind="progress",
            message="Reading",
            status="running",
        ),
        event("model.started", step=1),
    )
    failed = folded(
        *rows, event("run.failed", status="failed", code="c", error="No.", retryable=True)
    )
    assert (failed.status, failed.error) == ("failed", "No.")
    assert {row.status for row in failed.rows} == {"failed"}
    completed = folded(*rows, event("run.completed", status="completed", usage=None))
    assert completed.status == "completed"
    assert {row.status for row in completed.rows} == {"completed"}


def test_a_question_is_kept() -> None:
    progress = folded(event("interaction.requested", id="int_1", prompt="Which one?"))
    assert progress.status == "waiting_input"
    assert progress.question == {"id": "int_1", "prompt": "Which one?"}
    resolved = advance(progress, event("interaction.resolved", interaction_id="int_1"))
    assert (resolved.status, resolved.question) == ("running", None)


def test_what_was_settled_before_a_question_is_not_shown_again() -> None:
    call = {"name": "x", "title": "X", "effect": "write"}
    progress = folded(
        event("tool.started", call_id="a", **call),
        event("tool.completed", call_id="a", **call),
        event("tool.started", call_id="b", **call),
    )
    assert progress.after_pause().rows == (Row("b", "X"),)


def test_background_work_is_one_row_that_says_how_far_it_is() -> None:
    task = {"task_id": "t", "call_id": "c"}
    progress = folded(
        event("external_task.started", **task, message="Optimising"),
        event("external_task.progress", **task, message="Half done"),
    )
    assert progress.rows == (Row("task:t", "In the background", message="Half done"),)
    for end, status in (("completed", "completed"), ("failed", "failed"), ("cancelled", "failed")):
        (row,) = advance(progress, event(f"external_task.{end}", **task)).rows
        assert row.status == status


def test_unknown_events_change_nothing() -> None:
    assert folded(event("something.new", status="x")) == Progress()


def test_a_text_cannot_drive_the_terminal() -> None:
    assert visible("a\x1b[2Jb\x07\r\n\tc\x9b1m") == "a[2Jb\n\tc1m"
    assert folded(event("message.delta", delta="\x1b[31mred")).text == "[31mred"
