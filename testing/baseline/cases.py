"""What a baseline is made of: cases, the environment of each, and what became of them.

Source: docs/baselines.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import JsonValue

from rungent.events import Event

__all__ = [
    "AssertState",
    "BaselineCase",
    "BaselineContext",
    "BaselineEnvironment",
    "BaselineResult",
    "Match",
    "Measures",
    "SetupCase",
]

Match = Literal["exact", "contains"]


@dataclass(frozen=True, slots=True)
class BaselineCase:
    """One conversation and what is expected of it.

    `input` and each of `followups` are texts of the user, one run each. `responses` answer what
    is asked, in order; a bare string answers a choice with that option. `exact` compares whole
    sequences; with `contains` the expected ones must be among the actual ones in this order, so
    an empty sequence allows anything. `assert_state` gets a `BaselineContext`, sync or async, and
    raises AssertionError when the world is not as it should be.
    """

    name: str
    input: str
    followups: Sequence[str] = ()
    expected_tools: Sequence[str] = ()
    tool_match: Match = "exact"
    expected_interactions: Sequence[str] = ()
    interaction_match: Match = "exact"
    responses: Sequence[JsonValue] = ()
    expected_status: str = "completed"
    assert_state: AssertState | None = None

    def __post_init__(self) -> None:
        for match in (self.tool_match, self.interaction_match):
            if match not in ("exact", "contains"):
                raise ValueError(f"a match is 'exact' or 'contains', not {match!r}")


@dataclass(frozen=True, slots=True)
class BaselineEnvironment:
    """What one case works on: the resource of its session, and the deps of its runs."""

    resource: Mapping[str, Any] = field(default_factory=dict[str, Any])
    deps: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class BaselineContext:
    """What `assert_state` gets; `events` are those of all runs, in order."""

    case: BaselineCase
    session_id: str
    resource: Mapping[str, Any]
    deps: Mapping[str, Any]
    events: Sequence[Event]


AssertState = Callable[[BaselineContext], Awaitable[None] | None]
SetupCase = Callable[[BaselineCase], BaselineEnvironment | Awaitable[BaselineEnvironment]]


@dataclass(frozen=True, slots=True)
class Measures:
    """What is counted of a case besides its verdict.

    `state_correct` is None for a case without `assert_state`; `tokens` is None when the model
    reports no usage. `seconds` is trio's time.
    """

    unexpected_tools: int = 0
    unnecessary_interactions: int = 0
    state_correct: bool | None = None
    tokens: int | None = None
    seconds: float = 0


@dataclass(frozen=True, slots=True)
class BaselineResult:
    """What became of a case; `error` says why it failed, None when it passed."""

    name: str
    passed: bool
    tools: tuple[str, ...] = ()
    interactions: tuple[str, ...] = ()
    final_text: str | None = None
    error: str | None = None
    measures: Measures = Measures()

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        return {
            "name": self.name,
            "passed": self.passed,
            "tools": list(self.tools),
            "interactions": list(self.interactions),
            "final_text": self.final_text,
            "error": self.error,
        }
