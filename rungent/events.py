"""The public event log (ACS): envelope, payload of every type, and the published JSON Schema.

Clients ignore types and keys they do not know. No payload has a place for tool arguments,
private tool data, exception text, instructions, context or reasoning. A key that is declared
`NotRequired` is absent when there is nothing to say; every other key is always present.
Source: docs/events.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, NotRequired

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter, with_config
from typing_extensions import TypedDict

from rungent.frozen import Frozen
from rungent.text import dump_json, dump_text

__all__ = [
    "PAYLOADS",
    "TERMINAL_TYPES",
    "Draft",
    "Event",
    "event_adapter",
    "event_schema",
    "format_time",
]

Effect = Literal["read", "write", "destructive", "external"]
RowStatus = Literal["running", "completed", "failed"]
TERMINAL_TYPES = frozenset({"run.completed", "run.failed", "run.cancelled"})


class Usage(TypedDict):
    """Tokens that the provider counted."""

    input_tokens: int
    output_tokens: int
    total_tokens: int


class Nothing(TypedDict):
    """A payload without fields."""


class RunStarted(TypedDict):
    """The run was claimed for the first time; always seq 1."""

    status: Literal["running"]


class RunWaitingInput(TypedDict):
    """The run pauses for an answer; `interaction.requested` follows directly."""

    status: Literal["waiting_input"]


class RunWaitingExternal(TypedDict):
    """The run pauses for host work; directly after `external_task.started`."""

    status: Literal["waiting_external"]


class RunCompleted(TypedDict):
    """The run ended with a final message. `usage` sums the run's steps, null when none had one."""

    status: Literal["completed"]
    usage: Usage | None


class RunFailed(TypedDict):
    """The run ended without an answer. `error` is public text; `retryable` allows a retry."""

    status: Literal["failed"]
    code: str
    error: str
    retryable: bool


class RunCancelled(TypedDict):
    """The run was cancelled by somebody."""

    status: Literal["cancelled"]


class ModelStarted(TypedDict):
    """A model step begins."""

    step: int


class MessageDelta(TypedDict):
    """More assistant text; never empty."""

    delta: Annotated[str, Field(min_length=1)]


class ModelRetrying(TypedDict):
    """Attempt failed; the same step is tried again after `delay_seconds`."""

    step: int
    retry: int
    max_retries: int
    delay_seconds: float
    reason: str
    tool_name: NotRequired[str]


class ModelCompleted(TypedDict):
    """The step's reply is stored: calls to handle (`tools`) or the final text (`final`)."""

    step: int
    outcome: Literal["tools", "final"]
    finish_reason: Literal["stop", "tool_calls", "length"]
    provider_request_id: str | None
    usage: Usage | None


class MessageCompleted(TypedDict):
    """The final text; equals the deltas since the last reset."""

    content: str


class ActivityUpdated(TypedDict):
    """A progress row changed; rows are told apart by `id`."""

    id: str
    step: int
    kind: Literal["progress"]
    message: Annotated[str, Field(min_length=1, max_length=280)]
    status: RowStatus
    public: NotRequired[JsonValue]


class ToolStarted(TypedDict):
    """A tool begins to execute."""

    call_id: str
    name: str
    title: str
    effect: Effect


class ToolCompleted(ToolStarted):
    """A call settled successfully, or was skipped as a repetition (`deduplicated`)."""

    message: NotRequired[str]
    public: NotRequired[JsonValue]
    deduplicated: NotRequired[Literal[True]]


class ToolFailed(ToolStarted):
    """A call settled with an error; `message` is public text."""

    code: str
    message: str
    public: NotRequired[JsonValue]


class OptionShown(TypedDict):
    """One alternative of a choice."""

    id: str
    label: str
    description: str | None
    recommended: bool


class QuestionShown(TypedDict):
    """One question of a form."""

    id: str
    prompt: str
    kind: Literal["text", "choice"]
    options: list[OptionShown]
    multiple: bool
    allow_custom: bool
    required: bool


class ToolShown(TypedDict):
    """The tool that an approval is about."""

    name: str
    title: str
    effect: Effect


class InteractionRequested(TypedDict):
    """A question or approval waits for the user."""

    id: str
    kind: Literal["text", "choice", "form", "approval", "data"]
    prompt: str
    tool_call_id: str
    options: list[OptionShown]
    questions: list[QuestionShown]
    multiple: bool
    allow_custom: bool
    allow_skip: bool
    skip_label: str | None
    tool: NotRequired[ToolShown]
    schema: NotRequired[dict[str, JsonValue]]
    expires_at: NotRequired[str]


