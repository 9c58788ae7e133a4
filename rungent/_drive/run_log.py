"""One line of the log for each part of a run that ends or pauses: who, what, how long.

It holds ids, numbers and codes, never what users, models or tools said. Source:
docs/operating.md#logs.
"""

from __future__ import annotations

import logging

from rungent.records import Run

__all__ = ["log_part"]

logger = logging.getLogger("rungent")

MESSAGE = (
    "run part over: run_id=%(run_id)s session_id=%(session_id)s agent=%(agent)s status=%(status)s"
    " code=%(code)s duration_seconds=%(duration_seconds)s steps=%(steps)s worker=%(worker)s"
)


def log_part(run: Run, worker: str, *, seconds: float = 0, code: str | None = None) -> None:
    """Log that a part of `run` is over; `code` says why a run that goes on left this worker."""
    if not logger.isEnabledFor(logging.INFO):
        return
    fields = {
        "run_id": run.id,
        "session_id": run.session_id,
        "agent": run.agent_name,
        "status": run.status.value,
        "code": code or run.failure_code,
        "duration_seconds": round(seconds, 6),
        "steps": run.model_steps,
        "worker": worker,
    }
    logger.info(MESSAGE, fields, extra=fields)
