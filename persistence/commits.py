"""SQL of transitions: the guarded change of a run, and everything that comes with it.

Every change of a run goes through here: rows of runs first, ordered by id, then sessions,
ordered by id. Keeping that one order is what keeps transactions from deadlocking.
Source: docs/persistence.md#transactions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select, update

from rungent.errors import StaleRun
from rungent.persistence.autocommit import commits_itself
from rungent.persistence.bulk import CHANGED, Bulk, Contested, SqliteBulk, Values
from rungent.persistence.mapping import (
    appended_values,
    changed_values,
    claim_values,
    interaction_values,
    task_values,
    token_values,
)
from rungent.persistence.postgres import PostgresBulk
from rungent.persistence.sessions import add_messages
from rungent.persistence.tables import (
    actions,
    events,
    external_tasks,
    interactions,
    runs,
    tool_calls,
)
from rungent.records import Run
from rungent.store.port import Commit

__all__ = [
    "DriveCommit",
    "add_parts",
    "append_all",
    "change_run",
    "commit_all",
    "commit_each",
    "is_append",
    "is_stored",
]


@dataclass(frozen=True, slots=True)
class DriveCommit:
    """A drive's transition and the lease that entitles to it.

    `repeated` when an earlier attempt may have stored it without anybody learning so.
    """

    commit: Commit
    owner: str
    token: int
    repeated: bool = False


_SQLITE = SqliteBulk()
_POSTGRES = PostgresBulk()
_CHANGE = (
    update(runs)
    .where(
        runs.c.id == bindparam("guard_id"),
        runs.c.version == bindparam("version", type_=runs.c.version.type) - 1,
    )
    .values({name: bindparam(name, type_=runs.c[name].type) for name in CHANGED})
)


def change_run(connection: Connection, run: Run) -> None:
    """Store the run's new state. StaleRun unless the stored one is one version behind."""
    values = changed_values(run) | {"guard_id": run.id}
    if connection.execute(_CHANGE, values).rowcount != 1:
        raise StaleRun("The run was changed by somebody else.")


def add_parts(connection: Connection, commits: Sequence[Commit]) -> Mapping[str, int]:
    """Everything of the commits except the runs themselves, and word of it to other processes.

    Returns how many messages the sessions that got some have now.
    """
    bulk = _bulk(connection)
    for table, rows in (
        (tool_calls, [claim_values(x) for c in commits for x in c.claims]),
        (interactions, [interaction_values(x) for c in commits for x in c.interactions]),
        (external_tasks, [task_values(x) for c in commits for x in c.tasks]),
        (actions, [token_values(x) for c in commits for x in c.tokens]),
    ):
        if rows:
            bulk.upsert(connection, table, rows)
    counts = add_messages(connection, bulk, commits)
    added = [event for commit in commits for event in commit.events]
    bulk.log(connection, added, [commit.run.id for commit in commits])
    return counts


def commit_all(connection: Connection, units: Sequence[DriveCommit]) -> list[bool]:
    """Store those units that still hold their run; says which, in the order of `units`.

    A few statements for any number of units. Contested where the database cannot tell which.
    """
    stored = [False] * len(units)
    bulk = _bulk(connection)
    for wave in _waves(units):
        changed = set(bulk.change_runs(connection, [_guarded(units[i]) for i in wave]))
        for index in wave:
            stored[index] = units[index].commit.run.id in changed
    done = [unit.commit for unit, kept in zip(units, stored, strict=True) if kept]
    if done:
        add_parts(connection, done)
    return [
        kept or (unit.repeated and is_stored(connection, unit.commit))
        for unit, kept in zip(units, stored, strict=True)
    ]


def is_append(connection: Connection, units: Sequence[DriveCommit]) -> bool:
    """Whether `append_all` can store the units: nothing but events, and each run once."""
    return (
        connection.dialect.name == "postgresql"
        and all(not unit.repeated and unit.commit.only_events for unit in units)
        and len({unit.commit.run.id for unit in units}) == len(units)
    )


def append_all(connection: Connection, units: Sequence[DriveCommit]) -> list[bool]:
    """Store those units that still hold their run; says which.

    One statement, which commits itself where it can: when the connection breaks meanwhile, the
    units may be stored.
    """
    ordered = sorted(units, key=lambda unit: unit.commit.run.id)
    added = [event for unit in ordered for event in unit.commit.events]
    with commits_itself(connection):
        changed = set(_POSTGRES.append(connection, [*map(_guarded, ordered)], added))
    return [unit.commit.run.id in changed for unit in units]


def commit_each(connection: Connection, units: Sequence[DriveCommit]) -> list[bool]:
    """The same with some statements for each unit, on every database."""
    return [_commit_one(connection, unit) for unit in units]


def _commit_one(connection: Connection, unit: DriveCommit) -> bool:
    try:
        return commit_all(connection, [unit])[0]
    except Contested:
        return unit.repeated and is_stored(connection, unit.commit)


def is_stored(connection: Connection, commit: Commit) -> bool:
    """Whether exactly this commit was stored.

    Asked after a failure that may have come too late: a connection that breaks while COMMIT is
    on its way leaves open what happened, and the server may still be at it, which the lock of
    the run waits for. Event ids are random, so the last one is proof, whatever came after it.
    """
    run = commit.run
    row = connection.execute(
        select(runs.c.version, runs.c.fencing_token, runs.c.updated_at)
        .where(runs.c.id == run.id)
        .with_for_update()
    ).one_or_none()
    if commit.events:
        last = commit.events[-1].id
        return connection.scalar(select(events.c.id).where(events.c.id == last)) is not None
    return row is not None and tuple(row) == (run.version, run.fencing_token, run.updated_at)


def _bulk(connection: Connection) -> Bulk:
    return _POSTGRES if connection.dialect.name == "postgresql" else _SQLITE


def _waves(units: Sequence[DriveCommit]) -> Iterator[list[int]]:
    """The places of the units, ordered by run; further units of one run come in later waves."""
    run_ids = [unit.commit.run.id for unit in units]
    waiting: list[int] = sorted(range(len(units)), key=run_ids.__getitem__)
    while waiting:
        wave: dict[str, int] = {}
        for index in waiting:
            wave.setdefault(run_ids[index], index)
        yield [*wave.values()]
        waiting = [index for index in waiting if wave[run_ids[index]] != index]


def _guarded(unit: DriveCommit) -> Values:
    run = unit.commit.run
    values = appended_values(run) if unit.commit.appends else changed_values(run)
    values["key"] = run.id
    values["guard_owner"] = unit.owner
    values["guard_token"] = unit.token
    return values
