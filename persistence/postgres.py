"""Many rows in few statements on PostgreSQL: one JSON document is the parameter of each.

The server makes typed rows of it. So one round trip serves any number of runs, it is the same for
every driver, and RETURNING names the runs that were still their drives', without a rollback.
Source: docs/persistence.md#group-commit.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache

from pydantic_core import to_json
from sqlalchemy import Connection, Engine, Table, TextClause, text
from sqlalchemy.dialects import postgresql

from rungent.events import Event
from rungent.persistence.bulk import APPENDED, CHANGED, Values, assignments, guard, kept
from rungent.persistence.mapping import event_values
from rungent.persistence.tables import events, runs, sessions

__all__ = ["CHANNEL", "PostgresBulk", "origin", "told_runs"]

CHANNEL = "rungent"
_MOST_BYTES = 7999
_PROCESS = secrets.token_hex(4)


class PostgresBulk:
    """Statements over rows that the server reads from JSON."""

    def change_runs(self, connection: Connection, changes: Sequence[Values]) -> Collection[str]:
        """One statement, which also says whose run was lost."""
        return list(connection.scalars(_CHANGE_RUNS, _document(changes)))

    def append(
        self, connection: Connection, changes: Sequence[Values], added: Sequence[Event]
    ) -> Collection[str]:
        """Change runs and insert the events of those that were changed, whose ids it returns.

        `changes` as for `change_runs`, with the columns of APPENDED. One statement with all that
        belongs to it, so it needs no transaction around.
        """
        documents = _document(changes) | _document(map(event_values, added), "added")
        news = _news(connection, [change["key"] for change in changes])
        return list(connection.scalars(_APPEND, documents | news))

    def grow_sessions(self, connection: Connection, growth: Sequence[Values]) -> dict[str, int]:
        """One statement."""
        grown = connection.execute(_GROW_SESSIONS, _document(growth))
        return {row[0]: row[1] for row in grown}

    def insert(self, connection: Connection, table: Table, rows: list[Values]) -> None:
        """One statement."""
        connection.execute(_insert(table), _document(rows))

    def upsert(self, connection: Connection, table: Table, rows: list[Values]) -> None:
        """One statement, which takes each key only once: the last row of it."""
        key = [column.name for column in table.primary_key.columns]
        latest = {tuple(row[name] for name in key): row for row in rows}
        connection.execute(_upsert(table), _document([*latest.values()]))

    def log(self, connection: Connection, added: Sequence[Event], run_ids: Iterable[str]) -> None:
        """One statement, and one notification, which the server sends at COMMIT."""
        rows = _document(map(event_values, added))
        connection.execute(_LOG, rows | _news(connection, run_ids))


def origin(engine: Engine) -> str:
    """Who tells: a name of this process's engine, by which its own news can be passed over."""
    return f"{_PROCESS}{id(engine.dialect):x}"


def told_runs(payload: str, listener: str) -> list[str | None]:
    """The runs that a notification is about, [None] for any, nothing if `listener` sent it."""
    sender, *run_ids = payload.split(" ")
    if sender == listener:
        return []
    return [*run_ids] or [None]


def _news(connection: Connection, run_ids: Iterable[str]) -> dict[str, str]:
    payload = " ".join([origin(connection.engine), *run_ids])
    if len(payload) > _MOST_BYTES:
        payload = origin(connection.engine)
    return {"channel": CHANNEL, "payload": payload}


def _document(rows: Iterable[Values], name: str = "rows") -> dict[str, str]:
    return {name: to_json([*rows]).decode()}


def _types(table: Table) -> dict[str, str]:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    return {column.name: column.type.compile(dialect) for column in table.columns}


def _given(columns: dict[str, str], document: str = "rows") -> str:
    """The document as rows with these columns and types."""
    typed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    return f"json_to_recordset(CAST(:{document} AS json)) AS given({typed})"


def _one_by_one(table: Table, given: str, condition: str, change: str, returning: str) -> str:
    """A change of the rows that `given.key` names, in that order, where the condition holds.

    Each row is locked before it is judged, so what another transaction did meanwhile counts. The
    inner query keeps the server from any other order or way than one look into the key's index.
    """
    return (
        f"WITH given AS MATERIALIZED (SELECT * FROM {given}), held AS MATERIALIZED"
        f" (SELECT key FROM given CROSS JOIN LATERAL (SELECT FROM {table.name} AS stored"
        f" WHERE stored.id = given.key AND {condition} FOR NO KEY UPDATE) AS locked)"
        f" UPDATE {table.name} AS stored SET {change} FROM held JOIN given USING (key)"
        f" WHERE stored.id = held.key RETURNING {returning}"
    )


def _from_given(column: str) -> str:
    return f"given.{column}"


def _changed(column: str) -> str:
    given, stored = _from_given(column), f"stored.{column}"
    if column in APPENDED:
        return given
    changed = kept(given, stored) if column == "lease_expires_at" else given
    return f"CASE WHEN given.state IS NULL THEN {stored} ELSE {changed} END"


def _update_runs(columns: Iterable[str], given: Callable[[str], str]) -> str:
    types = _types(runs)
    keys = {"key": types["id"], "guard_owner": types["lease_owner"]}
    typed = {name: types[name] for name in columns} | keys
    rows = _given(typed | {"guard_token": types["fencing_token"]})
    condition = guard(_from_given, "stored.")
    return _one_by_one(runs, rows, condition, assignments(columns, given), "stored.id")


def _insert_text(table: Table, document: str = "rows") -> str:
    columns = _types(table)
    names = ", ".join(columns)
    return f"INSERT INTO {table.name} ({names}) SELECT {names} FROM {_given(columns, document)}"


_TELL = "pg_notify(:channel, :payload)"
_LOG = text(f"WITH added AS ({_insert_text(events)}) SELECT {_TELL}")
_CHANGE_RUNS = text(_update_runs(CHANGED, _changed))
_APPEND = text(
    f"WITH changed AS ({_update_runs(APPENDED, _from_given)}), added AS"
    f" ({_insert_text(events, 'added')} WHERE run_id IN (SELECT id FROM changed))"
    f" SELECT id, {_TELL} FROM changed"
)
_GROW_SESSIONS = text(
    _one_by_one(
        sessions,
        _given({"key": "VARCHAR", "added": "INTEGER", "moment": "TIMESTAMP WITH TIME ZONE"}),
        "true",
        "message_count = message_count + given.added, updated_at = given.moment",
        "stored.id, message_count",
    )
)


@cache
def _insert(table: Table) -> TextClause:
    return text(_insert_text(table))


@cache
def _upsert(table: Table) -> TextClause:
    key = ", ".join(column.name for column in table.primary_key.columns)
    others = [column.name for column in table.columns if not column.primary_key]
    values = assignments(others, lambda name: f"excluded.{name}")
    return text(f"{_insert_text(table)} ON CONFLICT ({key}) DO UPDATE SET {values}")
