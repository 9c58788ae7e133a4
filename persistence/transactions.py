"""One transaction, and what is known when it fails.

Whatever fails before COMMIT stored nothing: the server rolls back what it was not told to commit.
When COMMIT itself fails, nobody knows, and the answer must be read back. So it is with a change
that commits itself, see `commits.append_all`, when the connection breaks.
Source: docs/persistence.md#outages.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from rungent.persistence.sqlite import lock_for_writing

__all__ = [
    "Source",
    "Unreachable",
    "Unsure",
    "connect",
    "is_away",
    "is_gone",
    "read",
    "transact",
    "write",
]

T = TypeVar("T")


class Source(Protocol):
    """Where connections come from: an engine, or the one connection that is kept for writing."""

    def connect(self) -> AbstractContextManager[Connection]:
        """A connection for the length of a block."""
        ...


@dataclass(frozen=True, slots=True)
class Unsure:
    """COMMIT failed with `error`: `result` holds if it took effect nevertheless."""

    result: Any
    error: Exception


class Unreachable(Exception):
    """The database could not be asked: nothing was stored. `error` is the driver's."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def connect(source: Source) -> AbstractContextManager[Connection]:
    """A connection, or Unreachable."""
    try:
        return source.connect()
    except Exception as error:
        raise Unreachable(error) from error


def transact(
    connection: Connection, change: Callable[[Connection], T], *, writes_first: bool
) -> T | Unsure:
    """Make the change and commit it. An exception means that nothing was stored.

    Only of a change that commits itself Unreachable does not say so.
    """
    transaction = connection.begin()
    try:
        lock_for_writing(connection, writes_first=writes_first)
        result = change(connection)
    except Exception as error:
        _abandon(connection, error)
        if is_away(error):
            raise Unreachable(error) from error
        raise
    try:
        transaction.commit()
    except Exception as error:  # noqa: BLE001 - the caller asks what happened
        if connection.connection.is_detached:
            # The kept connection of a writer: whoever asks now gets another.
            with suppress(Exception):
                connection.close()
        else:
            _abandon(connection, error)
        return Unsure(result, error)
    return result


def _abandon(connection: Connection, error: Exception) -> None:
    if is_gone(error):
        # Not every driver's way of saying so is known to the pool.
        connection.invalidate()
    elif (transaction := connection.get_transaction()) is not None:
        transaction.rollback()


def write(source: Source, change: Callable[[Connection], T]) -> T | Unsure:
    """A transaction on a connection; on another one if that had died meanwhile."""

    def once() -> T | Unsure:
        with connect(source) as connection:
            return transact(connection, change, writes_first=False)

    try:
        return once()
    except Unreachable as away:
        if not is_gone(away.error):
            raise
    return once()


def read(source: Source, query: Callable[[Connection], T]) -> T:
    """A query on a connection; on another one if that had died meanwhile."""

    def once() -> T:
        with source.connect() as connection:
            return query(connection)

    try:
        return once()
    except Exception as error:
        if not is_gone(error):
            raise
    return once()


def is_gone(error: Exception) -> bool:
    """Whether the connection broke."""
    if isinstance(error, DBAPIError):
        return error.connection_invalidated
    return isinstance(error, OSError)


def is_away(error: Exception) -> bool:
    """Whether it is no verdict about the change: the connection broke, or the file is locked."""
    if isinstance(error, DBAPIError) and isinstance(error.orig, sqlite3.OperationalError):
        code: int = getattr(error.orig, "sqlite_errorcode", 0)
        return code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return is_gone(error)
