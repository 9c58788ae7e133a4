"""Statements given straight to SQLite's driver, inside a transaction of SQLAlchemy's.

What SQLAlchemy does for each statement costs several times SQLite's own work, and a drive commits
with eight of them. Source: docs/persistence.md#group-commit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from operator import methodcaller
from typing import Any, TypeAlias

from sqlalchemy import Connection
from sqlalchemy.engine.interfaces import AdaptedConnection
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

__all__ = ["Row", "begins_itself", "change", "fetch", "run"]

Row: TypeAlias = tuple[Any, ...]

_CLOSED = ("cannot operate on a closed database.", "no active connection", "connection closed")
"""What sqlite3 and aiosqlite say of a connection that was closed."""


def begins_itself(connection: Connection) -> bool:
    """Whether the driver's connection is in a transaction that nobody asked for.

    Some engines of hosts make theirs begin before the first statement, whatever it is.
    """
    driver: Any = connection.connection.dbapi_connection
    try:
        real = driver.driver_connection if _is_adapted(driver) else driver
        return bool(real.in_transaction)
    except (sqlite3.Error, ValueError) as error:
        raise _translated("", error) from error


def run(connection: Connection, statement: str) -> None:
    """Run a statement without parameters."""
    _call(connection, "execute", statement, ())


def change(connection: Connection, statement: str, rows: Sequence[Row]) -> int:
    """Run the statement once for each row; how many stored rows it changed."""
    if len(rows) == 1:
        return int(_call(connection, "execute", statement, rows[0]).rowcount)
    return int(_call(connection, "executemany", statement, rows).rowcount)


def fetch(connection: Connection, statement: str, row: Row) -> list[Row]:
    """What the statement returns for this row."""
    if _is_adapted(connection.connection.dbapi_connection):
        return [*_call(connection, "execute_fetchall", statement, row)]
    found: list[Row] = _call(connection, "execute", statement, row).fetchall()
    return found


def _call(connection: Connection, method: str, statement: str, parameters: Any) -> Any:
    """One call of the driver's connection, which is one trip where that has its own thread.

    Raises what SQLAlchemy would, but without the parameters: they are the host's data.
    """
    driver: Any = connection.connection.dbapi_connection
    try:
        if _is_adapted(driver):
            return driver.run_async(methodcaller(method, statement, parameters))
        return getattr(driver, method)(statement, parameters)
    except (sqlite3.Error, ValueError) as error:
        raise _translated(statement, error) from error


def _translated(statement: str, error: Exception) -> DBAPIError:
    if isinstance(error, sqlite3.IntegrityError):
        return IntegrityError(statement, None, error)
    if isinstance(error, sqlite3.OperationalError):
        return OperationalError(statement, None, error)
    gone = str(error).lower() in _CLOSED
    return DBAPIError(statement, None, error, connection_invalidated=gone)


def _is_adapted(connection: Any) -> bool:
    return isinstance(connection, AdaptedConnection)
