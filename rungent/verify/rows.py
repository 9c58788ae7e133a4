"""Rows against the log: the run, its ledger, its interactions and its tasks.

Every function gives the first difference as text, or None. Source: docs/operating.md#verify.
"""

from __future__ import annotations

from collections.abc import Iterable

from rungent.records import ExternalTask, Interaction, Run, RunStatus, ToolClaim
from rungent.verify.fold import CallSeen, Fold

__all__ = ["check_claims", "check_interactions", "check_run", "check_tasks"]


def check_run(run: Run, fold: Fold) -> str | None:
    """The run row is what its log adds up to."""
    view = fold.view
    failure = (run.failure_code, run.failure_retryable)
    steps = sum(row["kind"] == "model" for row in view.activities)
    pairs = (
        ("status", run.status.value, "queued" if view.status == "idle" else view.status),
        ("event_seq", run.event_seq, fold.events),
        ("model_steps", run.model_steps, steps),
        ("failure", failure, (view.error_code, view.retryable)),
    )
    for name, stored, folded in pairs:
        if stored != folded:
            return f"row: {name} is {stored}, but {folded} in the log"
    return check_rest(run)


def check_rest(run: Run) -> str | None:
    """What holds for a run row whatever its log says."""
    if run.lease is not None and run.status not in {RunStatus.QUEUED, RunStatus.RUNNING}:
        return f"row: {run.status} with a lease"
    if not run.active and run.state.turn:
        return f"row: {run.status} with calls that are not over"
    return None


def check_claims(run: Run, fold: Fold, claims: Iterable[ToolClaim]) -> str | None:
    """Each call that was begun has one ledger row, which tells the same story."""
    unseen = {call_id for call_id, call in fold.calls.items() if call.started}
    for claim in claims:
        seen = fold.calls.get(claim.call_id)
        if seen is None or not seen.started:
            return f"call {claim.call_id}: a ledger row without tool.started"
        unseen.discard(claim.call_id)
        wrong = _claim_differs(run, claim, seen)
        if wrong is not None:
            return f"call {claim.call_id}: {wrong}"
    for call_id in sorted(unseen):
        return f"call {call_id}: tool.started without a ledger row"
    return None


def _claim_differs(run: Run, claim: ToolClaim, seen: CallSeen) -> str | None:
    if (claim.tool_name, claim.effect) != (seen.name, seen.effect):
        return "another tool or effect in the ledger than in the log"
    if claim.idempotency_key != f"{run.id}:{claim.call_id}":
        return "the idempotency key is not made of run and call"
    if claim.attempts != seen.started:
        return f"{claim.attempts} attempts in the ledger, {seen.started} in the log"
    if claim.fencing_token > run.fencing_token:
        return "the ledger's fencing token is newer than the run's"
    if claim.attempts > claim.fencing_token:
        return "was executed more often than the run was claimed"
    allowed = _states(run, seen)
    if claim.state not in allowed:
        return f"{claim.state} in the ledger, {' or '.join(sorted(allowed))} by the log"
    if (claim.settled_at is None) != (claim.state == "started"):
        return (
            f"{claim.state} in the ledger {'without' if claim.settled_at is None else 'with'} end"
        )
    if seen.code is not None and claim.code != seen.code:
        return f"code {claim.code} in the ledger, {seen.code} in the log"
    return None


def _states(run: Run, seen: CallSeen) -> set[str]:
    """The states that a ledger row may have."""
    if seen.result == "completed":
        return {"succeeded"}
    if seen.result == "failed":
        return {"in_doubt"} if seen.code == "outcome_unknown" else {"failed"}
    if not run.active:
        # Cut off: only what merely reads is certain to have changed nothing.
        return {"cancelled"} if seen.effect == "read" else {"in_doubt"}
    return {"deferred"} if seen.deferred else {"started"}


def check_interactions(fold: Fold, interactions: Iterable[Interaction]) -> str | None:
    """Each question of the log has its row, and the other way round."""
    unseen = set(fold.interactions)
    for row in interactions:
        seen = fold.interactions.get(row.id)
        if seen is None:
            return f"{row.id}: an interaction row without interaction.requested"
        unseen.discard(row.id)
        if (row.kind, row.tool_call_id) != (seen.kind, seen.call_id):
            return f"{row.id}: another kind or call in the row than in the log"
        if row.outcome != seen.outcome or (row.status == "pending") != (seen.outcome is None):
            return f"{row.id}: {row.outcome or row.status} in the row, {seen.outcome} in the log"
    for interaction_id in sorted(unseen):
        return f"{interaction_id}: interaction.requested without a row"
    return None


def check_tasks(fold: Fold, tasks: Iterable[ExternalTask]) -> str | None:
    """Each task of the log has its row, and the other way round."""
    unseen = set(fold.tasks)
    for row in tasks:
        seen = fold.tasks.get(row.task_id)
        if seen is None:
            return f"task {row.task_id}: a task row without external_task.started"
        unseen.discard(row.task_id)
        if row.call_id != seen.call_id:
            return f"task {row.task_id}: another call in the row than in the log"
        if row.state != seen.state:
            return f"task {row.task_id}: {row.state} in the row, {seen.state} in the log"
    for task_id in sorted(unseen):
        return f"task {task_id}: external_task.started without a row"
    return None
