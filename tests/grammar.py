"""The grammar of a run's log: checks a list of events against the order that clients rely on.

A log is read once, event by event. `check_log` raises GrammarError at the first event that may
not stand where it stands, with its number and what stood before it. Nothing here knows a store,
a runtime or a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from pydantic import ValidationError

from rungent.events import PAYLOADS, TERMINAL_TYPES, Event, event_adapter

__all__ = ["GrammarError", "check_log"]


class GrammarError(AssertionError):
    """A log that no client should ever see."""


def check_log(events: Sequence[Event], *, complete: bool = True) -> None:
    """Check the log of one run from its first event on.

    With `complete` it must end with a terminal event; without, it may stop anywhere.
    """
    reader = _Reader()
    for position, event in enumerate(events):
        try:
            _check_envelope(event, position, events[0])
            reader.read(event)
        except GrammarError as wrong:
            before = " ".join(e.type for e in events[max(0, position - 6) : position])
            raise GrammarError(
                f"event {event.seq} {event.type}: {wrong} (after: {before})"
            ) from None
    if len({event.id for event in events}) != len(events):
        raise GrammarError("an event id is there twice")
    if complete and not reader.ended:
        raise GrammarError("the log has no end")


def _require(condition: object, reason: str) -> None:
    if not condition:
        raise GrammarError(reason)


def _check_envelope(event: Event, position: int, first: Event) -> None:
    _require(event.seq == position + 1, f"expected seq {position + 1}")
    _require(event.v == 1, "unknown version")
    _require(event.run_id == first.run_id, "another run's event")
    _require(event.session_id == first.session_id, "another session's event")
    _require(event.created_at.utcoffset() == timedelta(0), "the time is not in UTC")
    _require(event.type in PAYLOADS, "unknown type")
    try:
        event_adapter(event.type).validate_python(event.data, strict=True)
    except ValidationError as invalid:
        raise GrammarError(f"payload: {invalid}") from None
    event.to_json()


@dataclass(slots=True)
class _Call:
    effect: str
    open: bool = False
    settled: bool = False
    row: str | None = None


@dataclass(slots=True)
class _Reader:
    """Where the log stands. `expected` names the types that alone may come next."""

    phase: str = "new"
    step: int = 0
    text: str = ""
    shown: bool = False
    wait_row_open: bool = False
    usage: dict[str, int] | None = None
    calls: dict[str, _Call] = field(default_factory=dict[str, _Call])
    expected: tuple[str, ...] | None = None
    expected_call: str | None = None
    paused: Mapping[str, Any] | None = None
    asked: set[tuple[str, bool]] = field(default_factory=set[tuple[str, bool]])
    interactions: set[str] = field(default_factory=set[str])
    answered_call: str | None = None
    overtaken: set[str] = field(default_factory=set[str])
    task: Mapping[str, Any] | None = None
    tasks: set[str] = field(default_factory=set[str])

    @property
    def ended(self) -> bool:
        return self.phase == "ended"

    def read(self, event: Event) -> None:
        """Take the next event, or raise GrammarError."""
        _require(self.phase != "ended", "the log has ended already")
        if self.expected is not None:
            _require(event.type in self.expected, f"expected {' or '.join(self.expected)}")
        if self.expected_call is not None and event.type.startswith("tool."):
            _require(event.data["call_id"] == self.expected_call, "of another call")
        self.expected = self.expected_call = None
        self._follow_up(event)
        if event.type in TERMINAL_TYPES:
            self._end(event)
            return
        if event.type == "run.started":
            _require(self.phase == "new", "the run has started already")
            self.phase = "start"
            return
        _require(self.phase != "new", "the run has not started")
        if event.type == "activity.updated":
            self._activity(event)
            return
        handlers: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "model": self._model(event.type),
            "message": self._message(event.type),
            "tool": self._tool(event.type),
            "run": self._pause(event.type),
            "interaction": self._interaction(event.type),
            "external_task": self._external(event.type),
        }
        handlers[event.type.split(".")[0]](event.data)

    def _follow_up(self, event: Event) -> None:
        """A call that continues an answered question comes directly after the answer, or never."""
        if event.type == "run.waiting_input":
            return
        call_id = event.data.get("call_id", event.data.get("tool_call_id"))
        _require(call_id not in self.overtaken, "the continuation of an earlier answer")
        if self.answered_call is not None:
            if call_id != self.answered_call:
                self.overtaken.add(self.answered_call)
            self.answered_call = None

    # --- ends ----------------------------------------------------------------------------------

    def _end(self, event: Event) -> None:
        if event.type == "run.completed":
            _require(self.phase == "said", "not directly after message.completed")
            _require(event.data["usage"] == self.usage, f"usage is not {self.usage}")
        elif event.type == "run.failed":
            _require(self.phase != "new", "a run that has not started cannot fail")
            self._require_running()
        else:
            self._require_running()
        self.phase = "ended"

    def _require_running(self) -> None:
        _require(self.phase not in {"said", "final"}, "the final answer is one commit")
        _require(self.paused is None, "the pause is not resolved")
        _require(self.task is None, "the task is not settled")

    # --- model steps -----------------------------------------------------------------------------

    def _model(self, kind: str) -> Callable[[Mapping[str, Any]], None]:
        return {
            "model.started": self._step_started,
            "model.retrying": self._retrying,
        }.get(kind, self._step_completed)

    def _step_started(self, data: Mapping[str, Any]) -> None:
        self._require_turn()
        _require(not any(call.open for call in self.calls.values()), "a call is open")
        _require(data["step"] == self.step + 1, f"expected step {self.step + 1}")
        self.step = data["step"]
        self.phase, self.text, self.shown = "step", "", False

    def _retrying(self, data: Mapping[str, Any]) -> None:
        _require(self.phase == "reset", "not directly after message.reset")
        _require(data["step"] == self.step, "of another step")
        _require(1 <= data["retry"] <= data["max_retries"], "the count is not within its bound")
        _require(data["delay_seconds"] >= 0, "the delay is negative")
        self.phase, self.text, self.shown = "step", "", False

    def _step_completed(self, data: Mapping[str, Any]) -> None:
        _require(self.phase == "step", "no step is open")
        _require(data["step"] == self.step, "of another step")
        _require(not self.wait_row_open, "the wait row is open")
        _require(
            (data["finish_reason"] == "tool_calls") == (data["outcome"] == "tools"),
            "finish_reason does not fit the outcome",
        )
        used: dict[str, int] | None = data["usage"]
        if used is not None:
            total = self.usage or {}
            self.usage = {key: total.get(key, 0) + used[key] for key in used}
        if data["outcome"] == "final":
            self.phase, self.expected = "final", ("message.completed",)
            return
        self.phase = "turn"
        if self.shown:
            self.phase, self.expected = "reset_turn", ("message.reset",)

    def _message(self, kind: str) -> Callable[[Mapping[str, Any]], None]:
        return {
            "message.delta": self._delta,
            "message.reset": self._reset,
        }.get(kind, self._said)

    def _delta(self, data: Mapping[str, Any]) -> None:
        _require(self.phase == "step", "no step is open")
        _require(not self.wait_row_open, "the wait row is open")
        self.text += data["delta"]
        _require(not self.text[0].isspace(), "white space before the first character")
        self.shown = True

    def _reset(self, data: Mapping[str, Any]) -> None:
        if self.phase == "reset_turn":
            self.phase = "turn"
            return
        _require(self.phase == "step", "nothing to discard")
        self.phase, self.expected = "reset", ("model.retrying",)

    def _said(self, data: Mapping[str, Any]) -> None:
        _require(self.phase == "final", "not directly after model.completed")
        _require(data["content"] == self.text, "not the deltas since the last reset")
        self.phase, self.expected = "said", ("run.completed",)

    # --- activity rows ---------------------------------------------------------------------------

    def _activity(self, event: Event) -> None:
        data, row = event.data, event.data["id"]
        _require(data["step"] == self.step, f"expected step {self.step}")
        if row == f"run:{event.run_id}:model-wait":
            self._wait_row(data, event.seq)
            return
        self._require_turn()
        call_id = row.removesuffix(":progress")
        call = self.calls.get(call_id)
        if call_id == row:
            _require(call is None, "the call is known already")
            _require(data["status"] == "completed", "a report is completed at once")
            _require("public" not in data, "a report has no public value")
            self.calls[call_id] = _Call("read", settled=True)
            return
        _require(call is not None and call.open, "a row of a call that is not open")
        assert call is not None
        _require(call.row in {None, "running"}, "the row is closed already")
        _require(data["status"] == "running" or call.row == "running", "the row was never open")
        call.row = data["status"]

    def _wait_row(self, data: Mapping[str, Any], seq: int) -> None:
        running = data["status"] == "running"
        if self.phase == "start":
            _require(running and seq == 2, "only the initial activity stands before the first step")
            self.wait_row_open = True
            return
        _require(self.phase == "step", "no step is open")
        if running:
            elapsed = data.get("public", {}).get("elapsed_seconds")
            _require(isinstance(elapsed, int) and elapsed >= 1, "a tick tells the seconds")
            self.wait_row_open = True
            return
        _require(self.wait_row_open, "the row is not open")
        self.wait_row_open = False
        self.expected = ("message.delta", "model.completed")

    # --- calls -----------------------------------------------------------------------------------

    def _require_turn(self) -> None:
        _require(self.phase in {"start", "turn"}, "in the middle of a model step")
        self._require_running()

    def _tool(self, kind: str) -> Callable[[Mapping[str, Any]], None]:
        return {
            "tool.started": self._tool_started,
            "tool.completed": self._tool_completed,
        }.get(kind, self._tool_failed)

    def _tool_started(self, data: Mapping[str, Any]) -> None:
        self._require_turn()
        call = self.calls.setdefault(data["call_id"], _Call(data["effect"]))
        _require(not call.settled, "the call is settled already")
        call.open = True
        beside = [c for c in self.calls.values() if c.open]
        _require(
            len(beside) == 1 or all(c.effect == "read" for c in beside),
            "a call that does not only read runs beside another",
        )

    def _tool_completed(self, data: Mapping[str, Any]) -> None:
        self._require_turn()
        known = self.calls.get(data["call_id"])
        if data.get("deduplicated"):
            _require(known is None, "a repetition is not executed")
            self.calls[data["call_id"]] = _Call(data["effect"], settled=True)
            return
        self._settle(known, "completed")

    def _tool_failed(self, data: Mapping[str, Any]) -> None:
        self._require_turn()
        known = self.calls.get(data["call_id"])
        if known is None:
            self.calls[data["call_id"]] = _Call(data["effect"], settled=True)
            return
        self._settle(known, "failed")

    def _settle(self, call: _Call | None, status: str) -> None:
        _require(call is not None and call.open, "the call is not open")
        assert call is not None
        _require(call.row in {None, status, "deferred"}, f"the progress row is not {status}")
        call.open, call.settled = False, True

    # --- pauses ----------------------------------------------------------------------------------

    def _pause(self, kind: str) -> Callable[[Mapping[str, Any]], None]:
        def handle(data: Mapping[str, Any]) -> None:
            if kind == "run.waiting_external":
                _require(self.task is not None, "no task was started")
                self.expected = _WHILE_EXTERNAL
                return
            self._require_turn()
            _require(not any(call.open for call in self.calls.values()), "a call is open")
            self.expected = ("interaction.requested",)
            self.phase = "pausing"

        return handle

    def _interaction(self, kind: str) -> Callable[[Mapping[str, Any]], None]:
        return self._requested if kind == "interaction.requested" else self._resolved

    def _requested(self, data: Mapping[str, Any]) -> None:
        _require(self.phase == "pausing", "not directly after run.waiting_input")
        approval = data["kind"] == "approval"
        _require(approval == ("tool" in data), "a tool is for approvals only")
        _require(data["id"] not in self.interactions, "the interaction was requested already")
        asking = (data["tool_call_id"], approval)
        _require(asking not in self.asked, "this was asked about the call already")
        _require(data["tool_call_id"] not in self.calls, "the call began already")
        self.interactions.add(data["id"])
        self.asked.add(asking)
        self.phase = "turn" if self.step else "start"
        self.paused, self.expected = data, ("interaction.resolved",)

    def _resolved(self, data: Mapping[str, Any]) -> None:
        _require(self.paused is not None, "nothing was asked")
        assert self.paused is not None
        _require(data["interaction_id"] == self.paused["id"], "of another interaction")
        _require(data["kind"] == self.paused["kind"], "of another kind")
        call_id, outcome = self.paused["tool_call_id"], data["outcome"]
        self.paused = None
        if outcome in {"cancelled", "expired"}:
            self.expected = ("run.cancelled",)
        elif outcome in {"approved", "rejected"}:
            self.expected_call = call_id
            settled = ("tool.failed", "run.failed", "run.cancelled")
            self.expected = settled if outcome == "rejected" else ("tool.started", *settled)
        else:
            self.answered_call = call_id

    def _external(self, kind: str) -> Callable[[Mapping[str, Any]], None]:
        def handle(data: Mapping[str, Any]) -> None:
            if kind == "external_task.started":
                self._deferred(data)
                return
            _require(self.task is not None, "no task was started")
            assert self.task is not None
            _require(data["task_id"] == self.task["task_id"], "of another task")
            _require(data["call_id"] == self.task["call_id"], "of another call")
            if kind == "external_task.progress":
                self.expected = _WHILE_EXTERNAL
                return
            self.task = None
            self.expected_call = data["call_id"]
            self.expected = (_AFTER_EXTERNAL[kind],)

        return handle

    def _deferred(self, data: Mapping[str, Any]) -> None:
        self._require_turn()
        call = self.calls.get(data["call_id"])
        _require(call is not None and call.open, "the call is not open")
        assert call is not None
        _require(call.row in {None, "completed"}, "the progress row is open")
        _require(data["task_id"] not in self.tasks, "the task was started already")
        self.tasks.add(data["task_id"])
        call.row = "deferred"
        self.task, self.expected = data, ("run.waiting_external",)


_WHILE_EXTERNAL = (
    "external_task.progress",
    "external_task.completed",
    "external_task.failed",
    "external_task.cancelled",
)
_AFTER_EXTERNAL = {
    "external_task.completed": "tool.completed",
    "external_task.failed": "tool.failed",
    "external_task.cancelled": "run.cancelled",
}
