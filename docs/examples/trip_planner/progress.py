"""What a terminal shows of a run: a pure fold of its events into rows and a text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from rungent import Event

__all__ = ["Progress", "Row", "advance", "visible"]

RowStatus = Literal["running", "completed", "failed"]
_TASK = "In the background"

# A model's text must not move the cursor or recolour the terminal of the person who reads it.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def visible(text: str) -> str:
    """`text` without control characters other than tab and line feed."""
    return _CONTROLS.sub("", text)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of work: a model step, an activity or a tool call."""

    key: str
    label: str
    status: RowStatus = "running"
    message: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """The run as its events tell it so far. `text` grows until `status` is terminal."""

    status: str = "running"
    rows: tuple[Row, ...] = ()
    text: str = ""
    question: Mapping[str, Any] | None = None
    error: str = ""

    def with_row(self, row: Row) -> Progress:
        """The same with this row added, or in the place of the row with its key."""
        if all(known.key != row.key for known in self.rows):
            return replace(self, rows=(*self.rows, row))
        return replace(
            self, rows=tuple(row if known.key == row.key else known for known in self.rows)
        )

    def after_pause(self) -> Progress:
        """The same without what is settled: it was shown above the question."""
        return replace(self, rows=tuple(row for row in self.rows if row.status == "running"))


def advance(progress: Progress, event: Event) -> Progress:
    """The progress after one more event. Unknown events change nothing."""
    data = event.data
    match event.type:
        case "message.delta":
            return replace(progress, text=progress.text + visible(data["delta"]))
        case "message.reset":
            return replace(progress, text="")
        case "message.completed":
            return replace(progress, text=visible(data["content"]))
        case "interaction.requested":
            return replace(progress, status="waiting_input", question=data)
        case "interaction.resolved":
            return replace(progress, status="running", question=None)
        case "run.failed":
            return _ended(replace(progress, error=visible(data["error"])), "failed")
        case "run.completed" | "run.cancelled":
            return _ended(progress, data["status"])
        case _:
            row = _row(event.type, data)
            if event.type == "model.started":
                progress = replace(progress, text="")
            return progress if row is None else progress.with_row(row)


def _row(kind: str, data: Mapping[str, Any]) -> Row | None:
    match kind:
        case "model.started":
            return Row(f"model:{data['step']}", f"Model step {data['step']}")
        case "model.retrying":
            again = f"again, {data['retry']} of {data['max_retries']} ({data['reason']})"
            return Row(f"model:{data['step']}", f"Model step {data['step']}", message=again)
        case "model.completed":
            return Row(f"model:{data['step']}", f"Model step {data['step']}", "completed")
        case "activity.updated":
            return Row(data["id"], visible(data["message"]), data["status"])
        case "external_task.started" | "external_task.progress":
            return Row(f"task:{data['task_id']}", _TASK, message=visible(data["message"]))
        case "external_task.completed" | "external_task.failed" | "external_task.cancelled":
            ended: RowStatus = "completed" if kind == "external_task.completed" else "failed"
            return Row(f"task:{data['task_id']}", _TASK, ended)
        case "tool.started":
            return Row(data["call_id"], data["title"])
        case "tool.completed" | "tool.failed":
            status: RowStatus = "completed" if kind == "tool.completed" else "failed"
            return Row(data["call_id"], data["title"], status, visible(data.get("message", "")))
        case _:
            return None


def _ended(progress: Progress, status: str) -> Progress:
    settled: RowStatus = "completed" if status == "completed" else "failed"
    rows = tuple(
        replace(row, status=settled) if row.status == "running" else row for row in progress.rows
    )
    return replace(progress, status=status, rows=rows)
