"""One statement on PostgreSQL that commits itself: no BEGIN and no COMMIT travel for it.

SQLAlchemy's own AUTOCOMMIT is of no use here: it rolls back what listeners of the host began, and
gives connections back with another isolation level than the host gave them.
Source: docs/persistence.md#group-commit.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection

__all__ = ["commits_itself"]


@contextmanager
def commits_itself(connection: Connection) -> Generator[None]:
    """Let the one statement of the block be a transaction by itself, if nothing speaks against it.

    A transaction that somebody began stays: listeners of the host may have set something for its
    length. So does one that would have another isolation level than the server's default.
    """
    adapted: Any = connection.connection.dbapi_connection
    if not _is_plain(connection):
        yield
        return
    adapted.autocommit = True
    try:
        yield
    finally:
        try:
            adapted.autocommit = False
        except Exception:  # noqa: BLE001 - it broke, and nobody may meet it as it is now
            connection.invalidate()


def _is_plain(connection: Connection) -> bool:
    """Whether the driver is in no transaction and would begin a usual one."""
    adapted: Any = connection.connection.dbapi_connection
    driver: Any = connection.connection.driver_connection
    if connection.dialect.driver == "asyncpg":
        busy = driver.is_closed() or driver.is_in_transaction()
        return not busy and adapted.isolation_level is None
    if connection.dialect.driver == "psycopg":
        idle: bool = driver.info.transaction_status.name == "IDLE"
        return idle and not driver.autocommit and driver.isolation_level is None
    return False
