"""The options of a runtime, checked once."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypedDict

from rungent.catalog import Catalog
from rungent.events import Event
from rungent.ids import Now, system_now
from rungent.records import Run, Session
from rungent.tools.asking import LONGEST_WAIT
from rungent.tools.results import DeferredRequest

__all__ = [
    "DependencyProvider",
    "EventListener",
    "ExternalTaskCanceller",
    "Options",
    "RuntimeOptions",
]

DependencyProvider = Callable[[Session, Run], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]
EventListener = Callable[[Event], Awaitable[None] | None]
ExternalTaskCanceller = Callable[[Session, Run, DeferredRequest], Awaitable[None] | None]

_OPTIONAL = frozenset(
    {
        "model_step_timeout_seconds",
        "model_step_total_timeout_seconds",
        "model_idle_timeout_seconds",
        "max_concurrent_runs",
        "question_expires_seconds",
    }
)
_WHOLE = frozenset(
    {
        "max_model_steps",
        "max_identical_tool_failures",
        "max_recoveries",
        "max_concurrent_runs",
        "max_queued_runs",
        "max_input_chars",
        "context_budget_tokens",
    }
)
MAX_STEPS = 128


class RuntimeOptions(TypedDict, total=False):
    """The keyword arguments of `Runtime` that `Options` checks; see there."""

    max_model_steps: int
    model_wait_progress_after_seconds: float
    model_wait_progress_interval_seconds: float
    model_step_timeout_seconds: float | None
    model_step_total_timeout_seconds: float | None
    model_idle_timeout_seconds: float | None
    max_identical_tool_failures: int
    max_recoveries: int
    max_concurrent_runs: int | None
    max_queued_runs: int
    max_input_chars: int
    context_budget_tokens: int
    lease_seconds: float
    lease_renew_seconds: float
    recovery_interval_seconds: float
    follow_poll_seconds: float
    shutdown_grace_seconds: float
    question_expires_seconds: float | None
    external_task_canceller: ExternalTaskCanceller | None
    dependency_provider: DependencyProvider | None
    event_listener: EventListener | None
    error_catalog: Mapping[str, str]
    now: Now


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Bounds, deadlines (seconds) and callbacks of one runtime.

    Every number is finite and above 0. Raises ValueError for a value that breaks its rule.
    Source: docs/runtime.md#options.
    """

    max_model_steps: int = 16
    model_wait_progress_after_seconds: float = 3
    model_wait_progress_interval_seconds: float = 5
    model_step_timeout_seconds: float | None = None
    model_step_total_timeout_seconds: float | None = None
    model_idle_timeout_seconds: float | None = None
    max_identical_tool_failures: int = 3
    max_recoveries: int = 5
    max_concurrent_runs: int | None = None
    max_queued_runs: int = 1000
    max_input_chars: int = 65_536
    context_budget_tokens: int = 80_000
    lease_seconds: float = 30
    lease_renew_seconds: float = 10
    recovery_interval_seconds: float = 5
    follow_poll_seconds: float = 1
    shutdown_grace_seconds: float = 4
    question_expires_seconds: float | None = None
    external_task_canceller: ExternalTaskCanceller | None = None
    dependency_provider: DependencyProvider | None = None
    event_listener: EventListener | None = None
    error_catalog: Mapping[str, str] = field(default_factory=dict[str, str])
    now: Now = system_now

    def __post_init__(self) -> None:
        for option in fields(self):
            if option.name.endswith(("_seconds", "_tokens", "_chars")) or option.name in _WHOLE:
                _check_number(option.name, getattr(self, option.name))
        if (self.question_expires_seconds or 0) > LONGEST_WAIT.total_seconds():
            raise ValueError("question_expires_seconds must be at most ten years")
        if self.max_model_steps > MAX_STEPS:
            raise ValueError(f"max_model_steps must be at most {MAX_STEPS}")
        if self.lease_renew_seconds >= self.lease_seconds:
            raise ValueError("lease_renew_seconds must be shorter than lease_seconds")
        for name in ("external_task_canceller", "dependency_provider", "event_listener"):
            callback = getattr(self, name)
            if callback is not None and not callable(callback):
                raise ValueError(f"{name} must be callable")
        if self.now().tzinfo is None:
            raise ValueError("now must return an aware datetime")

    def catalog(self) -> Catalog:
        """The texts with the host's replacements. Raises ValueError for an unknown key."""
        return Catalog.of(self.error_catalog)


def _check_number(name: str, value: object) -> None:
    if value is None and name in _OPTIONAL:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{name} must be a number")  # noqa: TRY004 - documented
    if name in _WHOLE and not isinstance(value, int):
        raise ValueError(f"{name} must be a whole number")
    if not math.isfinite(value) or value <= 0:
        raise ValueError(f"{name} must be finite and above 0")
