"""Stored values: sessions, messages, runs and the rows that belong to a run, all frozen.

A run's position is data, because runs pause for days and outlive processes: its status, the
calls of the turn that are still open, and what it waits for. Source: docs/runs.md.
"""

# ruff: noqa: RUF012 - pydantic copies the defaults of its models
from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from pydantic import JsonValue

from rungent.events import Effect, Usage
from rungent.frozen import Frozen
from rungent.identity import Identity
from rungent.interactions.answers import TrustedInteractionResponse
from rungent.interactions.spec import InteractionKind

__all__ = [
    "ACTIVE",
    "ActionOutcome",
    "ActionStatus",
    "ActionToken",
    "ActivityTexts",
    "Call",
    "ExternalTask",
    "FailureStreak",
    "Interaction",
    "Lease",
    "Message",
    "Opened",
    "Progress",
    "Run",
    "RunReceipt",
    "RunState",
    "RunStatus",
    "Session",
    "Settled",
    "ToolCall",
    "ToolClaim",
]


class RunStatus(StrEnum):
    """Where a run stands. The first four are active, the others terminal."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING_INPUT = "waiting_input"
    WAITING_EXTERNAL = "waiting_external"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE = frozenset(
    {RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING_INPUT, RunStatus.WAITING_EXTERNAL}
)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as a model or a host asks for it; `id` is None where the provider sent none."""

    name: str
    arguments: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    id: str | None = None


class Record(Frozen):
    """A stored value."""


class Session(Record):
    """A conversation that one identity owns. `updated_at` moves with messages and title."""

    id: str
    agent_name: str
    subject_id: str
    tenant_id: str | None = None
    title: str | None = None
    resource: dict[str, JsonValue] = {}
    message_count: int = 0
    created_at: datetime
    updated_at: datetime


