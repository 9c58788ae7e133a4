"""Many rows in few statements: the way SQLite likes it, and the port that PostgreSQL also fills.

The statements are text, made once for a table. Source: docs/persistence.md#group-commit.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, Protocol

from pydantic_core import to_json
from sqlalchemy import JSON, Connection, Table, select

from rungent.events import Event
from rungent.persistence.driver import Row, change, fetch
from rungent.persistence.tables import UtcDateTime, events, runs, sessions, time_text

__all__ = [
    "APPENDED",
    "CHANGED",
    "Bulk",
    "Contested",
    "SqliteBulk",
    "Values",
    "assignments",
    "guard",
    "kept",
]

Values = dict[str, Any]

CHANGED = (
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
"""The columns of a run that commits change."""

APPENDED = ("event_seq", "version", "updated_at")
"""The columns that change with every commit: all of them where only the log grows."""

CAN_RETURN = sqlite3.sqlite_version_info >= (3, 35)
"""Whether SQLite knows RETURNING."""


class Contested(Exception):
    """Not every run of a batch is still its drive's, and it cannot be said which: roll back."""


class Bulk(Protocol):
    """What is done for many runs at once. Every row has all columns of its table."""

    def change_runs(self, connection: Connection, changes: Sequence[Values]) -> Collection[str]:
        """Change the runs that are still their drives'; their ids, or Contested.

        `changes` are ordered by run, each run once: the columns CHANGED, or only those of
        APPENDED, and `key`, `guard_owner` and `guard_token`.
        """
        ...

    def grow_sessions(self, connection: Connection, growth: Sequence[Values]) -> dict[str, int]:
        """Add `added` messages to each session `key` at `moment`; the new counts.

        `growth` is ordered by session, each session once.
        """
        ...

    def insert(self, connection: Connection, table: Table, rows: list[Values]) -> None:
        """Insert the rows."""
        ...

    def upsert(self, connection: Connection, table: Table, rows: list[Values]) -> None:
        """Insert the rows, or replace those of the same key."""
        ...

    def log(self, connection: Connection, added: Sequence[Event], run_ids: Iterable[str]) -> None:
        """Insert events, and once that is committed tell other processes of news of these runs."""
        ...


def kept(given: str, stored: str) -> str:
    """The later expiry of a lease that stays: renewals are newer than what its drive knows."""
    return f"CASE WHEN {given} IS NULL OR {stored} < {given} THEN {given} ELSE {stored} END"


def assignments(columns: Iterable[str], given: Callable[[str], str]) -> str:
    """The SET clause that takes each column from `given(column)`."""
    return ", ".join(f"{name} = {given(name)}" for name in columns)


def guard(given: Callable[[str], str], table: str = "") -> str:
    """The condition that a drive still owns the run, one version behind."""
    return (
        f"{table}version = {given('version')} - 1"
        f" AND {table}status = 'running' AND {table}lease_owner = {given('guard_owner')}"
        f" AND {table}fencing_token = {given('guard_token')}"
    )


class SqliteBulk:
    """Prepared statements that the driver runs once for each row."""

    def change_runs(self, connection: Connection, changes: Sequence[Values]) -> Collection[str]:
        """All of them, or Contested."""
        groups: dict[_Statement, list[Values]] = {}
        for each in changes:
            groups.setdefault(_update_for(each), []).append(each)
        stored = sum(statement.run(connection, rows) for statement, rows in groups.items())
        if stored != len(changes) and (advancing := groups.get(_ADVANCE_RUNS)):
            # Whose lease is a newer one was passed over, and is still one version behind.
            stored += _CHANGE_RUNS.run(connection, advancing)
        if stored != len(changes):
            raise Contested
        return [each["key"] for each in changes]

    def grow_sessions(self, connection: Connection, growth: Sequence[Values]) -> dict[str, int]:
        """Grow, and look: nobody else can write in between."""
        if len(growth) == 1 and CAN_RETURN:
            [grown] = fetch(connection, _GROW_SESSION.text, _GROW_SESSION.row(growth[0]))
            return {growth[0]["key"]: grown[0]}
        _GROW_SESSIONS.run(connection, growth)
        wanted = sessions.c.id.in_([each["key"] for each in growth])
        counts = connection.execute(select(sessions.c.id, sessions.c.message_count).where(wanted))
        return {row[0]: row[1] for row in counts}

    def insert(self, connection: Connection, table: Table, rows: list[Values]) -> None:
        """Insert the rows."""
        _insert(table).run(connection, rows)

    def upsert(self, connection: Connection, table: Table, rows: list[Values]) -> None:
        """Insert or replace the rows."""
        _upsert(table).run(connection, rows)

    def log(self, connection: Connection, added: Sequence[Event], run_ids: Iterable[str]) -> None:
        """Insert the events; whoever wants to know looks at the file."""
        if added:
            change(connection, _INSERT_EVENTS, [_event_row(event) for event in added])


