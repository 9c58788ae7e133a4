"""Which status of a run may follow which, and why: the table behind docs/concepts.md.

Every entry is met by a stored log, and no log holds a step that is not here; tests compare both.
"""

from __future__ import annotations

from collections.abc import Mapping

from rungent.records import RunStatus

__all__ = ["TRANSITIONS"]

TRANSITIONS: Mapping[tuple[RunStatus | None, RunStatus], str] = {
    (None, RunStatus.QUEUED): "created, no room",
    (None, RunStatus.RUNNING): "created",
    (RunStatus.QUEUED, RunStatus.RUNNING): "claimed",
    (RunStatus.QUEUED, RunStatus.CANCELLED): "cancelled",
    (RunStatus.RUNNING, RunStatus.WAITING_INPUT): "question or approval",
    (RunStatus.RUNNING, RunStatus.WAITING_EXTERNAL): "a tool defers",
    (RunStatus.RUNNING, RunStatus.COMPLETED): "final text",
    (RunStatus.RUNNING, RunStatus.FAILED): "failure",
    (RunStatus.RUNNING, RunStatus.CANCELLED): "cancelled",
    (RunStatus.WAITING_INPUT, RunStatus.RUNNING): "answered",
    (RunStatus.WAITING_INPUT, RunStatus.CANCELLED): "cancelled or replaced",
    (RunStatus.WAITING_EXTERNAL, RunStatus.RUNNING): "the host is done",
    (RunStatus.WAITING_EXTERNAL, RunStatus.CANCELLED): "cancelled",
}
"""From a status (None: before the run exists) to the next, with the cause in a word or two."""
