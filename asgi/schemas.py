"""The shapes of JSON bodies: models of what clients send, and what they get back.

Source: docs/http.md#resources.
"""

from __future__ import annotations

from collections.abc import Mapping
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

from rungent.errors import InvalidRequest
from rungent.events import format_time
from rungent.records import Message, Run, RunReceipt, Session
from rungent.text import dump_json

__all__ = [
    "Answer",
    "NewRun",
    "NewSession",
    "TitleChange",
    "message_json",
    "receipt_json",
    "reply",
    "run_json",
    "session_json",
    "validation_errors",
]

TITLE_LIMIT = 200
RESOURCE_LIMIT_BYTES = 16 * 1024


def _of_bounded_size(resource: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if len(dump_json(resource).encode()) > RESOURCE_LIMIT_BYTES:
        raise PydanticCustomError("too_large", "resource must be at most 16 KiB")
    return resource


Title = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=TITLE_LIMIT)
]
Resource = Annotated[dict[str, JsonValue], AfterValidator(_of_bounded_size)]


class Body(BaseModel):
    """A JSON object from a client. Keys that are not declared are ignored."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class NewSession(Body):
    """Body of `POST /sessions`. Without `agent` the session gets the default agent."""

    agent: str | None = None
    title: Title | None = None
    resource: Resource = Field(default_factory=dict[str, JsonValue])


class TitleChange(Body):
    """Body of `PATCH /sessions/{id}`; null or nothing clears the title."""

    title: Title | None = None


class NewRun(Body):
    """Body of `POST /sessions/{id}/runs`. The longest input is an option of the runtime."""

    input: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    if_active: Literal["reject", "cancel_waiting"] = "reject"


class Answer(Body):
    """Body of `POST /runs/{id}/responses`; `value` must be there, but may be null."""

    interaction_id: str
    value: JsonValue


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


def session_json(session: Session) -> dict[str, JsonValue]:
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


def message_json(message: Message) -> dict[str, JsonValue]:
    """A public message: the user's text or a final answer."""
    return {
        "id": message.id,
        "run_id": message.run_id,
        "role": message.role,
        "content": message.content,
        "created_at": format_time(message.created_at),
    }


def run_json(run: Run) -> dict[str, JsonValue]:
    """A run as clients see it; its state, input and lease never leave the server."""
    return {
        "id": run.id,
        "session_id": run.session_id,
        "status": run.status.value,
        "event_seq": run.event_seq,
        "model_steps": run.model_steps,
        "retried_from": run.retried_from,
        "created_at": format_time(run.created_at),
        "updated_at": format_time(run.updated_at),
    }


def receipt_json(receipt: RunReceipt) -> dict[str, JsonValue]:
    """What the creation of a run is answered with."""
    return {"run_id": receipt.run_id, "status": receipt.status.value}
