"""SQL of sessions and their messages: plain functions over a connection.

Source: docs/persistence.md#tables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from sqlalchemy import Connection, and_, bindparam, insert, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from rungent.errors import NotFound
from rungent.identity import Identity
from rungent.persistence.bulk import Bulk, Values
from rungent.persistence.mapping import message_values, session_values, to_message, to_session
from rungent.persistence.tables import messages, sessions
from rungent.records import Message, Session
from rungent.store.port import Commit, Cursor

__all__ = [
    "add_messages",
    "create_session",
    "ensure_session",
    "get_session",
    "list_messages",
    "list_sessions",
    "require_session",
    "set_title",
]

# Made once: SQLAlchemy takes longer to put a statement together than to run it.
_SESSION = select(sessions).where(sessions.c.id == bindparam("session"))
_SESSION_ID = select(sessions.c.id).where(sessions.c.id == bindparam("session"))
_TRANSCRIPT = (
    select(messages)
    .where(messages.c.session_id == bindparam("session"), messages.c.position > bindparam("after"))
    .order_by(messages.c.position)
)
_CREATE = insert(sessions)


def create_session(connection: Connection, session: Session) -> None:
    """Insert the row."""
    connection.execute(_CREATE, session_values(session))


def ensure_session(connection: Connection, session: Session) -> bool:
    """Insert the row unless it is there; then it is."""
    values = session_values(session)
    if connection.dialect.name == "postgresql":
        connection.execute(postgresql.insert(sessions).on_conflict_do_nothing(), values)
    else:
        connection.execute(sqlite.insert(sessions).on_conflict_do_nothing(), values)
    return True


def get_session(connection: Connection, session_id: str) -> Session:
    """The session, or NotFound."""
    row = connection.execute(_SESSION, {"session": session_id}).one_or_none()
    if row is None:
        raise NotFound("There is no such session.")
    return to_session(row)


def require_session(connection: Connection, session_id: str) -> None:
    """NotFound unless the session exists."""
    found = connection.scalar(_SESSION_ID, {"session": session_id})
    if found is None:
        raise NotFound("There is no such session.")


def list_sessions(
    connection: Connection,
    owner: Identity,
    agent_names: Collection[str],
    limit: int,
    after: Cursor | None,
) -> list[Session]:
    """One page, newest first."""
    c = sessions.c
    statement = select(sessions).where(
        c.subject_id == owner.subject_id,
        # `== None` is IS NULL: an owner without tenant owns only what has none.
        c.tenant_id == owner.tenant_id,
        c.agent_name.in_(list(agent_names)),
    )
    if after is not None:
        moment, last = after
        statement = statement.where(
            or_(c.updated_at < moment, and_(c.updated_at == moment, c.id < last))
        )
    statement = statement.order_by(c.updated_at.desc(), c.id.desc()).limit(limit)
    return [to_session(row) for row in connection.execute(statement)]


def set_title(connection: Connection, session_id: str, title: str | None, now: datetime) -> Session:
    """The session with its new title, or NotFound."""
    row = connection.execute(
        update(sessions)
        .where(sessions.c.id == session_id)
        .values(title=title, updated_at=now)
        .returning(*sessions.c)
    ).one_or_none()
    if row is None:
        raise NotFound("There is no such session.")
    return to_session(row)


def list_messages(
    connection: Connection, session_id: str, after: int, limit: int | None
) -> list[Message]:
    """Messages behind a position, in order."""
    given = {"session": session_id, "after": after}
    if limit is None:
        return [to_message(row) for row in connection.execute(_TRANSCRIPT, given)]
    return [to_message(row) for row in connection.execute(_TRANSCRIPT.limit(limit), given)]


def add_messages(
    connection: Connection, bulk: Bulk, commits: Iterable[Commit]
) -> Mapping[str, int]:
    """Append the commits' messages to their sessions; how many those have now.

    The counter of the session gives the positions, so two appenders cannot take the same one.
    Sessions are visited in the order of their ids: two batches never wait for each other in a
    circle.
    """
    added: dict[str, list[Message]] = {}
    moments: dict[str, datetime] = {}
    for commit in commits:
        if commit.messages:
            added.setdefault(commit.run.session_id, []).extend(commit.messages)
            moments[commit.run.session_id] = commit.run.updated_at
    if not added:
        return {}
    counts = bulk.grow_sessions(
        connection,
        [
            {"key": session_id, "added": len(added[session_id]), "moment": moments[session_id]}
            for session_id in sorted(added)
        ],
    )
    rows: list[Values] = []
    for session_id, new in added.items():
        first = counts[session_id] - len(new) + 1
        rows += [message_values(message, first + i) for i, message in enumerate(new)]
    bulk.insert(connection, messages, rows)
    return counts