Encoder = Callable[[Any], Any]


class _Statement:
    """A statement whose `{name}` are values of a row, encoded as the driver takes them."""

    def __init__(self, template: str, encoders: Mapping[str, Encoder]) -> None:
        names = list(dict.fromkeys(re.findall(r"\{(\w+)\}", template)))
        self.text = template.format_map({name: f"?{at}" for at, name in enumerate(names, 1)})
        self._pick = itemgetter(*names)
        self._encoded = [(at, encoders[name]) for at, name in enumerate(names) if name in encoders]

    def row(self, values: Values) -> Row:
        """The parameters for one row."""
        picked = [*self._pick(values)]
        for at, encode in self._encoded:
            if picked[at] is not None:
                picked[at] = encode(picked[at])
        return tuple(picked)

    def run(self, connection: Connection, rows: Sequence[Values]) -> int:
        """How many stored rows it changed."""
        return change(connection, self.text, [self.row(row) for row in rows])


def _named(column: str) -> str:
    return f"{{{column}}}"


def _changed(column: str) -> str:
    given = _named(column)
    return kept(given, column) if column == "lease_expires_at" else given


def _json_text(value: Any) -> str:
    return to_json(value).decode()


@cache
def _encoders(table: Table) -> dict[str, Encoder]:
    """What turns the values of some columns into what the driver takes."""
    encoders: dict[str, Encoder] = {}
    for column in table.columns:
        if isinstance(column.type, UtcDateTime):
            encoders[column.name] = time_text
        elif isinstance(column.type, JSON):
            encoders[column.name] = _json_text
    return encoders


def _insert_text(table: Table) -> str:
    names = [column.name for column in table.columns]
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join(map(_named, names))})"


@cache
def _insert(table: Table) -> _Statement:
    return _Statement(_insert_text(table), _encoders(table))


@cache
def _upsert(table: Table) -> _Statement:
    key = ", ".join(column.name for column in table.primary_key.columns)
    others = [column.name for column in table.columns if not column.primary_key]
    values = assignments(others, lambda name: f"excluded.{name}")
    text = f"{_insert_text(table)} ON CONFLICT ({key}) DO UPDATE SET {values}"
    return _Statement(text, _encoders(table))


def _update_runs(columns: Iterable[str], condition: str = "") -> _Statement:
    return _Statement(
        f"UPDATE {runs.name} SET {assignments(columns, _changed)}"
        f" WHERE id = {{key}} AND {guard(_named)}{condition}",
        _encoders(runs),
    )


_CHANGE_RUNS = _update_runs(CHANGED)
_APPEND_RUNS = _update_runs(APPENDED)
# What the guard knows is not set: SQLite would write every index of these columns anew.
_ADVANCE_RUNS = _update_runs(
    (*APPENDED, "model_steps", "state"), " AND lease_expires_at >= {lease_expires_at}"
)


def _update_for(change: Values) -> _Statement:
    """The statement that leaves alone what the change does not touch."""
    if "state" not in change:
        return _APPEND_RUNS
    return _ADVANCE_RUNS if change["status"] == "running" else _CHANGE_RUNS


_GROW = (
    f"UPDATE {sessions.name} SET message_count = message_count + {{added}}, updated_at = {{moment}}"
    " WHERE id = {key}"
)
_GROW_SESSIONS = _Statement(_GROW, {"moment": time_text})
_GROW_SESSION = _Statement(f"{_GROW} RETURNING message_count", {"moment": time_text})
# By hand, because most of what is ever written are these.
_INSERT_EVENTS = (
    f"INSERT INTO {events.name} (run_id, seq, id, type, data, created_at) VALUES (?, ?, ?, ?, ?, ?)"
)


def _event_row(event: Event) -> Row:
    moment = time_text(event.created_at)
    return (event.run_id, event.seq, event.id, event.type, _json_text(event.data), moment)
