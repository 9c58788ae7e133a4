"""What a claim changes: decisions for runs that nobody drives."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from rungent._drive.seal import seal
from rungent._lifecycle.transition import Transition, with_state
from rungent.events import Draft
from rungent.records import Lease, Run, RunStatus
from rungent.store.port import Commit

__all__ = ["claimed", "started"]


def started(run: Run, lease: Lease) -> Transition:
    """A new or queued run begins to run under a lease."""
    running = run.model_copy(
        update={
            "status": RunStatus.RUNNING,
            "lease": lease,
            "fencing_token": run.fencing_token + 1,
        }
    )
    return Transition(running, (Draft("run.started", {"status": "running"}),))


def claimed(lease: Lease, now: datetime) -> Callable[[Run], Commit]:
    """Take over a queued run, or a running one whose worker is gone."""

    def decide(run: Run) -> Commit:
        if run.status is RunStatus.QUEUED:
            return seal(started(run, lease), now)
        taken = with_state(run, recoveries=run.state.recoveries + 1).model_copy(
            update={"lease": lease, "fencing_token": run.fencing_token + 1}
        )
        return seal(Transition(taken), now)

    return decide
