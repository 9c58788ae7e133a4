"""Shall an attempt be repeated, and when? Pure decisions about replies and failures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from rungent.events import Usage
from rungent.llm.port import ModelCompleted, RetryPolicy
from rungent.records import ToolCall

__all__ = ["Failure", "Reply", "StepFailed", "WaitThenRetry", "decide_retry", "judge"]

MAX_PROVIDER_DELAY_SECONDS = 60.0

_EXHAUSTED = {
    "timeout": "model_step_timeout",
    "empty_completion": "empty_completion",
    "invalid_tool_arguments": "invalid_tool_arguments",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """A usable reply. `calls` still have the provider's ids, or none."""

    text: str
    calls: tuple[ToolCall, ...]
    finish_reason: Literal["stop", "tool_calls", "length"]
    provider_request_id: str | None
    usage: Usage | None


@dataclass(frozen=True, slots=True)
class Failure:
    """An attempt without a usable reply. Delays are in seconds."""

    reason: str
    terminal: bool = False
    retry_after: float | None = None
    tool_name: str | None = None


@dataclass(frozen=True, slots=True)
class WaitThenRetry:
    """Try again after this delay in seconds."""

    delay_seconds: float


@dataclass(frozen=True, slots=True)
class StepFailed:
    """The step is over; the run fails with this code."""

    code: str


def judge(completion: ModelCompleted, text: str) -> Reply | Failure:
    """What a finished attempt amounts to; `text` is what was shown of it."""
    finish = completion.finish_reason
    calls = tuple(completion.tool_calls)
    if calls and finish == "length":
        return Failure("invalid_tool_arguments", tool_name=calls[-1].name or None)
    if not calls and not text.strip():
        return Failure("empty_completion")
    return Reply(
        text=text if text.strip() else "",
        calls=calls,
        finish_reason="tool_calls" if calls else "length" if finish == "length" else "stop",
        provider_request_id=completion.provider_request_id,
        usage=completion.usage,
    )


def decide_retry(
    failure: Failure,
    retries: int,
    policy: RetryPolicy,
    *,
    remaining_seconds: float | None,
    chance: float,
) -> WaitThenRetry | StepFailed:
    """Repeat or give up after `retries` repetitions.

    `remaining_seconds` is what is left of the step's total deadline, None without one.
    `chance` in [0, 1) chooses the jitter: how much of the permitted share is taken off.
    """
    if failure.terminal:
        return StepFailed(_terminal_code(failure.reason))
    if retries >= policy.max_retries:
        return StepFailed(_EXHAUSTED.get(failure.reason, "model_unavailable"))
    stated = failure.retry_after
    if stated is not None and math.isfinite(stated) and stated >= 0:
        return _provider_delay(stated, remaining_seconds)
    wait = min(policy.max_delay_seconds, policy.backoff_seconds * 2**retries)
    return WaitThenRetry(wait * (1 - policy.jitter * chance))


def _provider_delay(stated: float, remaining: float | None) -> WaitThenRetry | StepFailed:
    if remaining is None:
        return WaitThenRetry(min(stated, MAX_PROVIDER_DELAY_SECONDS))
    if stated > remaining:
        return StepFailed("model_unavailable")
    return WaitThenRetry(stated)


def _terminal_code(reason: str) -> str:
    return reason if reason in {"content_filtered", "internal_error"} else "model_rejected"
