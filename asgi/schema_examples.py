"""Examples of bodies and errors, for the OpenAPI description.

Source: docs/http.md#description.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rungent.asgi import schemas
from rungent.asgi.problems import MethodNotAllowed, PayloadTooLarge, UnsupportedMediaType
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
from rungent.events import Event
from rungent.records import RunStatus

__all__ = ["ANSWERS", "ERRORS", "REQUESTS"]

SESSION_ID, RUN_ID, EARLIER = "ses_7h2k", "run_4c9d", "run_1a8b"
MADE, CHANGED = "2026-08-03T09:30:00.000000Z", "2026-08-03T09:30:02.250000Z"

SESSION: schemas.Session = {
    "id": SESSION_ID,
    "agent_name": "planner",
    "subject_id": "ada",
    "tenant_id": None,
    "title": "Rome in May",
    "resource": {"trip": 7},
    "created_at": MADE,
    "updated_at": CHANGED,
}
MESSAGES: list[schemas.Message] = [
    {"id": "msg_1", "run_id": RUN_ID, "role": "user", "content": "Hi", "created_at": MADE},
    {
        "id": "msg_2",
        "run_id": RUN_ID,
        "role": "assistant",
        "content": "Hello!",
        "created_at": CHANGED,
    },
]
WITH_MESSAGES: schemas.SessionWithMessages = {**SESSION, "messages": MESSAGES}
RUN: schemas.Run = {
    "id": RUN_ID,
    "session_id": SESSION_ID,
    "status": RunStatus.COMPLETED,
    "event_seq": 5,
    "model_steps": 1,
    "retried_from": None,
    "created_at": MADE,
    "updated_at": CHANGED,
}
RECEIPT: schemas.Receipt = {"run_id": RUN_ID, "status": RunStatus.QUEUED}
ANSWERED: schemas.Receipt = {"run_id": RUN_ID, "status": RunStatus.RUNNING}
RETRIED: schemas.RetryReceipt = {**RECEIPT, "retried_from": EARLIER}
CANCELLED: schemas.CancelledRun = {
    "id": RUN_ID,
    "run_id": RUN_ID,
    "status": RunStatus.CANCELLED,
}
CLICKED: schemas.ActionResult = {
    "status": "accepted",
    "run_id": RUN_ID,
    "interaction_id": "int_9f",
    "answered_by": "ada",
    "reason": None,
    "path": [],
}
EVENT = Event(
    id="evt_2b",
    seq=2,
    type="model.started",
    session_id=SESSION_ID,
    run_id=RUN_ID,
    created_at=datetime(2026, 8, 3, 9, 30, tzinfo=UTC),
    data={"step": 1},
)
FRAME = {"id": str(EVENT.seq), "data": EVENT.to_json()}

ANSWERS: Mapping[str, Any] = {
    "listSessions": [SESSION],
    "createSession": SESSION,
    "getSession": WITH_MESSAGES,
    "renameSession": SESSION,
    "listRuns": [RUN],
    "createRun": RECEIPT,
    "listEvents": [json.loads(EVENT.to_json())],
    "streamEvents": FRAME,
    "answerRun": ANSWERED,
    "retryRun": RETRIED,
    "cancelRun": CANCELLED,
    "clickAction": CLICKED,
}
"""A success of every operation."""

REQUESTS: Mapping[str, Any] = {
    "createSession": {"agent": "planner", "title": "Rome in May", "resource": {"trip": 7}},
    "renameSession": {"title": "Rome in June"},
    "createRun": {"input": "Where shall I stay?", "if_active": "reject"},
    "answerRun": {"interaction_id": "int_9f", "value": {"selected": ["center"]}},
}
"""A body for every operation that takes one."""

ERRORS: tuple[RungentError, ...] = (
    Unauthenticated(),
    NotAllowed(),
    NotFound(),
    MethodNotAllowed(["GET"]),
    ActiveRunConflict(RUN_ID, RunStatus.WAITING_INPUT),
    RunNotWaiting(RunStatus.RUNNING),
    InteractionMismatch("int_9f"),
    InteractionAlreadyResolved("answered"),
    IdempotencyKeyReused(RUN_ID),
    RunNotRetryable(RunStatus.COMPLETED),
    PayloadTooLarge(),
    UnsupportedMediaType(),
    InvalidRequest.at("query", "limit", message="limit must be 1 to 500"),
    InvalidResponse("missing_answer", "A required question has no answer.", path=["answers", "to"]),
    RuntimeBusy("Too many runs are waiting."),
    ShuttingDown(),
)
"""One of every error that clients may see."""
