"""SQL of buttons, of questions whose time is up, and of those whose end a tool is to be told.

Source: docs/interactive-tools.md.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, select, union_all, update

from rungent.persistence.mapping import to_interaction, to_token
from rungent.persistence.tables import actions, interactions, runs
from rungent.records import ActionToken, Interaction

__all__ = ["due_statement", "find_token", "list_due", "take_closing"]


def find_token(connection: Connection, token_hash: str) -> ActionToken | None:
    """The button with this hash of its token."""
    statement = select(actions).where(actions.c.token_hash == token_hash)
    row = connection.execute(statement).one_or_none()
    return None if row is None else to_token(row)


def list_due(
    connection: Connection, agent_names: Collection[str], now: datetime, limit: int
) -> list[Interaction]:
    """Pending interactions whose time is up, and those that are to be closed."""
    statement = due_statement(agent_names, now, limit)
    return [to_interaction(row) for row in connection.execute(statement)]


def due_statement(agent_names: Collection[str], now: datetime, limit: int) -> Select[Any]:
    """Two looks into two indexes: a condition with OR would read the table."""
    c = interactions.c
    ids = union_all(
        select(c.id).where(c.status == "pending", c.expires_at <= now),
        # SQLite has an index for this, but not for IS NOT NULL.
        select(c.id).where(c.closing > ""),
    )
    return (
        select(interactions)
        .join(runs, runs.c.id == c.run_id)
        .where(c.id.in_(ids), runs.c.agent_name.in_(list(agent_names)))
        .limit(limit)
    )


def take_closing(connection: Connection, interaction_id: str) -> bool:
    """Clear the reason; whether there was one."""
    c = interactions.c
    taking = update(interactions).where(c.id == interaction_id, c.closing.is_not(None))
    return connection.execute(taking.values(closing=None)).rowcount == 1
