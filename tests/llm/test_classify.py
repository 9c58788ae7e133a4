"""Status, headers and error codes decide between reading, repeating and giving up."""

import json
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from rungent.llm import ModelFailure
from rungent.llm.classify import body_kind, classify_status

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def classified(status: int, body: Any = None, **headers: str) -> ModelFailure:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return classify_status(status, httpx.Headers(named), content, NOW)


@pytest.mark.parametrize(
    ("status", "reason", "terminal"),
    [
        (300, "model_rejected", True),
        (301, "model_rejected", True),
        (304, "model_rejected", True),
        (400, "model_rejected", True),
        (401, "model_rejected", True),
        (404, "model_rejected", True),
        (408, "timeout", False),
        (409, "model_rejected", True),
        (425, "model_rejected", True),
        (429, "rate_limit", False),
        (451, "model_rejected", True),
        (500, "server_error", False),
        (501, "server_error", False),
        (503, "server_error", False),
        (520, "server_error", False),
        (529, "server_error", False),
        (599, "server_error", False),
    ],
)
def test_status_decides(status: int, reason: str, terminal: bool) -> None:
    failure = classified(status, {"error": {"message": "m"}})
    assert (failure.reason, failure.terminal) == (reason, terminal)


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"code": "insufficient_quota"}},
        {"error": {"type": "insufficient_quota"}},
        [{"error": {"code": "insufficient_quota"}}],
        {"code": "insufficient_quota"},
    ],
)
def test_used_up_quota_is_terminal(error: Any) -> None:
    failure = classified(429, error, retry_after="1")
    assert (failure.reason, failure.terminal, failure.retry_after) == ("model_rejected", True, None)


def test_a_server_that_says_do_not_retry_is_believed_for_429_only() -> None:
    assert classified(429, x_should_retry="false").terminal
    assert not classified(429, x_should_retry="true").terminal
    assert not classified(503, x_should_retry="false").terminal


def test_a_failed_tool_use_is_worth_another_attempt() -> None:
    failed = {"error": {"code": "tool_use_failed"}}
    assert classified(400, failed).reason == "invalid_tool_arguments"
    assert not classified(400, failed).terminal
    assert classified(422, failed).terminal


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff", b"[" * 100_000, b"[]", b"[1]", b"7"])
def test_unreadable_bodies_leave_the_status_to_decide(body: bytes) -> None:
    assert classified(429, body).reason == "rate_limit"
    assert classified(400, body).reason == "model_rejected"


def test_the_failure_repeats_nothing_of_the_answer() -> None:
    failure = classified(400, {"error": {"message": "private detail"}})
    assert str(failure) == "model_rejected"
    assert failure.args == ("model_rejected",)


@pytest.mark.parametrize(
    ("content_type", "kind"),
    [
        ("", "events"),
        ("text/event-stream", "events"),
        ("Text/Event-Stream; charset=utf-8", "events"),
        ("application/json", "json"),
        ("application/json;charset=UTF-8", "json"),
        ("application/problem+json", "json"),
        ("text/html", None),
        ("text/plain", None),
        ("application/x-ndjson", None),
        ("application/octet-stream", None),
    ],
)
def test_content_type_decides_how_the_body_is_read(content_type: str, kind: str | None) -> None:
    assert body_kind(content_type) == kind
