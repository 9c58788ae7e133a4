"""What each route takes and gives, for the OpenAPI description.

Source: docs/http.md#description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rungent.asgi import schemas
from rungent.asgi.problems import PayloadTooLarge, UnsupportedMediaType
from rungent.errors import (
    ActiveRunConflict,
    IdempotencyKeyReused,
    InteractionAlreadyResolved,
    InteractionMismatch,
    InvalidRequest,
    InvalidResponse,
    NotAllowed,
    NotFound,
    RungentError,
    RunNotRetryable,
    RunNotWaiting,
    RuntimeBusy,
    ShuttingDown,
    Unauthenticated,
)

__all__ = ["COMMON", "DESCRIPTION", "EVENTS", "OPERATIONS", "STREAM", "Operation"]

EVENTS, STREAM = "Events", "EventFrame"
"""Stand for a list and for a stream of events, in place of a type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path.

    `answer` is the type of the JSON body, None for a free object. `parameters` and `headers` are
    names of components. `leads` maps operations that may follow to their parameter and to where
    its value stands in the answer. `errors` come on top of those that every route has.
    """

    id: str
    tag: str
    summary: str
    text: str = ""
    body: type[schemas.Body] | None = None
    body_required: bool = True
    parameters: tuple[str, ...] = ()
    status: int = 200
    answer: Any = None
    headers: tuple[str, ...] = ()
    errors: tuple[type[RungentError], ...] = ()
    leads: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])


COMMON = (Unauthenticated, ShuttingDown)
"""Errors of every route that asks who you are; 500 is always possible besides."""

BODY = (PayloadTooLarge, UnsupportedMediaType, InvalidRequest)
CAPACITY = (RuntimeBusy,)


def _to(parameter: str, pointer: str, *operations: str) -> dict[str, tuple[str, str]]:
    return dict.fromkeys(operations, (parameter, f"$response.body#{pointer}"))


OF_SESSION = ("getSession", "renameSession", "listRuns", "createRun")
OF_RUN = ("listEvents", "streamEvents", "answerRun", "cancelRun", "retryRun")

OPERATIONS: Mapping[tuple[str, str], Operation] = {
    ("sessions", "GET"): Operation(
        id="listSessions",
        tag="sessions",
        summary="The caller's sessions, newest `updated_at` first",
        parameters=("Limit", "Cursor"),
        answer=list[schemas.Session],
        headers=("Link",),
        errors=(InvalidRequest,),
        leads=_to("session_id", "/0/id", *OF_SESSION),
    ),
    ("sessions", "POST"): Operation(
        id="createSession",
        tag="sessions",
        summary="Create a session",
        text="Without a body all defaults apply. An agent that is not known is 404.",
        body=schemas.NewSession,
        body_required=False,
        answer=schemas.Session,
        errors=(NotFound, *BODY),
        leads=_to("session_id", "/id", *OF_SESSION),
    ),
    ("session", "GET"): Operation(
        id="getSession",
        tag="sessions",
        summary="A session and its messages",
        parameters=("SessionId",),
        answer=schemas.SessionWithMessages,
        errors=(NotFound,),
    ),
    ("session", "PATCH"): Operation(
        id="renameSession",
        tag="sessions",
        summary="Change or clear a session's title",
        body=schemas.TitleChange,
        parameters=("SessionId",),
        answer=schemas.Session,
        errors=(NotFound, *BODY),
        leads=_to("session_id", "/id", "getSession"),
    ),
    ("session_runs", "GET"): Operation(
        id="listRuns",
        tag="runs",
        summary="The runs of a session, oldest first",
        parameters=("SessionId", "Limit", "Cursor"),
        answer=list[schemas.Run],
        headers=("Link",),
        errors=(NotFound, InvalidRequest),
        leads=_to("run_id", "/0/id", *OF_RUN),
    ),
    ("session_runs", "POST"): Operation(
        id="createRun",
        tag="runs",
        summary="Start a run for a user message",
        text="The run goes on when the caller goes away.",
        body=schemas.NewRun,
        parameters=("SessionId", "IdempotencyKey"),
        status=202,
        answer=schemas.Receipt,
        headers=("Idempotency-Replayed",),
        errors=(NotFound, ActiveRunConflict, IdempotencyKeyReused, *BODY, *CAPACITY),
        leads=_to("run_id", "/run_id", *OF_RUN),
    ),
    ("run_events", "GET"): Operation(
        id="listEvents",
        tag="events",
        summary="Stored events of a run",
        parameters=("RunId", "AfterSeq", "Limit"),
        answer=EVENTS,
        headers=("Link",),
        errors=(NotFound, InvalidRequest),
    ),
    ("run_event_stream", "GET"): Operation(
        id="streamEvents",
        tag="events",
        summary="Replay and follow the events of a run",
        text="Server-sent events. The stream ends when the run ends or waits for input.",
        parameters=("RunId", "AfterSeq", "Until", "LastEventId"),
        answer=STREAM,
        headers=("Cache-Control", "X-Accel-Buffering"),
        errors=(NotFound, InvalidRequest),
    ),
    ("run_responses", "POST"): Operation(
        id="answerRun",
        tag="runs",
        summary="Answer what a run asked",
        text="`value` depends on the interaction. An equal answer may be repeated.",
        body=schemas.Answer,
        parameters=("RunId",),
        status=202,
        answer=schemas.Receipt,
        errors=(
            NotAllowed,
            NotFound,
            RunNotWaiting,
            InteractionMismatch,
            InteractionAlreadyResolved,
            *BODY,
            InvalidResponse,
            *CAPACITY,
        ),
        leads=_to("run_id", "/run_id", *OF_RUN),
    ),
    ("run_retry", "POST"): Operation(
        id="retryRun",
        tag="runs",
        summary="Start a new run for the message of a failed one",
        text="A body is ignored.",
        parameters=("RunId", "IdempotencyKey"),
        status=202,
        answer=schemas.RetryReceipt,
        headers=("Idempotency-Replayed",),
        errors=(
            NotFound,
            IdempotencyKeyReused,
            RunNotRetryable,
            InvalidRequest,
            *CAPACITY,
        ),
        leads=_to("run_id", "/run_id", *OF_RUN),
    ),
    ("run_cancel", "POST"): Operation(
        id="cancelRun",
        tag="runs",
        summary="Cancel a run",
        text="A body is ignored. A run that has ended already stays as it is.",
        parameters=("RunId",),
        answer=schemas.CancelledRun,
        errors=(NotFound,),
        leads=_to("run_id", "/run_id", *OF_RUN),
    ),
    ("action", "POST"): Operation(
        id="clickAction",
        tag="actions",
        summary="Answer with a button of a posted message",
        text="A body is ignored. Whatever came of it is a `status` of the answer.",
        parameters=("Token",),
        answer=schemas.ActionResult,
    ),
}
"""Endpoint name and method: the operation."""

DESCRIPTION = Operation(
    id="getDescription",
    tag="description",
    summary="This description",
    text="Needs no identity.",
)