class Message(Record):
    """One entry of a session's transcript.

    `public` marks what clients may list: user messages and final answers. `position` counts
    from 1 in the session and is given by the store (0 before).
    """

    id: str
    session_id: str
    run_id: str
    role: Literal["user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    public: bool = False
    position: int = 0
    created_at: datetime


class ActivityTexts(Record):
    """The host's public working texts of a run, stored with it."""

    message: str
    waiting_message: str
    long_wait_message: str
    continuation_message: str
    public: dict[str, JsonValue] = {}


class Progress(Record):
    """The last progress report of a call whose row is still open."""

    message: str
    public: JsonValue = None


class Opened(Record):
    """An execution that was opened: what the ledger knows of it.

    `arguments` are the normalised ones and `digest` is their fingerprint; `attempts` counts
    executions, above 1 after a worker was lost. `nothing_done` says that the last one is known to
    have had no effect, so that the call may be executed again.
    """

    effect: Effect
    arguments: dict[str, JsonValue]
    digest: str
    attempts: int = 1
    started_at: datetime
    nothing_done: bool = False


class Settled(Record):
    """How a call ended: its tool message, kept until call order lets it follow.

    `counts` says what it means for the streak of identical failures under `key`.
    """

    content: str
    counts: Literal["failure", "success", "nothing"] = "nothing"
    key: str = ""


class Interaction(Record):
    """A question or approval. `frozen_call` is the call that an answer sets free.

    `state` is what the asking tool, or the announcement of an approval, keeps for itself; it is
    None where there is neither. Only `responders` may answer, the session's owner where it is
    None; `max_answers` counts rounds, and `answered_by` lists who answered. `closing` is the
    reason for which the tool is still to be told that nobody can answer any more.
    """

    id: str
    run_id: str
    tool_call_id: str
    kind: InteractionKind
    request: dict[str, JsonValue]
    frozen_call: dict[str, JsonValue] | None = None
    status: Literal["pending", "resolved"] = "pending"
    outcome: str | None = None
    response: JsonValue = None
    created_at: datetime
    resolved_at: datetime | None = None
    expires_at: datetime | None = None
    state: dict[str, JsonValue] | None = None
    responders: tuple[Identity, ...] | None = None
    max_answers: int = 1
    answered_by: tuple[Identity, ...] = ()
    closing: str | None = None


class ActionToken(Record):
    """A button: the hash of its token, and the answer that it stands for."""

    token_hash: str
    run_id: str
    interaction_id: str
    params: dict[str, JsonValue]


class Call(Record):
    """One call of the open turn, in the order of the transcript.

    `made` calls come from the runtime itself, not from the model. `frozen` holds the normalised
    arguments that were put up for approval, and `approved` says that they were approved; `answer`
    is the trusted answer under which a call was frozen. `opened` is set while and after an
    execution, `settled` once the call is over. `asked` is the answered question of a tool that
    continues the call, and `continued` says that this was begun.
    """

    id: str
    name: str
    arguments: dict[str, JsonValue]
    made: bool = False
    frozen: dict[str, JsonValue] | None = None
    approved: bool = False
    opened: Opened | None = None
    progress: Progress | None = None
    settled: Settled | None = None
    answer: TrustedInteractionResponse | None = None
    asked: Interaction | None = None
    continued: bool = False


class ExternalTask(Record):
    """Host work that a run waits for."""

    run_id: str
    task_id: str
    call_id: str
    state: Literal["waiting", "completed", "failed", "cancelled"] = "waiting"
    message: str
    public: JsonValue = None
    created_at: datetime
    settled_at: datetime | None = None


class FailureStreak(Record):
    """How often in a row the same call failed. `key` is tool name and argument fingerprint."""

    key: str
    count: int


class RunState(Record):
    """The part of a run that only the lifecycle reads: stored as one JSON value.

    `done` maps the fingerprint of each successful call that may not be repeated to its call id.
    `step_open` says that a model step was begun and not completed. `recoveries` counts takeovers
    since the last completed step or settled call. `answer` is the trusted answer of this drive.
    `interaction` and `task` are what a paused run waits for; `used_tasks` lists every task id.
    """

    initialised: bool = False
    activity: ActivityTexts | None = None
    activity_open: bool = False
    step_open: bool = False
    turn: tuple[Call, ...] = ()
    done: dict[str, str] = {}
    streak: FailureStreak | None = None
    usage: Usage | None = None
    answer: TrustedInteractionResponse | None = None
    interaction: Interaction | None = None
    task: ExternalTask | None = None
    used_tasks: tuple[str, ...] = ()
    recoveries: int = 0


class Lease(Record):
    """Who may advance a run, and until when. A queued run's lease is its reservation."""

    owner: str
    expires_at: datetime


class Run(Record):
    """One answer to one user message: status, counters, lease and state."""

    id: str
    session_id: str
    agent_name: str
    status: RunStatus
    input: str
    input_message_id: str
    idempotency_key: str | None = None
    request_digest: str | None = None
    retried_from: str | None = None
    event_seq: int = 0
    model_steps: int = 0
    state: RunState = RunState()
    failure_code: str | None = None
    failure_retryable: bool | None = None
    lease: Lease | None = None
    fencing_token: int = 0
    version: int = 1
    created_at: datetime
    updated_at: datetime

    @property
    def active(self) -> bool:
        """Whether the run can still change."""
        return self.status in ACTIVE


@dataclass(frozen=True, slots=True)
class RunReceipt:
    """What a caller gets for a run it created, answered or retried."""

    run_id: str
    status: RunStatus
    replayed: bool = False
    retried_from: str | None = None


ActionStatus = Literal[
    "accepted",
    "already_answered",
    "expired",
    "closed",
    "unknown",
    "not_allowed",
    "invalid",
    "busy",
]


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """What came of a click on a button.

    `answered_by` is who answered, where somebody did. `reason` and `path` belong to `invalid`.
    Nothing but the status is told to people who may not answer. Source: docs/interactive-tools.md.
    """

    status: ActionStatus
    run_id: str | None = None
    interaction_id: str | None = None
    answered_by: Identity | None = None
    reason: str | None = None
    path: tuple[str | int, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether this click was the answer."""
        return self.status == "accepted"

    def but(self, status: ActionStatus, **changes: Any) -> ActionOutcome:
        """The same with another status."""
        return replace(self, status=status, **changes)


class ToolClaim(Record):
    """A ledger row: one call that was opened for execution, and how it ended."""

    run_id: str
    call_id: str
    tool_name: str
    effect: Effect
    arguments: dict[str, JsonValue]
    arguments_digest: str
    state: Literal["started", "succeeded", "failed", "deferred", "in_doubt", "cancelled"]
    code: str | None = None
    idempotency_key: str
    attempts: int = 1
    fencing_token: int
    started_at: datetime | None = None
    settled_at: datetime | None = None
