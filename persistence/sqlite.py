"""What SQLite needs: pragmas, the write lock taken first, and a look at other processes' commits.

Source: docs/persistence.md#sqlite.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.pool import StaticPool

from rungent.persistence.driver import begins_itself, run

__all__ = ["configure", "data_version", "in_memory", "is_sqlite", "lock_for_writing"]

BUSY_TIMEOUT_MS = 5000
# Four times SQLite's own: pages that many commits change are copied once, not after each few.
CHECKPOINT_PAGES = 4000
_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}",
    f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}",
    "PRAGMA foreign_keys = ON",
)
_DONE = "rungent_configured"
_BEGINS = "rungent_begins"
# It matches no row, but takes the lock.
_CHANGE_NOTHING = "UPDATE rungent_runs SET version = version WHERE 0"


def is_sqlite(engine: Engine) -> bool:
    """Whether the engine speaks to SQLite."""
    return engine.dialect.name == "sqlite"


def in_memory(engine: Engine) -> bool:
    """Whether the database lives and dies with its connection, or is shared by one connection.

    Sessions that share a connection also share its transaction: one rolls back what the other
    committed, so such a store does one thing at a time.
    """
    if not is_sqlite(engine):
        return False
    name = engine.url.database or ""
    memory = name in ("", ":memory:") or ":memory:" in name or "mode=memory" in str(engine.url)
    return memory or isinstance(engine.pool, StaticPool)


def configure(engine: Engine) -> None:
    """Set the pragmas on every connection of the engine, also on those that exist already."""
    if not event.contains(engine, "checkout", _configure_connection):
        event.listen(engine, "checkout", _configure_connection)


def _configure_connection(dbapi_connection: Any, record: Any, proxy: Any) -> None:
    if record.info.get(_DONE):
        return
    # Some pragmas do nothing inside a transaction, and `autocommit=False` is always in one.
    transactional = getattr(dbapi_connection, "autocommit", None) is False
    if transactional:
        dbapi_connection.autocommit = True
    cursor = dbapi_connection.cursor()
    try:
        for pragma in _PRAGMAS:
            cursor.execute(pragma)
    finally:
        cursor.close()
        if transactional:
            dbapi_connection.autocommit = False
    record.info[_DONE] = True


def lock_for_writing(connection: Connection, *, writes_first: bool) -> None:
    """Make the transaction a writing one from its first statement on.

    A transaction that reads before it writes fails with "database is locked" as soon as another
    process commits in between, and no timeout helps.
    """
    if connection.dialect.name != "sqlite":
        return
    if begins_itself(connection):
        if not writes_first:
            run(connection, _CHANGE_NOTHING)
        return
    # Hosts share the connections of pools, and may change how those begin.
    if connection.connection.is_detached and _change_begins(connection, learn=not writes_first):
        return
    run(connection, "BEGIN IMMEDIATE")


def _change_begins(connection: Connection, *, learn: bool) -> bool:
    """Whether the driver begins a transaction with the first change by itself, as most do.

    Then BEGIN is a trip too many for one with a thread of its own. What is not known yet is
    learnt from a change that takes the lock, which is what a transaction that reads first needs.
    """
    known: bool | None = connection.info.get(_BEGINS)
    if learn and known is not False:
        run(connection, _CHANGE_NOTHING)
        known = connection.info[_BEGINS] = begins_itself(connection)
    return bool(known)


def data_version(connection: Connection) -> int:
    """A number that differs after every commit by another connection, but not after its own."""
    version: int = connection.exec_driver_sql("PRAGMA data_version").scalar_one()
    # Where the driver is always in a transaction, the next look needs a new one.
    connection.rollback()
    return version
