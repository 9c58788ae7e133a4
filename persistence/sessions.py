"""SQL of sessions and their messages: plain functions over a connection.

Source: docs/persistence.md#tables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, bindparam, insert, or_, select, update

from rungent.errors import NotFound
from rungent.identity import Identity
from rungent.persistence.mapping import message_values, session_values, to_message, to_session
from rungent.persistence.tables import messages, sessions
from rungent.records import Message, Session
from rungent.store.port import Commit, Cursor

__all__ = [
    "add_messages",
    "create_session",
    "get_session",
    "list_messages",
    "list_sessions",
    "require_session",
    "set_title",
]

_GROW = (
    update(sessions)
    .where(sessions.c.id == bindparam("session"))
    .values(
        message_count=sessions.c.message_count
        + bindparam("added", type_=sessions.c.message_count.type),
        updated_at=bindparam("moment", type_=sessions.c.updated_at.type),
    )
    .returning(sessions.c.message_count)
)


def create_session(connection: Connection, session: Session) -> None:
    """Insert the row."""
    connection.execute(insert(sessions), session_values(session))


def get_session(connection: Connection, session_id: str) -> Session:
    """The session, or NotFound."""
    row = connection.execute(select(sessions).where(sessions.c.id == session_id)).one_or_none()
    if row is None:
        raise NotFound("There is no such session.")
    return to_session(row)


def require_session(connection: Connection, session_id: str) -> None:
    """NotFound unless the session exists."""
    found = connection.scalar(select(sessions.c.id).where(sessions.c.id == session_id))
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
    c = messages.c
    statement = select(messages).where(c.session_id == session_id, c.position > after)
    statement = statement.order_by(c.position).limit(limit)
    return [to_message(row) for row in connection.execute(statement)]


def add_messages(connection: Connection, commits: Iterable[Commit]) -> None:
    """Append the commits' messages to their sessions.

    The counter of the session gives the positions, so two appenders cannot take the same one.
    Sessions are visited in the order of their ids: two batches never wait for each other in a
    circle.
    """
    rows: list[dict[str, Any]] = []
    writing = sorted((c for c in commits if c.messages), key=lambda c: c.run.session_id)
    for commit in writing:
        grown = {
            "session": commit.run.session_id,
            "added": len(commit.messages),
            "moment": commit.run.updated_at,
        }
        count: int = connection.execute(_GROW, grown).scalar_one()
        first = count - len(commit.messages) + 1
        rows += [message_values(m, first + i) for i, m in enumerate(commit.messages)]
    if rows:
        connection.execute(insert(messages), rows)
