"""SQL of run creation and retry: every rule that may forbid a run, in one transaction.

Source: docs/persistence.md#transactions.
"""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, insert, or_, select

from rungent.errors import (
    ActiveRunConflict,
    IdempotencyKeyReused,
    NotFound,
    RungentError,
    RunNotRetryable,
)
from rungent.persistence.commits import add_parts, change_run
from rungent.persistence.mapping import run_values, to_run
from rungent.persistence.sessions import require_session
from rungent.persistence.tables import IS_ACTIVE, messages, runs, sessions
from rungent.records import Run, RunStatus
from rungent.store.port import Commit, Created, Creation

__all__ = ["create_run", "is_created"]

_CREATE = insert(runs)
# With the very words of the partial index, which a database uses only when it recognises them.
_ACTIVE_RUN = select(runs).where(runs.c.session_id == bindparam("session"), IS_ACTIVE)
_LOCKED_ACTIVE_RUN = _ACTIVE_RUN.with_for_update()


def create_run(connection: Connection, creation: Creation) -> Created:
    """Create the run unless a rule forbids it.

    Two creators that cannot see each other meet at a unique index: the loser gets an
    IntegrityError and is expected to ask again, and then sees the winner.
    """
    run = creation.commit.run
    require_session(connection, run.session_id)
    obstacle = _retry_obstacle(connection, creation)
    active = _active_run(connection, creation)
    # Read last, because every statement may see more than the one before: a run that stands in
    # the way by now must be recognised as this very request's, if it is.
    earlier = _same_key(connection, run)
    if earlier is not None:
        if earlier.request_digest != run.request_digest:
            raise IdempotencyKeyReused(earlier.id)
        return Created(earlier, replayed=True)
    if obstacle is not None:
        raise obstacle
    replaced = _replacement(active, creation)
    if creation.refusal is not None:
        raise creation.refusal
    if replaced is not None:
        change_run(connection, replaced.run)
        add_parts(connection, [replaced])
    connection.execute(_CREATE, run_values(run))
    counts = add_parts(connection, [creation.commit])
    return Created(run, replaced=replaced, position=counts.get(run.session_id))


def is_created(connection: Connection, created: Created) -> bool:
    """Whether the run that was to be created exists.

    Its creation may still be under way on the server: the lock of the session waits for that.
    """
    run = created.run
    connection.execute(
        select(sessions.c.id).where(sessions.c.id == run.session_id).with_for_update()
    )
    return connection.scalar(select(runs.c.id).where(runs.c.id == run.id)) is not None


def _same_key(connection: Connection, run: Run) -> Run | None:
    if run.idempotency_key is None:
        return None
    statement = select(runs).where(
        runs.c.session_id == run.session_id, runs.c.idempotency_key == run.idempotency_key
    )
    row = connection.execute(statement).one_or_none()
    return None if row is None else to_run(row)


def _retry_obstacle(connection: Connection, creation: Creation) -> RungentError | None:
    """Why the run cannot be retried: it must have failed retryably and be its session's newest.

    Newest is a matter of the transcript, not of clocks, which differ between workers: no other
    run retried this one, and none answers a later message.
    """
    if creation.retry_of is None:
        return None
    session_id = creation.commit.run.session_id
    statement = select(runs).where(runs.c.id == creation.retry_of, runs.c.session_id == session_id)
    row = connection.execute(statement).one_or_none()
    if row is None:
        return NotFound("There is no such run.")
    run = to_run(row)
    asked = messages.alias()
    place = select(asked.c.position).where(asked.c.id == run.input_message_id).scalar_subquery()
    newer = (
        select(runs.c.id)
        .outerjoin(messages, messages.c.id == runs.c.input_message_id)
        .where(
            runs.c.session_id == session_id,
            or_(runs.c.retried_from == run.id, messages.c.position > place),
        )
        .limit(1)
    )
    failed = run.status is RunStatus.FAILED and run.failure_retryable is True
    if not failed or connection.scalar(newer) is not None:
        return RunNotRetryable(run.status)
    return None


def _active_run(connection: Connection, creation: Creation) -> Run | None:
    statement = _ACTIVE_RUN if creation.replace_waiting is None else _LOCKED_ACTIVE_RUN
    given = {"session": creation.commit.run.session_id}
    row = connection.execute(statement, given).one_or_none()
    return None if row is None else to_run(row)


def _replacement(active: Run | None, creation: Creation) -> Commit | None:
    """What ends the session's waiting run, if asked for. ActiveRunConflict for any other one."""
    if active is None:
        return None
    if creation.replace_waiting is None or active.status is not RunStatus.WAITING_INPUT:
        raise ActiveRunConflict(active.id, active.status)
    return creation.replace_waiting(active)