class InteractionResolved(TypedDict):
    """A question or approval is over; the answer itself is never in an event."""

    interaction_id: str
    kind: Literal["text", "choice", "form", "approval", "data"]
    outcome: Literal["answered", "approved", "rejected", "skipped", "cancelled", "expired"]


class ExternalTaskShown(TypedDict):
    """Host work started or progressed."""

    task_id: str
    call_id: str
    message: str
    public: NotRequired[JsonValue]


class ExternalTaskEnded(TypedDict):
    """Host work ended."""

    task_id: str
    call_id: str
    message: NotRequired[str]
    public: NotRequired[JsonValue]


class ExternalTaskCancelled(TypedDict):
    """Host work was cancelled with its run."""

    task_id: str
    call_id: str
    message: str


PAYLOADS: Mapping[str, type[Any]] = {
    "run.started": RunStarted,
    "run.waiting_input": RunWaitingInput,
    "run.waiting_external": RunWaitingExternal,
    "run.completed": RunCompleted,
    "run.failed": RunFailed,
    "run.cancelled": RunCancelled,
    "model.started": ModelStarted,
    "message.delta": MessageDelta,
    "message.reset": Nothing,
    "model.retrying": ModelRetrying,
    "model.completed": ModelCompleted,
    "message.completed": MessageCompleted,
    "activity.updated": ActivityUpdated,
    "tool.started": ToolStarted,
    "tool.completed": ToolCompleted,
    "tool.failed": ToolFailed,
    "interaction.requested": InteractionRequested,
    "interaction.resolved": InteractionResolved,
    "external_task.started": ExternalTaskShown,
    "external_task.progress": ExternalTaskShown,
    "external_task.completed": ExternalTaskEnded,
    "external_task.failed": ExternalTaskEnded,
    "external_task.cancelled": ExternalTaskCancelled,
}
"""Every event type with the type of its `data`."""


@cache
def event_adapter(kind: str) -> TypeAdapter[Any]:
    """The validator of a type's `data`, for tests and tools that check logs. KeyError if unknown.

    Unlike clients it refuses unknown keys: a payload has no place for anything private.
    """
    return TypeAdapter(with_config(ConfigDict(extra="forbid"))(PAYLOADS[kind]))


class Draft(NamedTuple):
    """An event before it has an id and a number."""

    type: str
    data: Mapping[str, Any]


class Event(Frozen):
    """One stored event: `{"v":1,"id","seq","type","session_id","run_id","created_at","data"}`."""

    v: Literal[1] = 1
    id: str
    seq: int
    type: str
    session_id: str
    run_id: str
    created_at: datetime
    data: dict[str, Any]

    def to_json(self) -> str:
        """The envelope as one line of JSON, times with six fraction digits and `Z`."""
        # Written out: streams send this for every event and every reader.
        return (
            f'{{"v":1,"id":{dump_text(self.id)},"seq":{self.seq},"type":{dump_text(self.type)}'
            f',"session_id":{dump_text(self.session_id)},"run_id":{dump_text(self.run_id)}'
            f',"created_at":"{format_time(self.created_at)}","data":{dump_json(self.data)}}}'
        )


def format_time(moment: datetime) -> str:
    """RFC 3339 in UTC with six fraction digits and suffix `Z`. `moment` must be in UTC."""
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def event_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of every event, as a union told apart by `type`."""
    variants: list[dict[str, Any]] = []
    definitions: dict[str, Any] = {}
    for name in PAYLOADS:
        data = event_adapter(name).json_schema(ref_template="#/$defs/{model}")
        definitions |= data.pop("$defs", {})
        variants.append(_variant(name, data))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "RungentEvent",
        "oneOf": variants,
        "$defs": definitions,
    }


def _variant(name: str, data: Mapping[str, Any]) -> dict[str, Any]:
    text = {"type": "string"}
    properties: dict[str, Any] = {
        "v": {"const": 1},
        "id": text,
        "seq": {"type": "integer", "minimum": 1},
        "type": {"const": name},
        "session_id": text,
        "run_id": text,
        "created_at": {"type": "string", "format": "date-time"},
        "data": data,
    }
    return {"type": "object", "properties": properties, "required": list(properties)}
