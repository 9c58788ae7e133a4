"""What a frontend shows of a run: the state that its events add up to, as the browser SDK does it.

The rules are those of the SDK's reducer, and both are tested on the same logs. Pure: the same
events give the same view, live or replayed. Source: docs/sdk.md#state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

__all__ = ["RunView", "project"]

Row = Mapping[str, Any]
Rows = tuple[Row, ...]
Data = Mapping[str, Any]

_TASK_STATUS = {"started": "running", "progress": "running"}
_ENDS = {"completed", "failed", "cancelled"}


@dataclass(frozen=True, slots=True)
class RunView:
    """The state of one run; rows of `activities` have the keys that the SDK gives them."""

    run_id: str | None = None
    last_seq: int | None = None
    status: str = "idle"
    text: str = ""
    content: str | None = None
    activities: Rows = ()
    interaction: Data | None = None
    error: str | None = None
    error_code: str | None = None
    retryable: bool | None = None
    usage: Data | None = None

    def to_json(self) -> dict[str, Any]:
        """The state with the names of the SDK."""
        return {
            "runId": self.run_id,
            "lastSeq": self.last_seq,
            "status": self.status,
            "text": self.text,
            "content": self.content,
            "activities": list(self.activities),
            "interaction": self.interaction,
            "error": self.error,
            "errorCode": self.error_code,
            "retryable": self.retryable,
            "usage": self.usage,
        }


def project(view: RunView, event: Mapping[str, Any]) -> RunView:
    """The view after an event, of which `run_id`, `seq`, `type` and `data` count.

    An event of another run starts anew, one that counted already changes nothing, and of an
    unknown type only the number counts.
    """
    run_id, seq = event["run_id"], event["seq"]
    if run_id != view.run_id:
        view = RunView(run_id)
    elif view.last_seq is not None and seq <= view.last_seq:
        return view
    family, _, what = event["type"].partition(".")
    return replace(_changed(view, family, what, event["data"]), last_seq=seq)


def _changed(view: RunView, family: str, what: str, data: Data) -> RunView:
    match family, what:
        case "run", "started" | "waiting_input" | "waiting_external":
            return replace(view, status=data["status"])
        case "run", "completed" | "failed" | "cancelled":
            return _ended(view, what, data)
        case "message", _:
            return _message(view, what, data)
        case "model", _:
            return _model(view, what, data)
        case "activity", "updated":
            row = {"kind": "progress", "id": data["id"], "status": data["status"]}
            row |= {"step": data["step"], "message": data["message"], **_picked(data, "public")}
            return _with_row(view, row)
        case "tool", "started" | "completed" | "failed":
            return _tool(view, what, data)
        case "interaction", "requested" | "resolved":
            return _interaction(view, what, data)
        case "external_task", "started" | "progress" | "completed" | "failed" | "cancelled":
            return _task(view, what, data)
        case _:
            return view


def _ended(view: RunView, what: str, data: Data) -> RunView:
    rows = tuple(_settled(row, what) for row in view.activities)
    view = replace(view, status=what, interaction=None, activities=rows)
    if what == "completed":
        return replace(view, usage=data["usage"])
    if what == "failed":
        error, code, retryable = data["error"], data["code"], data["retryable"]
        return replace(view, error=error, error_code=code, retryable=retryable)
    return view


def _settled(row: Row, status: str) -> Row:
    if row["status"] != "running":
        return row
    failed = row["kind"] == "progress" and status == "cancelled"
    return {**row, "status": "failed" if failed else status}


def _message(view: RunView, what: str, data: Data) -> RunView:
    match what:
        case "delta":
            return replace(view, text=view.text + data["delta"])
        case "reset":
            return replace(view, text="")
        case "completed":
            return replace(view, content=data["content"], text="")
        case _:
            return view


def _model(view: RunView, what: str, data: Data) -> RunView:
    row_id = f"model:{data.get('step')}"
    opened = {"kind": "model", "id": row_id, "status": "running", "step": data.get("step")}
    known = _row(view, "model", row_id) or opened
    match what:
        case "started":
            return replace(_with_row(view, opened), text="")
        case "completed":
            return _with_row(view, {**known, "status": "completed"})
        case "retrying":
            again = {"retry": data["retry"], "maxRetries": data["max_retries"]}
            row = {**known, "status": "running", **again, "retryReason": data["reason"]}
            return _with_row(view, row)
        case _:
            return view


def _tool(view: RunView, what: str, data: Data) -> RunView:
    status = "running" if what == "started" else what
    row = {"kind": "tool", "id": data["call_id"], "status": status}
    more = _picked(data, "message", "public", "code", "deduplicated")
    return _with_row(view, {**row, **_picked(data, "name", "title", "effect"), **more})


def _interaction(view: RunView, what: str, data: Data) -> RunView:
    if what == "requested":
        row = {"kind": "interaction", "id": data["id"], "status": "running"}
        row |= {"interactionKind": data["kind"], "prompt": data["prompt"]}
        return replace(_with_row(view, row), interaction=data)
    known = _row(view, "interaction", data["interaction_id"]) or {"prompt": ""}
    gone = data["outcome"] in {"cancelled", "expired"}
    row = {
        "kind": "interaction",
        "id": data["interaction_id"],
        "status": "cancelled" if gone else "completed",
        "interactionKind": data["kind"],
        "prompt": known["prompt"],
        "outcome": data["outcome"],
    }
    return replace(_with_row(view, row), interaction=None, status="running")


def _task(view: RunView, what: str, data: Data) -> RunView:
    status = _TASK_STATUS.get(what, what)
    row = {"kind": "external", "id": data["task_id"], "status": status, "callId": data["call_id"]}
    known = _row(view, "external", data["task_id"]) or {}
    view = _with_row(view, {**known, **row, **_picked(data, "message", "public")})
    return replace(view, status="running") if what in _ENDS else view


def _row(view: RunView, kind: str, row_id: str) -> Row | None:
    found = (row for row in reversed(view.activities) if (row["kind"], row["id"]) == (kind, row_id))
    return next(found, None)


def _with_row(view: RunView, row: Row) -> RunView:
    key = (row["kind"], row["id"])
    rows = tuple(row if (old["kind"], old["id"]) == key else old for old in view.activities)
    known = any((old["kind"], old["id"]) == key for old in view.activities)
    return replace(view, activities=rows if known else (*rows, row))


def _picked(data: Data, *keys: str) -> dict[str, Any]:
    return {key: data[key] for key in keys if key in data}
