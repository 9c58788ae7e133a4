"""The shapes of JSON bodies: models of what clients send, and what they get back.

The same types check requests, type the answers and make the OpenAPI description; their docstrings
are part of it. Source: docs/http.md#resources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
)
from pydantic_core import PydanticCustomError
from quart import Response
from typing_extensions import TypedDict

from rungent import records
from rungent.errors import InvalidRequest
from rungent.events import format_time
from rungent.records import RunStatus
from rungent.text import dump_json

__all__ = [
    "ActionResult",
    "Answer",
    "CancelledRun",
    "FieldError",
    "Message",
    "NewRun",
    "NewSession",
    "Receipt",
    "RetryReceipt",
    "Run",
    "Session",
    "SessionWithMessages",
    "TitleChange",
    "action_json",
    "cancelled_json",
    "message_json",
    "receipt_json",
    "reply",
    "retry_json",
    "run_json",
    "session_json",
    "session_with_messages_json",
    "validation_errors",
]

TITLE_LIMIT = 200
RESOURCE_LIMIT_BYTES = 16 * 1024


def _of_bounded_size(resource: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if len(dump_json(resource).encode()) > RESOURCE_LIMIT_BYTES:
        raise PydanticCustomError("too_large", "resource must be at most 16 KiB")
    return resource


# Lengths count after trimming, so a text must have something that every reader's trimming leaves.
NotBlank = Field(json_schema_extra={"pattern": r"[^\s\x1c-\x1f\x85\ufeff]"})
Title = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=TITLE_LIMIT), NotBlank
]
Resource = Annotated[dict[str, JsonValue], AfterValidator(_of_bounded_size)]


class Body(BaseModel):
    """A JSON object from a client. Keys that are not declared are ignored."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class NewSession(Body):
    """A session to create. Without `agent` it gets the default agent."""

    agent: str | None = None
    title: Title | None = None
    resource: Resource = Field(
        default_factory=dict[str, JsonValue],
        description="Yours, given back with the session; at most 16 KiB of JSON.",
    )


class TitleChange(Body):
    """The new title of a session; null or nothing clears it."""

    title: Title | None = None


class NewRun(Body):
    """A user message that starts a run."""

    input: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), NotBlank]
    if_active: Literal["reject", "cancel_waiting"] = "reject"


class Answer(Body):
    """The answer to a pending interaction; `value` must be there, but may be null."""

    interaction_id: str
    value: JsonValue


Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class Session(TypedDict):
    """A conversation with one agent."""

    id: str
    agent_name: str
    subject_id: str
    tenant_id: str | None
    title: str | None
    resource: dict[str, JsonValue]
    created_at: Time
    updated_at: Time


class Message(TypedDict):
    """A public message: the user's text or a final answer."""

    id: str
    run_id: str
    role: Literal["user", "assistant"]
    content: str
    created_at: Time


class SessionWithMessages(Session):
    """A session and its public messages, oldest first."""

    messages: list[Message]


class Run(TypedDict):
    """The work on one user message."""

    id: str
    session_id: str
    status: RunStatus
    event_seq: int
    model_steps: int
    retried_from: str | None
    created_at: Time
    updated_at: Time


class Receipt(TypedDict):
    """A run that was created, or goes on."""

    run_id: str
    status: RunStatus


class RetryReceipt(Receipt):
    """The new run for the message of a failed one."""

    retried_from: str | None


class CancelledRun(TypedDict):
    """A run after a cancel; `id` equals `run_id`."""

    id: str
    run_id: str
    status: RunStatus


class ActionResult(TypedDict):
    """What came of a click; `answered_by` is the subject who answered, where somebody did."""

    status: records.ActionStatus
    run_id: str | None
    interaction_id: str | None
    answered_by: str | None
    reason: str | None
    path: list[str | int]


class FieldError(TypedDict):
    """One thing that is wrong with a request, without any value of it."""

    loc: Annotated[
        list[str | int],
        Field(min_length=1, description="Starts with `body`, `query` or `header`."),
    ]
    msg: str
    type: str


def validation_errors(error: ValidationError) -> InvalidRequest:
    """What is wrong with a body, without any value of it."""
    details = error.errors(include_url=False, include_context=False, include_input=False)
    return InvalidRequest(
        "The request body is not valid.",
        errors=[
            {"loc": ["body", *detail["loc"]], "msg": detail["msg"], "type": detail["type"]}
            for detail in details
        ],
    )


def reply(
    value: object, status: int = 200, *, headers: Mapping[str, str] | None = None
) -> Response:
    """A JSON response. `value` must be made of JSON types."""
    text = dump_json(cast("JsonValue", value))
    response = Response(text, status=status, content_type="application/json")
    response.headers.extend(dict(headers or {}))
    return response


def session_json(session: records.Session) -> Session:
    """A session as clients see it."""
    return {
        "id": session.id,
        "agent_name": session.agent_name,
        "subject_id": session.subject_id,
        "tenant_id": session.tenant_id,
        "title": session.title,
        "resource": session.resource,
        "created_at": format_time(session.created_at),
        "updated_at": format_time(session.updated_at),
    }


def session_with_messages_json(
    session: records.Session, messages: Iterable[records.Message]
) -> SessionWithMessages:
    """A session with those of its messages that are public."""
    public = [message_json(message) for message in messages if message.public]
    return {**session_json(session), "messages": public}


def message_json(message: records.Message) -> Message:
    """A public message as clients see it."""
    return {
        "id": message.id,
        "run_id": message.run_id,
        "role": cast("Literal['user', 'assistant']", message.role),
        "content": message.content,
        "created_at": format_time(message.created_at),
    }


def run_json(run: records.Run) -> Run:
    """A run as clients see it; its state, input and lease never leave the server."""
    return {
        "id": run.id,
        "session_id": run.session_id,
        "status": run.status,
        "event_seq": run.event_seq,
        "model_steps": run.model_steps,
        "retried_from": run.retried_from,
        "created_at": format_time(run.created_at),
        "updated_at": format_time(run.updated_at),
    }


def receipt_json(receipt: records.RunReceipt) -> Receipt:
    """What creations and answers are answered with."""
    return {"run_id": receipt.run_id, "status": receipt.status}


def retry_json(receipt: records.RunReceipt) -> RetryReceipt:
    """What a retry is answered with."""
    return {**receipt_json(receipt), "retried_from": receipt.retried_from}


def cancelled_json(run: records.Run) -> CancelledRun:
    """What a cancel is answered with."""
    return {"id": run.id, "run_id": run.id, "status": run.status}


def action_json(outcome: records.ActionOutcome) -> ActionResult:
    """What a click is answered with."""
    return {
        "status": outcome.status,
        "run_id": outcome.run_id,
        "interaction_id": outcome.interaction_id,
        "answered_by": None if outcome.answered_by is None else outcome.answered_by.subject_id,
        "reason": outcome.reason,
        "path": list(outcome.path),
    }
