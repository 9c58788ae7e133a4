"""Rows to records and back; rows never leave the package.

Source: docs/persistence.md#tables.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel
from sqlalchemy import Row

from rungent.events import Event
from rungent.identity import Identity
from rungent.records import (
    ActionToken,
    ExternalTask,
    Interaction,
    Lease,
    Message,
    Run,
    RunState,
    RunStatus,
    Session,
    ToolCall,
    ToolClaim,
)

__all__ = [
    "appended_values",
    "changed_values",
    "claim_values",
    "event_values",
    "interaction_values",
    "message_values",
    "run_values",
    "session_values",
    "task_values",
    "to_claim",
    "to_interaction",
    "to_message",
    "to_run",
    "to_session",
    "to_task",
    "to_token",
    "token_values",
]

Values = dict[str, Any]


def _fields(record: BaseModel) -> Values:
    """The fields as they are: every one of these records has only storable values."""
    return dict(record)


def session_values(session: Session) -> Values:
    """The row of a session."""
    return _fields(session)


def to_session(row: Row[Any]) -> Session:
    """The session of a row."""
    return Session(**row._mapping)  # pyright: ignore[reportPrivateUsage]


def run_values(run: Run) -> Values:
    """The whole row of a run."""
    return {
        "id": run.id,
        "session_id": run.session_id,
        "agent_name": run.agent_name,
        "input": run.input,
        "input_message_id": run.input_message_id,
        "idempotency_key": run.idempotency_key,
        "request_digest": run.request_digest,
        "retried_from": run.retried_from,
        "created_at": run.created_at,
        **changed_values(run),
    }


def changed_values(run: Run) -> Values:
    """The columns of a run that a commit may change."""
    lease = run.lease
    return {
        "status": run.status.value,
        "event_seq": run.event_seq,
        "model_steps": run.model_steps,
        # What has its default is left out: a hot row stays small, and an older worker can read
        # the state of a newer one as long as the new fields are not in use.
        "state": run.state.model_dump(mode="json", exclude_defaults=True),
        "failure_code": run.failure_code,
        "failure_retryable": run.failure_retryable,
        "lease_owner": lease.owner if lease else None,
        "lease_expires_at": lease.expires_at if lease else None,
        "fencing_token": run.fencing_token,
        "version": run.version,
        "updated_at": run.updated_at,
    }


def appended_values(run: Run) -> Values:
    """The columns of a run that change where only its log grows."""
    return {"event_seq": run.event_seq, "version": run.version, "updated_at": run.updated_at}


def to_run(row: Row[Any]) -> Run:
    """The run of a row."""
    values: Values = dict(row._mapping)  # pyright: ignore[reportPrivateUsage]
    owner: str | None = values.pop("lease_owner")
    expires_at: datetime | None = values.pop("lease_expires_at")
    lease = (
        None if owner is None or expires_at is None else Lease(owner=owner, expires_at=expires_at)
    )
    status = RunStatus(values.pop("status"))
    state = RunState.model_validate(values.pop("state"))
    return Run(**values, status=status, state=state, lease=lease)


def message_values(message: Message, position: int) -> Values:
    """The row of a message at its place in the session."""
    payload: Values = {}
    if message.tool_calls:
        payload["tool_calls"] = [
            {"name": call.name, "arguments": call.arguments, "id": call.id}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        payload["tool_call_id"] = message.tool_call_id
    if message.name is not None:
        payload["name"] = message.name
    return {
        "id": message.id,
        "session_id": message.session_id,
        "run_id": message.run_id,
        "position": position,
        "role": message.role,
        "content": message.content,
        "payload": payload,
        "public": message.public,
        "created_at": message.created_at,
    }


def to_message(row: Row[Any]) -> Message:
    """The message of a row."""
    values: Values = dict(row._mapping)  # pyright: ignore[reportPrivateUsage]
    payload: Values = values.pop("payload")
    calls = tuple(ToolCall(**call) for call in payload.pop("tool_calls", ()))
    return Message(**values, **payload, tool_calls=calls)


def event_values(event: Event) -> Values:
    """The row of an event; its session is the run's."""
    return {
        "run_id": event.run_id,
        "seq": event.seq,
        "id": event.id,
        "type": event.type,
        "data": event.data,
        "created_at": event.created_at,
    }


def interaction_values(interaction: Interaction) -> Values:
    """The row of an interaction."""
    people = {"responders": interaction.responders, "answered_by": interaction.answered_by}
    return _fields(interaction) | {name: _people(listed) for name, listed in people.items()}


def _people(listed: tuple[Identity, ...] | None) -> list[Values] | None:
    if listed is None:
        return None
    return [{"subject_id": one.subject_id, "tenant_id": one.tenant_id} for one in listed]


def to_interaction(row: Row[Any]) -> Interaction:
    """The interaction of a row."""
    values: Values = dict(row._mapping)  # pyright: ignore[reportPrivateUsage]
    responders, answered = values.pop("responders"), values.pop("answered_by") or ()
    rounds: int | None = values.pop("max_answers")
    return Interaction(
        **values,
        max_answers=rounds or 1,
        responders=None if responders is None else tuple(Identity(**one) for one in responders),
        answered_by=tuple(Identity(**one) for one in answered),
    )


def token_values(token: ActionToken) -> Values:
    """The row of a button."""
    return _fields(token)


def to_token(row: Row[Any]) -> ActionToken:
    """The button of a row."""
    return ActionToken(**row._mapping)  # pyright: ignore[reportPrivateUsage]


def claim_values(claim: ToolClaim) -> Values:
    """The ledger row of a call."""
    return _fields(claim)


def to_claim(row: Row[Any]) -> ToolClaim:
    """The ledger entry of a row."""
    return ToolClaim(**row._mapping)  # pyright: ignore[reportPrivateUsage]


def task_values(task: ExternalTask) -> Values:
    """The row of an external task."""
    return _fields(task)


def to_task(row: Row[Any]) -> ExternalTask:
    """The external task of a row."""
    return ExternalTask(**row._mapping)  # pyright: ignore[reportPrivateUsage]
