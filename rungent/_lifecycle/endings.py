"""How a run ends early: failed or cancelled, with every open call answered."""

from __future__ import annotations

from rungent._lifecycle.pauses import resolved
from rungent._lifecycle.transition import Facts, Transition, with_state
from rungent._lifecycle.turns import answers_of, claim_of, error_content
from rungent.catalog import run_failure_retryable
from rungent.events import Draft
from rungent.records import Call, Run, RunStatus, ToolClaim

__all__ = ["cancel", "fail"]


def fail(run: Run, code: str, facts: Facts) -> Transition:
    """The run ends as failed; calls that are still open are answered as cancelled."""
    retryable = run_failure_retryable(code)
    ended = _ended(run, RunStatus.FAILED).model_copy(
        update={"failure_code": code, "failure_retryable": retryable}
    )
    data = {
        "status": "failed",
        "code": code,
        "error": facts.catalog.text(code),
        "retryable": retryable,
    }
    return _closing(run, ended, facts).emitting(Draft("run.failed", data))


def cancel(run: Run, facts: Facts) -> Transition | None:
    """The run ends as cancelled; None when it has ended already.

    The fencing token grows, so that a drive elsewhere can write nothing more.
    """
    if not run.active:
        return None
    ended = _ended(run, RunStatus.CANCELLED).model_copy(
        update={"fencing_token": run.fencing_token + 1}
    )
    return (
        _closing(run, ended, facts)
        .then(_nothing_pending(run, ended, facts))
        .emitting(Draft("run.cancelled", {"status": "cancelled"}))
    )


def _nothing_pending(run: Run, ended: Run, facts: Facts) -> Transition:
    """The question or task that the run waited for is over, too."""
    interaction, task = run.state.interaction, run.state.task
    if interaction is not None:
        over, shown = resolved(interaction, "cancelled", facts)
        return Transition(ended, (shown,), interactions=(over,))
    if task is not None:
        dropped = task.model_copy(update={"state": "cancelled", "settled_at": facts.now})
        data = {
            "task_id": task.task_id,
            "call_id": task.call_id,
            "message": facts.catalog.text("external_task_cancelled"),
        }
        return Transition(ended, (Draft("external_task.cancelled", data),), tasks=(dropped,))
    return Transition(ended)


def _ended(run: Run, status: RunStatus) -> Run:
    cleared = with_state(run, turn=(), step_open=False, interaction=None, task=None, answer=None)
    return cleared.model_copy(update={"status": status, "lease": None})


def _closing(run: Run, ended: Run, facts: Facts) -> Transition:
    calls = run.state.turn
    return Transition(
        ended,
        messages=tuple(
            message for call in calls for message in answers_of(call, _last_word(call, facts))
        ),
        claims=tuple(_cut_off(run, call, facts) for call in calls if _is_open(call)),
        interactions=tuple(
            call.asked.model_copy(update={"closing": ended.status.value})
            for call in calls
            if _is_open(call) and call.asked is not None
        ),
    )


def _is_open(call: Call) -> bool:
    return call.opened is not None and call.settled is None


def _last_word(call: Call, facts: Facts) -> str:
    return call.settled.content if call.settled is not None else error_content("cancelled", facts)


def _cut_off(run: Run, call: Call, facts: Facts) -> ToolClaim:
    """Nobody knows what a cut-off execution changed, unless it only reads."""
    harmless = call.opened is not None and call.opened.effect == "read"
    return claim_of(run, call, "cancelled" if harmless else "in_doubt", facts, "cancelled")
