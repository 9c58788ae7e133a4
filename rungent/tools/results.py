"""What a tool hands back, and the JSON that the model gets to read about a call.

The envelopes are the content of tool messages. Keys with nothing to say are absent.
Source: docs/tools.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic import JsonValue

from rungent.interactions import InteractionRequest
from rungent.text import storable, to_json_value
from rungent.tools.asking import AgainAsk, KeptAsk
from rungent.tools.messages import public_text

__all__ = [
    "DeferredRequest",
    "Envelope",
    "ToolResult",
    "answer_envelope",
    "coerce_result",
    "duplicate_envelope",
    "error_envelope",
    "failed_result_envelope",
    "progress_envelope",
    "success_envelope",
]

TASK_ID_LIMIT = 200

Envelope = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class DeferredRequest:
    """Parks the run until the host completes the task `task_id`.

    `task_id` has 1–200 characters and is new in its run; `message` is trimmed and has 1–280;
    `public` goes to the frontend and is kept in its JSON form.
    Raises ValueError for other texts. Source: docs/tools.md.
    """

    task_id: str
    message: str
    public: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "task_id", _task_id(self.task_id))
        object.__setattr__(self, "message", public_text(self.message))
        object.__setattr__(self, "public", to_json_value(self.public))


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The full answer of a tool; any other return value is taken as `data`.

    `data` goes to the model, `message` is progress text that a user may see (blank counts as
    absent), `public` goes to the frontend. `interaction` asks the user a question; with one of
    `ask.keep` or `ctx.again` the call goes on, so that the other fields count for nothing.
    `deferred` waits for the host; both together raise ValueError, wrong types TypeError.
    Source: docs/tools.md.
    """

    data: Any = None
    message: str | None = None
    public: Any = None
    interaction: InteractionRequest | KeptAsk | AgainAsk | None = None
    deferred: DeferredRequest | None = None

    def __post_init__(self) -> None:
        _require_type(self.message, str, "message")
        _require_type(self.interaction, (InteractionRequest, KeptAsk, AgainAsk), "interaction")
        _require_type(self.deferred, DeferredRequest, "deferred")
        if self.interaction is not None and self.deferred is not None:
            raise ValueError("a result carries an interaction or a deferred task, not both")
        blank = self.message is None or not self.message.strip()
        object.__setattr__(self, "message", None if blank else storable(self.message or ""))

    @property
    def succeeded(self) -> bool:
        """False only when `data` is a mapping whose `ok` is the object `False` itself."""
        data: object = self.data
        if not isinstance(data, Mapping):
            return True
        return cast("Mapping[object, object]", data).get("ok") is not False


def coerce_result(value: object) -> ToolResult:
    """What a tool function returned, as a `ToolResult`.

    On a failing result the question and the deferred task count for nothing and are dropped.
    """
    result = value if isinstance(value, ToolResult) else ToolResult(data=value)
    if result.succeeded or (result.interaction is None and result.deferred is None):
        return result
    return replace(result, interaction=None, deferred=None)


def success_envelope(result: ToolResult) -> Envelope:
    """The call took effect. Raises what a `__str__` inside `data` raises."""
    return _without_none(
        {"tool_status": "success", "data": to_json_value(result.data), "message": result.message}
    )


def failed_result_envelope(
    result: ToolResult, default_message: str, *, code: str = "tool_rejected"
) -> Envelope:
    """The tool itself reported a failure; `data` says more. May be tried again."""
    return {
        **error_envelope(code, result.message or default_message, retryable=True),
        "data": to_json_value(result.data),
    }


def error_envelope(
    code: str,
    message: str,
    retryable: bool,
    details: Sequence[Mapping[str, JsonValue]] | None = None,
) -> Envelope:
    """The call failed with a stable code. `details` are places in the arguments."""
    listed: JsonValue = None if details is None else [dict(detail) for detail in details]
    return _without_none(
        {
            "tool_status": "error",
            "code": code,
            "message": message,
            "retryable": retryable,
            "details": listed,
        }
    )


def duplicate_envelope(data: object, message: str) -> Envelope:
    """The call repeats one that succeeded; `data` is that of the earlier success."""
    return _without_none(
        {
            "tool_status": "success",
            "deduplicated": True,
            "data": to_json_value(data),
            "message": message,
        }
    )


def progress_envelope() -> Envelope:
    """A `report_progress` call was accepted."""
    return {"tool_status": "success", "data": {"reported": True}}


def answer_envelope(value: JsonValue) -> Envelope:
    """The user answered a `request_input` call; `value` is in normal form."""
    return {"tool_status": "success", "data": {"user_response": value}}


def _without_none(envelope: Envelope) -> Envelope:
    return {key: value for key, value in envelope.items() if value is not None}


def _require_type(
    value: object, wanted: type[object] | tuple[type[object], ...], what: str
) -> None:
    if value is not None and not isinstance(value, wanted):
        first = wanted[0] if isinstance(wanted, tuple) else wanted
        raise TypeError(f"{what} must be a {first.__name__} or None")


def _task_id(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > TASK_ID_LIMIT:
        raise ValueError(f"task_id must be a text of 1 to {TASK_ID_LIMIT} characters")
    return storable(value)
