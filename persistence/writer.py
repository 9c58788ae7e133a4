"""The one connection of a process that writes to an SQLite file, kept apart from the pool.

SQLite has one writer at a time. Going on with the same connection spares each commit a visit to
the pool, and keeps what SQLite has read of the file: any other connection finds it changed.
Source: docs/persistence.md#sqlite.
"""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType

from sqlalchemy import Connection, Engine

from rungent.errors import RungentError
from rungent.persistence.sqlite import data_version

__all__ = ["Writer"]


class Writer:
    """A source of connections that always gives the same, until the database fails on it.

    Used by one job at a time; the store's lock of writers sees to that.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kept: Connection | None = None
        self._opened = 0

    def connect(self) -> _Use:
        """The connection, opened if need be."""
        if self._kept is None or self._kept.closed:
            self._kept = self._engine.connect()
            self._opened += 1
            # It no longer counts in the pool, so that readers have all of that.
            self._kept.detach()
        return _Use(self, self._kept)

    def others(self) -> tuple[int, int]:
        """What differs after every commit that was not made on this connection."""
        with self.connect() as connection:
            return self._opened, data_version(connection)

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        kept, self._kept = self._kept, None
        if kept is not None:
            with suppress(Exception):
                kept.close()


class _Use:
    """One use. A class, because every commit makes one and a generator costs more."""

    __slots__ = ("_connection", "_writer")

    def __init__(self, writer: Writer, connection: Connection) -> None:
        self._writer = writer
        self._connection = connection

    def __enter__(self) -> Connection:
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if kind is not None and not issubclass(kind, RungentError):
            self._writer.close()
        elif self._connection.in_transaction():
            self._connection.rollback()
