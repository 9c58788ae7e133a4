"""SQL of transitions: the guarded change of a run, and everything that comes with it.

Every change of a run goes through here: rows of runs first, ordered by id, then sessions,
ordered by id. Keeping that one order is what keeps transactions from deadlocking.
Source: docs/persistence.md#transactions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table, Update, bindparam, case, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from rungent.errors import StaleRun
from rungent.persistence.events import add_events
from rungent.persistence.mapping import (
    changed_values,
    claim_values,
    interaction_values,
    task_values,
)
from rungent.persistence.sessions import add_messages
from rungent.persistence.tables import events, external_tasks, interactions, runs, tool_calls
from rungent.records import Run, RunStatus
from rungent.store.port import Commit

__all__ = ["DriveCommit", "add_parts", "change_run", "commit_all", "commit_each", "is_stored"]


@dataclass(frozen=True, slots=True)
class DriveCommit:
    """A drive's transition and the lease that entitles to it."""

    commit: Commit
    owner: str
    token: int


_CHANGED = (
    "status",
    "event_seq",
    "model_steps",
    "state",
    "failure_code",
    "failure_retryable",
    "lease_owner",
    "lease_expires_at",
    "fencing_token",
    "version",
    "updated_at",
)


def _change() -> Update:
    """The columns that commits change, of the run one version behind."""
    return (
        update(runs)
        .where(
            runs.c.id == bindparam("guard_id"),
            runs.c.version == bindparam("version", type_=runs.c.version.type) - 1,
        )
        .values({name: bindparam(name, type_=runs.c[name].type) for name in _CHANGED})
    )


def _drive_change() -> Update:
    """The same for a drive, which must hold the lease.

    The drive knows the expiry of its lease as it was when it was claimed; renewals are newer.
    """
    expires_at = runs.c.lease_expires_at
    given = bindparam("lease_expires_at", type_=expires_at.type)
    kept = case((or_(given.is_(None), expires_at < given), given), else_=expires_at)
    return (
        _change()
        .where(
            runs.c.status == RunStatus.RUNNING.value,
            runs.c.lease_owner == bindparam("guard_owner"),
            runs.c.fencing_token == bindparam("guard_token"),
        )
        .values(lease_expires_at=kept)
    )


_CHANGE = _change()
_DRIVE_CHANGE = _drive_change()


def change_run(connection: Connection, run: Run) -> None:
    """Store the run's new state. StaleRun unless the stored one is one version behind."""
    values = changed_values(run) | {"guard_id": run.id}
    if connection.execute(_CHANGE, values).rowcount != 1:
        raise StaleRun("The run was changed by somebody else.")


def add_parts(connection: Connection, commits: Sequence[Commit]) -> None:
    """Everything of the commits except the runs themselves."""
    _upsert(connection, tool_calls, [claim_values(x) for c in commits for x in c.claims])
    _upsert(
        connection, interactions, [interaction_values(x) for c in commits for x in c.interactions]
    )
    _upsert(connection, external_tasks, [task_values(x) for c in commits for x in c.tasks])
    add_messages(connection, commits)
    add_events(connection, commits)


def commit_all(connection: Connection, units: Sequence[DriveCommit]) -> bool:
    """Store all units, or say False and leave it to the caller to roll back.

    Two statements for any number of units, where the driver counts the rows of a batch.
    """
    if not connection.dialect.supports_sane_multi_rowcount and len(units) > 1:
        return False
    ordered = sorted(units, key=lambda unit: unit.commit.run.id)
    result = connection.execute(_DRIVE_CHANGE, [_guarded(unit) for unit in ordered])
    if result.rowcount != len(units):
        return False
    add_parts(connection, [unit.commit for unit in ordered])
    return True


def commit_each(connection: Connection, units: Sequence[DriveCommit]) -> list[bool]:
    """Store those units that still hold their run; says which, in the order of `units`."""
    stored = [False] * len(units)
    for index in sorted(range(len(units)), key=lambda i: units[i].commit.run.id):
        result = connection.execute(_DRIVE_CHANGE, _guarded(units[index]))
        stored[index] = result.rowcount == 1
    add_parts(connection, [u.commit for u, done in zip(units, stored, strict=True) if done])
    return stored


def is_stored(connection: Connection, unit: DriveCommit) -> bool:
    """Whether exactly this commit is what the database holds.

    Asked after a failure that may have come too late: a connection that breaks while COMMIT is
    on its way leaves open what happened. Event ids are random, so the last one is proof.
    """
    run = unit.commit.run
    row = connection.execute(
        select(runs.c.version, runs.c.fencing_token, runs.c.updated_at).where(runs.c.id == run.id)
    ).one_or_none()
    if row is None or tuple(row) != (run.version, run.fencing_token, run.updated_at):
        return False
    if not unit.commit.events:
        return True
    last = unit.commit.events[-1].id
    return connection.scalar(select(events.c.id).where(events.c.id == last)) is not None


def _guarded(unit: DriveCommit) -> dict[str, Any]:
    run = unit.commit.run
    return changed_values(run) | {
        "guard_id": run.id,
        "guard_owner": unit.owner,
        "guard_token": unit.token,
    }


def _upsert(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    if rows:
        connection.execute(_upsert_statement(table, connection.dialect.name), rows)


@cache
def _upsert_statement(table: Table, dialect: str) -> postgresql.Insert | sqlite.Insert:
    statement = postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)
    return statement.on_conflict_do_update(
        index_elements=list(table.primary_key.columns),
        set_={c.name: statement.excluded[c.name] for c in table.columns if not c.primary_key},
    )
