"""Sessions, runs and transitions to feed a store with, each valid by itself.

Source: docs/testing.md#stores.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from rungent.events import Event
from rungent.ids import new_id
from rungent.records import (
    ExternalTask,
    Interaction,
    Lease,
    Message,
    Run,
    RunStatus,
    Session,
    ToolClaim,
)
from rungent.store.port import Commit, Creation, Store

__all__ = [
    "AGENT",
    "OTHER",
    "OWNER",
    "START",
    "at",
    "create_running",
    "creation_of",
    "ended",
    "event_of",
    "interaction_of",
    "message_of",
    "run_of",
    "session_of",
    "started_claim",
    "step",
    "task_of",
]

AGENT = "planner"
OWNER = "wrk_" + "a" * 32
OTHER = "wrk_" + "b" * 32
START = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
LEASE_SECONDS = 30


def at(seconds: float) -> datetime:
    """A moment, counted from START."""
    return START + timedelta(seconds=seconds)


def session_of(subject: str = "ada", **changes: Any) -> Session:
    """A session of an owner without tenant."""
    values: dict[str, Any] = {
        "id": new_id("ses_"),
        "agent_name": AGENT,
        "subject_id": subject,
        "resource": {"trip": "Ω", "stops": [1, 2.5, None, True]},
        "created_at": START,
        "updated_at": START,
    }
    return Session(**values | changes)


def run_of(session: Session, **changes: Any) -> Run:
    """A running run of the session, leased to OWNER under token 1."""
    values: dict[str, Any] = {
        "id": new_id("run_"),
        "session_id": session.id,
        "agent_name": session.agent_name,
        "status": RunStatus.RUNNING,
        "input": "Where to?",
        "input_message_id": new_id("msg_"),
        "lease": Lease(owner=OWNER, expires_at=at(LEASE_SECONDS)),
        "fencing_token": 1,
        "created_at": START,
        "updated_at": START,
    }
    return Run(**values | changes)


def message_of(run: Run, content: str = "Where to?", **changes: Any) -> Message:
    """A public user message."""
    values: dict[str, Any] = {
        "id": new_id("msg_"),
        "session_id": run.session_id,
        "run_id": run.id,
        "role": "user",
        "content": content,
        "public": True,
        "created_at": run.updated_at,
    }
    return Message(**values | changes)


def event_of(run: Run, seq: int, kind: str = "message.delta", **data: Any) -> Event:
    """An event with this number."""
    return Event(
        id=new_id("evt_"),
        seq=seq,
        type=kind,
        session_id=run.session_id,
        run_id=run.id,
        created_at=run.updated_at,
        data=data or {"delta": f"text {seq}"},
    )


def creation_of(session: Session, **changes: Any) -> Creation:
    """A run to create; `changes` are fields of the run. A retry brings no message."""
    run = run_of(session, **changes)
    if run.retried_from is not None:
        return Creation(Commit(run))
    return Creation(Commit(run, messages=(message_of(run, id=run.input_message_id),)))


async def create_running(store: Store, **changes: Any) -> Run:
    """A new session with one run in it, which OWNER drives."""
    session = session_of()
    await store.create_session(session)
    return (await store.create_run(creation_of(session, **changes))).run


def step(run: Run, *, events: int = 1, seconds: float = 1, **changes: Any) -> Commit:
    """The run's next transition with this many events; `changes` are fields of the run."""
    values: dict[str, Any] = {
        "version": run.version + 1,
        "event_seq": run.event_seq + events,
        "updated_at": run.updated_at + timedelta(seconds=seconds),
    }
    after = run.model_copy(update=values | changes)
    numbers = range(run.event_seq + 1, run.event_seq + events + 1)
    log = tuple(event_of(after, seq) for seq in numbers)
    return Commit(after, events=log, appends=not changes)


def ended(run: Run, status: RunStatus = RunStatus.COMPLETED, **changes: Any) -> Commit:
    """The transition that ends or parks the run: the lease is gone."""
    return step(run, status=status, lease=None, **changes)


def started_claim(run: Run, call_id: str = "call00001", **changes: Any) -> ToolClaim:
    """The ledger row of a call whose execution began."""
    values: dict[str, Any] = {
        "run_id": run.id,
        "call_id": call_id,
        "tool_name": "book",
        "effect": "write",
        "arguments": {"seat": "4a", "when": {"day": 1}},
        "arguments_digest": "0" * 64,
        "state": "started",
        "idempotency_key": f"{run.id}:{call_id}",
        "fencing_token": run.fencing_token,
        "started_at": run.updated_at,
    }
    return ToolClaim(**values | changes)


def interaction_of(run: Run, **changes: Any) -> Interaction:
    """A pending question."""
    values: dict[str, Any] = {
        "id": new_id("int_"),
        "run_id": run.id,
        "tool_call_id": "call00001",
        "kind": "text",
        "request": {"prompt": "Which day?", "options": []},
        "created_at": run.updated_at,
    }
    return Interaction(**values | changes)


def task_of(run: Run, task_id: str = "job-1", **changes: Any) -> ExternalTask:
    """A task that the run waits for."""
    values: dict[str, Any] = {
        "run_id": run.id,
        "task_id": task_id,
        "call_id": "call00001",
        "message": "Printing",
        "public": {"page": 1},
        "created_at": run.updated_at,
    }
    return ExternalTask(**values | changes)
