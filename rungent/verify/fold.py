"""What a log adds up to: the run row, the ledger and the other rows that should go with it.

Source: docs/operating.md#verify.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rungent.verify.projection import RunView, project

__all__ = ["CallSeen", "Fold", "InteractionSeen", "TaskSeen"]


@dataclass(slots=True)
class CallSeen:
    """A call in the log: how often it was begun, and its result."""

    name: str
    effect: str
    started: int = 0
    result: str | None = None
    code: str | None = None
    deferred: bool = False


@dataclass(slots=True)
class InteractionSeen:
    """A question or approval in the log."""

    kind: str
    call_id: str
    outcome: str | None = None


@dataclass(slots=True)
class TaskSeen:
    """Host work in the log."""

    call_id: str
    state: str = "waiting"


@dataclass(slots=True)
class Fold:
    """The sum of the events of one run taken so far; each must have passed the grammar.

    `view` is the run as a frontend shows it; the rest is what only the rows tell.
    """

    run_id: str
    view: RunView = field(default_factory=RunView)
    calls: dict[str, CallSeen] = field(default_factory=dict[str, CallSeen])
    interactions: dict[str, InteractionSeen] = field(default_factory=dict[str, InteractionSeen])
    tasks: dict[str, TaskSeen] = field(default_factory=dict[str, TaskSeen])

    @property
    def events(self) -> int:
        """How many events there were."""
        return self.view.last_seq or 0

    def take(self, seq: int, kind: str, data: Mapping[str, Any]) -> None:
        """Add the next event."""
        event = {"run_id": self.run_id, "seq": seq, "type": kind, "data": data}
        self.view = project(self.view, event)
        family, _, what = kind.partition(".")
        match family:
            case "tool":
                self._tool(what, data)
            case "interaction":
                self._interaction(what, data)
            case "external_task":
                self._task(what, data)
            case _:
                pass

    def _tool(self, what: str, data: Mapping[str, Any]) -> None:
        call = self.calls.setdefault(data["call_id"], CallSeen(data["name"], data["effect"]))
        if what == "started":
            call.started += 1
        else:
            call.result, call.code = what, data.get("code")

    def _interaction(self, what: str, data: Mapping[str, Any]) -> None:
        if what == "requested":
            seen = InteractionSeen(data["kind"], data["tool_call_id"])
            self.interactions[data["id"]] = seen
        else:
            seen = self.interactions[data["interaction_id"]]
            seen.outcome = data["outcome"]
        if seen.kind == "data":
            # The call that asked stands still until the answer is there.
            self.calls[seen.call_id].deferred = seen.outcome is None

    def _task(self, what: str, data: Mapping[str, Any]) -> None:
        if what == "started":
            self.tasks[data["task_id"]] = TaskSeen(data["call_id"])
            self.calls[data["call_id"]].deferred = True
        elif what != "progress":
            self.tasks[data["task_id"]].state = what
