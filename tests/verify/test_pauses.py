"""Runs that wait for somebody: their interactions and tasks are held against the log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from rungent import Message, Run, ToolCall
from rungent.records import ExternalTask, Interaction, RunStatus, ToolClaim
from rungent.verify import StoredRun, first_violation

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NAMED = {"call_id": "call_1", "name": "send", "title": "Send", "effect": "external"}
TASK = {"task_id": "job", "call_id": "call_1", "message": "Working"}
ASKED: dict[str, Any] = {
    "id": "int_1",
    "kind": "approval",
    "prompt": "Send it?",
    "tool_call_id": "call_1",
    "options": [],
    "questions": [],
    "multiple": False,
    "allow_custom": False,
    "allow_skip": False,
    "skip_label": None,
    "tool": {"name": "send", "title": "Send", "effect": "external"},
}
COMPLETED: dict[str, Any] = {"step": 1, "provider_request_id": None, "usage": None}

LOG: list[tuple[str, dict[str, Any]]] = [
    ("run.started", {"status": "running"}),
    ("model.started", {"step": 1}),
    ("model.completed", {**COMPLETED, "outcome": "tools", "finish_reason": "tool_calls"}),
    ("run.waiting_input", {"status": "waiting_input"}),
    ("interaction.requested", ASKED),
    (
        "interaction.resolved",
        {"interaction_id": "int_1", "kind": "approval", "outcome": "approved"},
    ),
    ("tool.started", NAMED),
    ("external_task.started", TASK),
    ("run.waiting_external", {"status": "waiting_external"}),
    ("external_task.progress", TASK),
    ("external_task.completed", {"task_id": "job", "call_id": "call_1"}),
    ("tool.completed", NAMED),
    ("model.started", {"step": 2}),
    ("message.delta", {"delta": "Sent."}),
    ("model.completed", {**COMPLETED, "step": 2, "outcome": "final", "finish_reason": "stop"}),
    ("message.completed", {"content": "Sent."}),
    ("run.completed", {"status": "completed", "usage": None}),
]
CUTS = {5: RunStatus.WAITING_INPUT, 9: RunStatus.WAITING_EXTERNAL, 17: RunStatus.COMPLETED}


def a_message(position: int, role: Any, content: str = "", **more: Any) -> Message:
    return Message(
        id=f"msg_{position}",
        session_id="ses_1",
        run_id="run_1",
        role=role,
        content=content,
        position=position,
        created_at=NOW,
        **more,
    )


@dataclass
class Stored(StoredRun):
    """The run after so many events, with all its rows."""

    length: int = 17
    log: list[tuple[str, dict[str, Any]]] = field(default_factory=lambda: list(LOG))
    status: RunStatus | None = None
    claim: dict[str, Any] = field(default_factory=dict[str, Any])
    interaction: dict[str, Any] | None = field(default_factory=dict[str, Any])
    task: dict[str, Any] | None = field(default_factory=dict[str, Any])

    def run(self) -> Run:
        return Run(
            id="run_1",
            session_id="ses_1",
            agent_name="helper",
            status=self.status or CUTS[self.length],
            input="hi",
            input_message_id="msg_1",
            event_seq=self.length,
            model_steps=2 if self.length > 12 else 1,
            fencing_token=3,
            created_at=NOW,
            updated_at=NOW,
        )

    def events(self) -> list[tuple[int, str, Any]]:
        return [(n, kind, data) for n, (kind, data) in enumerate(self.log[: self.length], 1)]

    def messages(self) -> list[Message]:
        asked = [
            a_message(1, "user", "hi"),
            a_message(2, "assistant", tool_calls=(ToolCall("send", {}, "call_1"),)),
        ]
        if self.length < 17:
            return asked
        said = a_message(3, "tool", "{}", tool_call_id="call_1", name="send")
        return [*asked, said, a_message(4, "assistant", "Sent.", public=True)]

    def claims(self) -> list[ToolClaim]:
        values: dict[str, Any] = {
            "run_id": "run_1",
            "call_id": "call_1",
            "tool_name": "send",
            "effect": "external",
            "arguments": {},
            "arguments_digest": "d",
            "state": "succeeded" if self.length > 11 else "deferred",
            "idempotency_key": "run_1:call_1",
            "fencing_token": 2,
            "settled_at": NOW,
            **self.claim,
        }
        return [ToolClaim.model_validate(values)] if self.length > 6 else []

    def interactions(self) -> list[Interaction]:
        if self.interaction is None:
            return []
        over = self.length > 5
        values: dict[str, Any] = {
            "id": "int_1",
            "run_id": "run_1",
            "tool_call_id": "call_1",
            "kind": "approval",
            "request": {},
            "status": "resolved" if over else "pending",
            "outcome": "approved" if over else None,
            "created_at": NOW,
            **self.interaction,
        }
        return [Interaction.model_validate(values)]

    def tasks(self) -> list[ExternalTask]:
        if self.length < 8 or self.task is None:
            return []
        values: dict[str, Any] = {
            "run_id": "run_1",
            "task_id": "job",
            "call_id": "call_1",
            "state": "completed" if self.length > 10 else "waiting",
            "message": "Working",
            "created_at": NOW,
            **self.task,
        }
        return [ExternalTask.model_validate(values)]


@pytest.mark.parametrize("length", CUTS)
def test_a_run_that_waits_or_has_waited_is_healthy(length: int) -> None:
    assert first_violation(Stored(length)) is None


def without(number: int) -> list[tuple[str, dict[str, Any]]]:
    return [*LOG[: number - 1], *LOG[number:], LOG[-1]]


def again(number: int) -> list[tuple[str, dict[str, Any]]]:
    return [*LOG[:number], *LOG[number - 1 :]]


DAMAGED: list[tuple[Callable[[], Stored], str]] = [
    (
        lambda: Stored(5, status=RunStatus.RUNNING),
        "row: status is running, but waiting_input in the log",
    ),
    (
        lambda: Stored(9, status=RunStatus.RUNNING),
        "row: status is running, but waiting_external in the log",
    ),
    (lambda: Stored(interaction=None), "int_1: interaction.requested without a row"),
    (
        lambda: Stored(interaction={"outcome": "rejected"}),
        "int_1: rejected in the row, approved in the log",
    ),
    (
        lambda: Stored(interaction={"status": "pending", "outcome": None}),
        "int_1: pending in the row, approved in the log",
    ),
    (
        lambda: Stored(5, interaction={"status": "resolved", "outcome": "approved"}),
        "int_1: approved in the row, None in the log",
    ),
    (
        lambda: Stored(interaction={"tool_call_id": "call_2"}),
        "int_1: another kind or call in the row than in the log",
    ),
    (lambda: Stored(task=None), "task job: external_task.started without a row"),
    (
        lambda: Stored(task={"state": "failed"}),
        "task job: failed in the row, completed in the log",
    ),
    (
        lambda: Stored(9, task={"state": "completed"}),
        "task job: completed in the row, waiting in the log",
    ),
    (
        lambda: Stored(task={"call_id": "call_2"}),
        "task job: another call in the row than in the log",
    ),
    (
        lambda: Stored(9, claim={"state": "started", "settled_at": None}),
        "call call_1: started in the ledger, deferred by the log",
    ),
    (
        lambda: Stored(log=again(6)),
        (
            "seq 7: interaction.resolved: expected tool.started or tool.failed or run.failed or "
            "run.cancelled"
        ),
    ),
    (
        lambda: Stored(log=without(6)),
        "seq 6: tool.started: expected interaction.resolved",
    ),
    (
        lambda: Stored(log=[*LOG[:11], LOG[10], *LOG[11:]]),
        "seq 12: external_task.completed: expected tool.completed",
    ),
    (
        lambda: Stored(log=[*LOG[:12], LOG[6], *LOG[12:]]),
        "seq 13: tool.started: the call is settled already",
    ),
    (
        lambda: Stored(log=[*LOG[:12], *LOG[3:6], *LOG[12:]]),
        "seq 14: interaction.requested: the interaction was requested already",
    ),
]


@pytest.mark.parametrize(("make", "expected"), DAMAGED)
def test_rows_and_log_of_a_pause_must_agree(make: Callable[[], Stored], expected: str) -> None:
    assert first_violation(make()) == expected


def test_an_approval_frees_one_execution_only() -> None:
    """A second start that no second claim of the run explains is a double effect."""
    log = [*LOG[:7], LOG[6], *LOG[7:]]
    again = Stored(18, log=log, status=RunStatus.COMPLETED, claim={"attempts": 2})
    assert first_violation(again) is None, "the run was claimed twice: a worker may have been lost"
    again.claim["fencing_token"] = 1
    found = first_violation(again)
    assert found == "call call_1: was executed more often than the run was claimed"
