"""Settling a call as failed without executing it."""

from __future__ import annotations

from rungent._lifecycle.actions import Refuse
from rungent._lifecycle.transition import Facts, Transition
from rungent._lifecycle.turns import settle, tool_identity
from rungent.catalog import tool_failure_retryable
from rungent.events import Draft
from rungent.records import Run, Settled
from rungent.text import dump_json
from rungent.tools.results import error_envelope

__all__ = ["refuse"]


def refuse(run: Run, action: Refuse, facts: Facts) -> Transition:
    """The model learns the reason; clients learn the code, where they know of the call."""
    text = facts.catalog.text(action.code)
    envelope = error_envelope(
        action.code,
        action.note or text,
        tool_failure_retryable(action.code),
        details=action.details or None,
    )
    settled = Settled(
        content=dump_json(envelope),
        counts="nothing" if action.key is None else "failure",
        key=action.key or "",
    )
    transition = settle(run, action.call, settled)
    if not action.shown:
        return transition
    failed = {**tool_identity(action.call, facts), "code": action.code, "message": text}
    return transition.emitting(Draft("tool.failed", failed))
