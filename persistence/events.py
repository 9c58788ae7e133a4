"""SQL of the event log: plain functions over a connection.

Source: docs/persistence.md#tables.
"""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, select

from rungent.events import Event
from rungent.persistence.mapping import to_event
from rungent.persistence.tables import events, runs

__all__ = ["list_events"]

_PAGE = (
    select(events, runs.c.session_id)
    .join(runs, runs.c.id == events.c.run_id)
    .where(events.c.run_id == bindparam("run"), events.c.seq > bindparam("after"))
    .order_by(events.c.seq)
    .limit(bindparam("most"))
)


def list_events(connection: Connection, run_id: str, after: int, limit: int) -> list[Event]:
    """Events behind `after`, in order."""
    page = connection.execute(_PAGE, {"run": run_id, "after": after, "most": limit})
    return [to_event(row) for row in page]
