"""SQL of runs, leases, the ledger, interactions and tasks: plain functions over a connection.

Source: docs/persistence.md#transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    or_,
    select,
    tuple_,
    update,
)

from rungent.errors import NotFound, StaleRun
from rungent.persistence.commits import add_parts, change_run, is_stored
from rungent.persistence.mapping import to_claim, to_interaction, to_run, to_task
from rungent.persistence.tables import external_tasks, interactions, runs, tool_calls
from rungent.records import ExternalTask, Interaction, Run, RunStatus, ToolClaim
from rungent.store.port import Commit, Cursor, Decision

__all__ = [
    "Decided",
    "claim_run",
    "decide",
    "find_interaction",
    "find_task",
    "get_interaction",
    "get_run",
    "is_decided",
    "is_released",
    "list_claimable",
    "list_claims",
    "list_runs",
    "release_lease",
    "renew_lease",
]

# Made once: SQLAlchemy takes longer to put a statement together than to run it.
_RUN = select(runs).where(runs.c.id == bindparam("run"))
_LOCKED_RUN = _RUN.with_for_update()


def get_run(connection: Connection, run_id: str) -> Run:
    """The run, or NotFound."""
    return _one_run(connection, _RUN, run_id)


def list_runs(
    connection: Connection, session_id: str, limit: int, after: Cursor | None
) -> list[Run]:
    """One page, oldest first."""
    c = runs.c
    statement = select(runs).where(c.session_id == session_id)
    if after is not None:
        moment, last = after
        statement = statement.where(
            or_(c.created_at > moment, and_(c.created_at == moment, c.id > last))
        )
    statement = statement.order_by(c.created_at, c.id).limit(limit)
    return [to_run(row) for row in connection.execute(statement)]


def list_claimable(
    connection: Connection, agent_names: Collection[str], owner: str, now: datetime, limit: int
) -> list[Run]:
    """Runs that `owner` may claim, oldest first."""
    statement = (
        select(runs)
        .where(_claimable(owner, now), runs.c.agent_name.in_(list(agent_names)))
        .order_by(runs.c.created_at, runs.c.id)
        .limit(limit)
    )
    return [to_run(row) for row in connection.execute(statement)]


@dataclass(frozen=True, slots=True)
class Decided:
    """A run as a decision left it, and what was committed for that."""

    run: Run
    commit: Commit | None


def claim_run(
    connection: Connection, run_id: str, owner: str, now: datetime, think: Decision
) -> Decided:
    """Commit the decision if `owner` may claim the run; else StaleRun, or NotFound.

    Many workers try the same runs at once. Who comes second does not wait to see the first win;
    only for the run's own worker, whose lease may just be being renewed, waiting is worthwhile.
    """
    statement = select(runs).where(runs.c.id == run_id, _claimable(owner, now))
    row = connection.execute(statement.with_for_update(skip_locked=True)).one_or_none()
    if row is None:
        lease = get_run(connection, run_id).lease
        if lease is not None and lease.owner == owner:
            row = connection.execute(statement.with_for_update()).one_or_none()
    if row is None:
        raise StaleRun("The run cannot be claimed.")
    return _commit(connection, to_run(row), think)


def decide(connection: Connection, run_id: str, think: Decision) -> Decided:
    """Commit `think(run)` for the locked run and return the run as it is then."""
    run = _one_run(connection, _LOCKED_RUN, run_id)
    return _commit(connection, run, think)


def is_decided(connection: Connection, decided: Decided) -> bool:
    """Whether the decision's commit was stored."""
    return decided.commit is None or is_stored(connection, decided.commit)


def get_interaction(connection: Connection, interaction_id: str) -> Interaction:
    """The interaction, or NotFound."""
    statement = select(interactions).where(interactions.c.id == interaction_id)
    row = connection.execute(statement).one_or_none()
    if row is None:
        raise NotFound("There is no such interaction.")
    return to_interaction(row)


def find_interaction(
    connection: Connection, run_id: str, interaction_id: str
) -> Interaction | None:
    """The interaction if it is the run's."""
    c = interactions.c
    statement = select(interactions).where(c.id == interaction_id, c.run_id == run_id)
    row = connection.execute(statement).one_or_none()
    return None if row is None else to_interaction(row)


def find_task(connection: Connection, run_id: str, task_id: str) -> ExternalTask | None:
    """The run's task of this id."""
    c = external_tasks.c
    statement = select(external_tasks).where(c.run_id == run_id, c.task_id == task_id)
    row = connection.execute(statement).one_or_none()
    return None if row is None else to_task(row)


def list_claims(connection: Connection, run_id: str) -> list[ToolClaim]:
    """Ledger rows of the run, oldest first."""
    c = tool_calls.c
    statement = select(tool_calls).where(c.run_id == run_id)
    statement = statement.order_by(c.started_at.nulls_last(), c.call_id)
    return [to_claim(row) for row in connection.execute(statement)]


def renew_lease(
    connection: Connection, tokens: Mapping[str, int], owner: str, expires_at: datetime
) -> set[str]:
    """Extend the leases that `owner` holds under these tokens; the ids of those."""
    held = (
        select(runs.c.id)
        .where(
            tuple_(runs.c.id, runs.c.fencing_token).in_(list(tokens.items())),
            runs.c.lease_owner == owner,
        )
        # The one order of all transactions; a batch of commits may hold some of these rows.
        .order_by(runs.c.id)
        .with_for_update()
    )
    statement = (
        update(runs)
        .where(runs.c.id.in_(held), runs.c.lease_owner == owner)
        .values(lease_expires_at=expires_at)
        .returning(runs.c.id)
    )
    return set(connection.scalars(statement))


def release_lease(connection: Connection, run_id: str, owner: str, token: int) -> bool:
    """Clear the lease if it is still held; whether it was."""
    c = runs.c
    statement = (
        update(runs)
        .where(c.id == run_id, c.lease_owner == owner, c.fencing_token == token)
        .values(lease_owner=None, lease_expires_at=None)
    )
    return connection.execute(statement).rowcount == 1


def is_released(connection: Connection, released: bool, run_id: str, token: int) -> bool:
    """Whether the lease that was to be cleared is."""
    c = runs.c
    statement = select(c.id).where(
        c.id == run_id, c.fencing_token == token, c.lease_owner.is_(None)
    )
    found = connection.execute(statement.with_for_update()).one_or_none()
    return not released or found is not None


def _commit(connection: Connection, run: Run, think: Callable[[Run], Commit | None]) -> Decided:
    commit = think(run)
    if commit is None:
        return Decided(run, None)
    change_run(connection, commit.run)
    add_parts(connection, [commit])
    return Decided(commit.run, commit)


def _one_run(connection: Connection, statement: Select[Any], run_id: str) -> Run:
    row = connection.execute(statement, {"run": run_id}).one_or_none()
    if row is None:
        raise NotFound("There is no such run.")
    return to_run(row)


def _claimable(owner: str, now: datetime) -> ColumnElement[bool]:
    c = runs.c
    free = or_(c.lease_expires_at.is_(None), c.lease_expires_at <= now)
    return or_(
        and_(c.status == RunStatus.QUEUED.value, or_(free, c.lease_owner == owner)),
        and_(c.status == RunStatus.RUNNING.value, free),
    )
