"""Results say what happened, and envelopes say it to the model."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import BaseModel

from rungent.interactions import InteractionRequest, ToolContinuation
from rungent.tools import (
    DeferredRequest,
    ToolResult,
    answer_envelope,
    coerce_result,
    duplicate_envelope,
    error_envelope,
    failed_result_envelope,
    progress_envelope,
    success_envelope,
)

QUESTION = InteractionRequest("text", "Why?", continuation=ToolContinuation("go_on"))
TASK = DeferredRequest("task", "Printing")


class Outcome(BaseModel):
    ok: bool


@pytest.mark.parametrize(
    ("data", "succeeded"),
    [
        (None, True),
        ({}, True),
        ({"ok": True}, True),
        ({"ok": False}, False),
        (MappingProxyType({"ok": False}), False),
        ({"ok": 0}, True),
        ({"ok": None}, True),
        ({"ok": "False"}, True),
        (False, True),
        ([{"ok": False}], True),
        (Outcome(ok=False), True),
    ],
)
def test_only_ok_identical_to_false_is_a_failure(data: object, succeeded: bool) -> None:
    assert ToolResult(data).succeeded is succeeded


@pytest.mark.parametrize("message", ["", "  \n", None])
def test_a_blank_message_counts_as_absent(message: str | None) -> None:
    assert ToolResult(message=message).message is None


def test_a_message_is_storable() -> None:
    assert ToolResult(message="a\x00").message == "a�"


def test_a_question_and_a_task_together_are_refused() -> None:
    with pytest.raises(ValueError, match="not both"):
        ToolResult(interaction=QUESTION, deferred=TASK)


@pytest.mark.parametrize(
    "fields", [{"message": 5}, {"interaction": {"kind": "text"}}, {"deferred": "task"}]
)
def test_a_field_of_the_wrong_type_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        ToolResult(**fields)


@pytest.mark.parametrize(
    ("task_id", "message"),
    [
        ("", "m"),
        (" ", "m"),
        ("x" * 201, "m"),
        (5, "m"),
        ("x", ""),
        ("x", " "),
        ("x", "m" * 281),
        ("x", None),
    ],
)
def test_a_task_needs_an_id_and_a_message(task_id: Any, message: Any) -> None:
    with pytest.raises(ValueError, match="must be a text"):
        DeferredRequest(task_id, message)


def test_a_task_keeps_clean_texts_and_json() -> None:
    task = DeferredRequest("x" * 200, "  m  ", public={"at": {1}, "rate": math.inf})
    assert (task.message, task.public) == ("m", {"at": [1], "rate": None})


def test_any_value_becomes_a_result() -> None:
    assert coerce_result({"a": 1}) == ToolResult(data={"a": 1})
    assert coerce_result(None) == ToolResult()
    result = ToolResult(interaction=QUESTION)
    assert coerce_result(result) is result


@pytest.mark.parametrize("extra", [{"interaction": QUESTION}, {"deferred": TASK}])
def test_a_failing_result_neither_asks_nor_defers(extra: dict[str, Any]) -> None:
    result = coerce_result(ToolResult({"ok": False}, "No.", **extra))
    assert result == ToolResult({"ok": False}, "No.")


@pytest.mark.parametrize(
    ("envelope", "expected"),
    [
        (success_envelope(ToolResult()), {"tool_status": "success"}),
        (
            success_envelope(ToolResult({"a": math.nan}, "Done.", public={"p": 1})),
            {"tool_status": "success", "data": {"a": None}, "message": "Done."},
        ),
        (success_envelope(ToolResult(0)), {"tool_status": "success", "data": 0}),
        (
            failed_result_envelope(ToolResult({"ok": False}), "Default."),
            {
                "tool_status": "error",
                "code": "tool_rejected",
                "message": "Default.",
                "retryable": True,
                "data": {"ok": False},
            },
        ),
        (
            failed_result_envelope(
                ToolResult({"ok": False}, "Full."), "Default.", code="external_task_failed"
            ),
            {
                "tool_status": "error",
                "code": "external_task_failed",
                "message": "Full.",
                "retryable": True,
                "data": {"ok": False},
            },
        ),
        (
            error_envelope("timeout", "Slow.", True),
            {"tool_status": "error", "code": "timeout", "message": "Slow.", "retryable": True},
        ),
        (
            error_envelope("invalid_arguments", "Bad.", True, [{"path": "a", "message": "m"}]),
            {
                "tool_status": "error",
                "code": "invalid_arguments",
                "message": "Bad.",
                "retryable": True,
                "details": [{"path": "a", "message": "m"}],
            },
        ),
        (
            duplicate_envelope(None, "Again."),
            {"tool_status": "success", "deduplicated": True, "message": "Again."},
        ),
        (
            duplicate_envelope([1], "Again."),
            {"tool_status": "success", "deduplicated": True, "data": [1], "message": "Again."},
        ),
        (progress_envelope(), {"tool_status": "success", "data": {"reported": True}}),
        (
            answer_envelope({"selected": ["a"]}),
            {"tool_status": "success", "data": {"user_response": {"selected": ["a"]}}},
        ),
    ],
)
def test_an_envelope_has_exactly_these_keys(envelope: object, expected: object) -> None:
    assert envelope == expected
