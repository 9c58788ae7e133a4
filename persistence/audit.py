"""Reading stored runs to verify them: one snapshot a run, long lists in pages.

Source: docs/operating.md#verify.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from sqlalchemy import Connection, Engine, Row, Table, func, select
from typing_extensions import override

from rungent.persistence.mapping import to_claim, to_interaction, to_message, to_run, to_task
from rungent.persistence.tables import (
    events,
    external_tasks,
    interactions,
    messages,
    runs,
    tool_calls,
)
from rungent.records import ExternalTask, Interaction, Message, Run, ToolClaim
from rungent.verify import StoredRun, first_violation

__all__ = ["audit_run", "count_runs", "list_run_ids", "missing_runs"]

PAGE = 500
_BEFORE_ALL = -(2**31)


def count_runs(engine: Engine) -> int:
    """How many runs are stored."""
    with engine.connect() as connection:
        return connection.scalar(select(func.count()).select_from(runs)) or 0


def list_run_ids(engine: Engine, after: str, limit: int) -> list[str]:
    """Ids behind `after`, in their order."""
    statement = select(runs.c.id).where(runs.c.id > after).order_by(runs.c.id).limit(limit)
    with engine.connect() as connection:
        return list(connection.scalars(statement))


def missing_runs(engine: Engine, run_ids: Collection[str]) -> list[str]:
    """Those of the ids that name no run."""
    with engine.connect() as connection:
        known = set(connection.scalars(select(runs.c.id).where(runs.c.id.in_(list(run_ids)))))
    return [run_id for run_id in run_ids if run_id not in known]


def audit_run(engine: Engine, run_id: str) -> str | None:
    """What is wrong first with a run, None if all is well or if it is gone.

    Everything is read as of one moment, so workers may go on meanwhile.
    """
    with engine.connect() as connection:
        snapshot = _snapshot(connection)
        if snapshot.scalar(select(runs.c.id).where(runs.c.id == run_id)) is None:
            return None
        return first_violation(_RunRows(snapshot, run_id))


def _snapshot(connection: Connection) -> Connection:
    if connection.dialect.name == "postgresql":
        return connection.execution_options(isolation_level="REPEATABLE READ")
    driver: Any = connection.connection.driver_connection
    if not driver.in_transaction:
        # The driver begins before writes only; without it every statement has a moment of its own.
        connection.exec_driver_sql("BEGIN")
    return connection


class _RunRows(StoredRun):
    """The rows of one run on a connection that sees one moment."""

    def __init__(self, connection: Connection, run_id: str) -> None:
        self._connection = connection
        self._run_id = run_id

    @override
    def run(self) -> Run:
        statement = select(runs).where(runs.c.id == self._run_id)
        return to_run(self._connection.execute(statement).one())

    @override
    def events(self) -> Iterator[tuple[int, str, Any]]:
        for row in self._pages(events, "seq"):
            yield row.seq, row.type, row.data

    @override
    def messages(self) -> Iterator[Message]:
        return map(to_message, self._pages(messages, "position"))

    @override
    def claims(self) -> Iterator[ToolClaim]:
        return map(to_claim, self._all(tool_calls))

    @override
    def interactions(self) -> Iterator[Interaction]:
        return map(to_interaction, self._all(interactions))

    @override
    def tasks(self) -> Iterator[ExternalTask]:
        return map(to_task, self._all(external_tasks))

    def _pages(self, table: Table, number: str) -> Iterator[Row[Any]]:
        """The run's rows of a table by their number, a page at a time."""
        column, last = table.c[number], _BEFORE_ALL
        mine = select(table).where(table.c.run_id == self._run_id).order_by(column).limit(PAGE)
        while True:
            page = self._connection.execute(mine.where(column > last)).all()
            yield from page
            if len(page) < PAGE:
                return
            last = getattr(page[-1], number)

    def _all(self, table: Table) -> Iterator[Row[Any]]:
        found = select(table).where(table.c.run_id == self._run_id)
        return iter(self._connection.execute(found).all())
