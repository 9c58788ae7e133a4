"""The values of the port are frozen, complete in their defaults and checked where it matters."""

import dataclasses
import math
from typing import Any

import pytest

from rungent import llm
from rungent.llm import (
    Echo,
    Heartbeat,
    ModelCompleted,
    ModelFailure,
    ModelRequest,
    RetryPolicy,
    TextDelta,
    ToolCall,
)


def test_defaults_describe_an_empty_reply() -> None:
    assert ModelCompleted() == ModelCompleted("", (), None, "stop", None, None)
    assert ToolCall("t") == ToolCall("t", {}, None)
    assert Echo() == Echo({}, ())
    assert ModelRequest([]) == ModelRequest([], (), None)
    assert RetryPolicy() == RetryPolicy(3, 0.5, 8, 0.25)


@pytest.mark.parametrize(
    "value",
    [TextDelta("a"), Heartbeat(), ToolCall("t"), ModelCompleted(), Echo(), ModelRequest([])],
)
def test_values_are_frozen_and_small(value: Any) -> None:
    assert not hasattr(value, "__dict__")
    for field in dataclasses.fields(value):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field.name, None)


def test_a_failure_says_its_reason_and_nothing_else() -> None:
    failure = ModelFailure("rate_limit", retry_after=2.0)
    assert str(failure) == "rate_limit"
    assert (failure.terminal, failure.retry_after, failure.tool_name) == (False, 2.0, None)


@pytest.mark.parametrize(
    "options",
    [
        {"max_retries": -1},
        {"max_retries": 1.5},
        {"backoff_seconds": -0.1},
        {"backoff_seconds": math.nan},
        {"max_delay_seconds": math.inf},
        {"jitter": 1.1},
        {"jitter": -0.1},
    ],
)
def test_a_retry_policy_out_of_bounds_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        RetryPolicy(**options)


def test_no_retries_and_no_waits_are_allowed() -> None:
    assert RetryPolicy(0, 0, 0, 0).max_retries == 0


def test_the_package_exports_what_it_lists() -> None:
    assert llm.__all__ == sorted(llm.__all__)
    assert all(hasattr(llm, name) for name in llm.__all__)
