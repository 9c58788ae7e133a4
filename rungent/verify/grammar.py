"""The grammar of a run's log: the order of events that clients rely on.

A log is read once, event by event, and stops at the first event that may not stand where it
stands. Nothing here knows a store, a runtime or a clock. Source: docs/operating.md#verify.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue, ValidationError

from rungent.events import PAYLOADS, TERMINAL_TYPES, event_adapter
from rungent.verify.reasons import invalid_fields

__all__ = ["LogError", "LogReader"]


class LogError(ValueError):
    """An event that may not stand where it stands, or that is no event at all."""


def _require(condition: object, reason: str) -> None:
    if not condition:
        raise LogError(reason)


@dataclass(slots=True)
class _Call:
    effect: str
    settled: bool = False
    row: str | None = None
    asks: str | None = None


@dataclass(slots=True)
class LogReader:
    """Reads the log of one run from its first event on.

    `seq` is the number of the last event and `ended` says whether it was a terminal one; a log
    may stop anywhere. `step` is the last model step and `usage` what all of them used.
    """

    run_id: str
    seq: int = 0
    step: int = 0
    usage: dict[str, int] | None = None
    _phase: str = "new"
    _text: list[str] = field(default_factory=list[str])
    _wait_row_open: bool = False
    _calls: dict[str, _Call] = field(default_factory=dict[str, _Call])
    _open: dict[str, _Call] = field(default_factory=dict[str, _Call])
    # The types that alone may come next, and the call that they must be of.
    _expected: tuple[str, ...] | None = None
    _expected_call: str | None = None
    _paused: Mapping[str, Any] | None = None
    _asked: set[tuple[str, bool]] = field(default_factory=set[tuple[str, bool]])
    _interactions: set[str] = field(default_factory=set[str])
    _answered_call: str | None = None
    _overtaken: set[str] = field(default_factory=set[str])
    _task: Mapping[str, Any] | None = None
    _tasks: set[str] = field(default_factory=set[str])

    @property
    def ended(self) -> bool:
        """Whether the log has its terminal event."""
        return self._phase == "ended"

    def read(self, seq: int, kind: str, data: Any) -> None:
        """Take the next event, or raise LogError; afterwards the reader is of no use."""
        _require(seq == self.seq + 1, f"expected seq {self.seq + 1}")
        _require(kind in PAYLOADS, "unknown type")
        try:
            event_adapter(kind).validate_python(data, strict=True)
        except ValidationError as invalid:
            raise LogError(f"payload: {invalid_fields(invalid)}") from None
        self.seq = seq
        self._take(kind, data)

    def _take(self, kind: str, data: Mapping[str, Any]) -> None:
        _require(not self.ended, "the log has ended already")
        if self._expected is not None:
            _require(kind in self._expected, f"expected {' or '.join(self._expected)}")
        if self._expected_call is not None and kind.startswith("tool."):
            _require(data["call_id"] == self._expected_call, "of another call")
        self._expected = self._expected_call = None
        self._follow_up(kind, data)
        if kind in TERMINAL_TYPES:
            self._end(kind, data)
        elif kind == "run.started":
            _require(self._phase == "new", "the run has started already")
            self._phase = "start"
        else:
            _require(self._phase != "new", "the run has not started")
            self._handle(kind, data)

    def _handle(self, kind: str, data: Mapping[str, Any]) -> None:
        match kind:
            case "run.waiting_input":
                self._pausing()
            case "run.waiting_external":
                self._parked()
            case "model.started":
                self._step_started(data)
            case "message.delta":
                self._delta(data)
            case "message.reset":
                self._reset()
            case "model.retrying":
                self._retrying(data)
            case "model.completed":
                self._step_completed(data)
            case "message.completed":
                self._said(data)
            case "activity.updated":
                self._activity(data)
            case "tool.started":
                self._tool_started(data)
            case "tool.completed":
                self._tool_completed(data)
            case "tool.failed":
                self._tool_failed(data)
            case "interaction.requested":
                self._requested(data)
            case "interaction.resolved":
                self._resolved(data)
            case "external_task.started":
                self._deferred(data)
            case "external_task.progress":
                self._task_progress(data)
            case "external_task.completed":
                self._task_ended("tool.completed", data)
            case "external_task.failed":
                self._task_ended("tool.failed", data)
            case "external_task.cancelled":
                self._task_ended("run.cancelled", data)
            case _:
                raise AssertionError(f"no rule for {kind}")

    def _follow_up(self, kind: str, data: Mapping[str, Any]) -> None:
        """A call that continues an answered question comes directly after the answer, or never."""
        if kind == "run.waiting_input":
            return
        call_id = data.get("call_id", data.get("tool_call_id"))
        _require(call_id not in self._overtaken, "the continuation of an earlier answer")
        if self._answered_call is not None:
            if call_id != self._answered_call:
                self._overtaken.add(self._answered_call)
            self._answered_call = None

    # --- ends ----------------------------------------------------------------------------------

    def _end(self, kind: str, data: Mapping[str, Any]) -> None:
        if kind == "run.completed":
            _require(self._phase == "said", "not directly after message.completed")
            _require(data["usage"] == self.usage, f"usage is not {self.usage}")
        elif kind == "run.failed":
            _require(self._phase != "new", "a run that has not started cannot fail")
            self._require_running()
        else:
            self._require_running()
        self._phase = "ended"

    def _require_running(self) -> None:
        _require(self._phase not in {"said", "final"}, "the final answer is one commit")
        _require(self._paused is None, "the pause is not resolved")
        _require(self._task is None, "the task is not settled")

    # --- model steps -----------------------------------------------------------------------------

    def _step_started(self, data: Mapping[str, Any]) -> None:
        self._require_turn()
        _require(not self._open, "a call is open")
        _require(data["step"] == self.step + 1, f"expected step {self.step + 1}")
        self.step = data["step"]
        self._phase, self._text = "step", []

    def _retrying(self, data: Mapping[str, Any]) -> None:
        _require(self._phase == "reset", "not directly after message.reset")
        _require(data["step"] == self.step, "of another step")
        _require(1 <= data["retry"] <= data["max_retries"], "the count is not within its bound")
        _require(data["delay_seconds"] >= 0, "the delay is negative")
        self._phase, self._text = "step", []

    def _step_completed(self, data: Mapping[str, Any]) -> None:
        _require(self._phase == "step", "no step is open")
        _require(data["step"] == self.step, "of another step")
        _require(not self._wait_row_open, "the wait row is open")
        _require(
            (data["finish_reason"] == "tool_calls") == (data["outcome"] == "tools"),
            "finish_reason does not fit the outcome",
        )
        used: dict[str, int] | None = data["usage"]
        if used is not None:
            total = self.usage or {}
            self.usage = {key: total.get(key, 0) + used[key] for key in used}
        if data["outcome"] == "final":
            self._phase, self._expected = "final", ("message.completed",)
            return
        self._phase = "turn"
        if self._text:
            self._phase, self._expected = "reset_turn", ("message.reset",)

    def _delta(self, data: Mapping[str, Any]) -> None:
        _require(self._phase == "step", "no step is open")
        _require(not self._wait_row_open, "the wait row is open")
        blank = not self._text and data["delta"][0].isspace()
        _require(not blank, "white space before the first character")
        self._text.append(data["delta"])

    def _reset(self) -> None:
        if self._phase == "reset_turn":
            self._phase = "turn"
            return
        _require(self._phase == "step", "nothing to discard")
        self._phase, self._expected = "reset", ("model.retrying",)

    def _said(self, data: Mapping[str, Any]) -> None:
        _require(self._phase == "final", "not directly after model.completed")
        _require(data["content"] == "".join(self._text), "not the deltas since the last reset")
        self._phase, self._expected = "said", ("run.completed",)

    # --- activity rows ---------------------------------------------------------------------------

    def _activity(self, data: Mapping[str, Any]) -> None:
        row = data["id"]
        _require(data["step"] == self.step, f"expected step {self.step}")
        if row == f"run:{self.run_id}:model-wait":
            self._wait_row(data)
            return
        self._require_turn()
        call_id = row.removesuffix(":progress")
        call = self._calls.get(call_id)
        if call_id == row:
            _require(call is None, "the call is known already")
            _require(data["status"] == "completed", "a report is completed at once")
            _require("public" not in data, "a report has no public value")
            self._calls[call_id] = _Call("read", settled=True)
            return
        if call is None or call_id not in self._open:
            raise LogError("a row of a call that is not open")
        _require(call.row in {None, "running"}, "the row is closed already")
        _require(data["status"] == "running" or call.row == "running", "the row was never open")
        call.row = data["status"]

    def _wait_row(self, data: Mapping[str, Any]) -> None:
        running = data["status"] == "running"
        if self._phase == "start":
            first = running and self.seq == 2
            _require(first, "only the initial activity stands before the first step")
            self._wait_row_open = True
            return
        _require(self._phase == "step", "no step is open")
        if running:
            _require(_elapsed(data.get("public")) >= 1, "a tick tells the seconds")
            self._wait_row_open = True
            return
        _require(self._wait_row_open, "the row is not open")
        self._wait_row_open = False
        self._expected = ("message.delta", "model.completed")

    # --- calls -----------------------------------------------------------------------------------

    def _require_turn(self) -> None:
        _require(self._phase in {"start", "turn"}, "in the middle of a model step")
        self._require_running()

    def _tool_started(self, data: Mapping[str, Any]) -> None:
        self._require_turn()
        call = self._calls.setdefault(data["call_id"], _Call(data["effect"]))
        _require(not call.settled, "the call is settled already")
        self._open[data["call_id"]] = call
        alone = len(self._open) == 1 or all(c.effect == "read" for c in self._open.values())
        _require(alone, "a call that does not only read runs beside another")

    def _tool_completed(self, data: Mapping[str, Any]) -> None:
        self._require_turn()
        known = self._calls.get(data["call_id"])
        if data.get("deduplicated"):
            _require(known is None, "a repetition is not executed")
            self._calls[data["call_id"]] = _Call(data["effect"], settled=True)
            return
        self._settle(data["call_id"], "completed")

    def _tool_failed(self, data: Mapping[str, Any]) -> None:
        self._require_turn()
        known = self._calls.get(data["call_id"])
        if known is None:
            self._calls[data["call_id"]] = _Call(data["effect"], settled=True)
            return
        self._settle(data["call_id"], "failed")

    def _settle(self, call_id: str, status: str) -> None:
        call = self._require_open(call_id)
        _require(call.row in {None, status, "deferred"}, f"the progress row is not {status}")
        call.settled = True
        del self._open[call_id]

    def _require_open(self, call_id: str) -> _Call:
        if call_id not in self._open:
            raise LogError("the call is not open")
        return self._open[call_id]

    # --- pauses ----------------------------------------------------------------------------------

    def _pausing(self) -> None:
        self._require_turn()
        self._phase, self._expected = "pausing", ("interaction.requested",)

    def _requested(self, data: Mapping[str, Any]) -> None:
        _require(self._phase == "pausing", "not directly after run.waiting_input")
        approval = data["kind"] == "approval"
        _require(approval == ("tool" in data), "a tool is for approvals only")
        _require((data["kind"] == "data") == ("schema" in data), "a schema is for data only")
        if data["kind"] == "data":
            self._require_asking(data)
        else:
            _require(not self._open, "a call is open")
            _require(data["id"] not in self._interactions, "the interaction was requested already")
            asking = (data["tool_call_id"], approval)
            _require(asking not in self._asked, "this was asked about the call already")
            _require(data["tool_call_id"] not in self._calls, "the call began already")
            self._asked.add(asking)
        self._interactions.add(data["id"])
        self._phase = "turn" if self.step else "start"
        self._paused, self._expected = data, ("interaction.resolved",)

    def _resolved(self, data: Mapping[str, Any]) -> None:
        if self._paused is None:
            raise LogError("nothing was asked")
        _require(data["interaction_id"] == self._paused["id"], "of another interaction")
        _require(data["kind"] == self._paused["kind"], "of another kind")
        call_id, outcome = self._paused["tool_call_id"], data["outcome"]
        self._paused = None
        if outcome == "cancelled":
            self._expected = ("run.cancelled",)
        elif outcome == "expired":
            # Of a question of the model clients hear nothing more.
            if data["kind"] in {"approval", "data"}:
                self._expected, self._expected_call = ("tool.failed",), call_id
        elif outcome in {"approved", "rejected"}:
            self._expected_call = call_id
            settled = ("tool.failed", "run.failed", "run.cancelled")
            self._expected = settled if outcome == "rejected" else ("tool.started", *settled)
        elif data["kind"] != "data":
            self._answered_call = call_id

    def _require_asking(self, data: Mapping[str, Any]) -> None:
        """The only open call asks, for the first time or once more."""
        call_id = data["tool_call_id"]
        call = self._require_open(call_id)
        _require(len(self._open) == 1, "another call is open")
        _require(call.row in {None, "completed"}, "the progress row is open")
        _require(call.asks in {None, data["id"]}, "the call asked something else before")
        known = data["id"] in self._interactions
        _require(known == (call.asks is not None), "the interaction was requested already")
        call.asks, call.row = data["id"], None

    def _deferred(self, data: Mapping[str, Any]) -> None:
        self._require_turn()
        call = self._require_open(data["call_id"])
        _require(call.row in {None, "completed"}, "the progress row is open")
        _require(data["task_id"] not in self._tasks, "the task was started already")
        self._tasks.add(data["task_id"])
        call.row = "deferred"
        self._task, self._expected = data, ("run.waiting_external",)

    def _parked(self) -> None:
        _require(self._task is not None, "no task was started")
        self._expected = _WHILE_EXTERNAL

    def _task_progress(self, data: Mapping[str, Any]) -> None:
        self._require_task(data)
        self._expected = _WHILE_EXTERNAL

    def _task_ended(self, follower: str, data: Mapping[str, Any]) -> None:
        self._require_task(data)
        self._task = None
        self._expected, self._expected_call = (follower,), data["call_id"]

    def _require_task(self, data: Mapping[str, Any]) -> None:
        if self._task is None:
            raise LogError("no task was started")
        _require(data["task_id"] == self._task["task_id"], "of another task")
        _require(data["call_id"] == self._task["call_id"], "of another call")


_WHILE_EXTERNAL = (
    "external_task.progress",
    "external_task.completed",
    "external_task.failed",
    "external_task.cancelled",
)


def _elapsed(public: JsonValue) -> int:
    elapsed = public.get("elapsed_seconds") if isinstance(public, dict) else None
    return elapsed if isinstance(elapsed, int) else 0
