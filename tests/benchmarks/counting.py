"""Counts what one run costs a SQLite database: transactions and statements."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from operator import methodcaller
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine.interfaces import AdaptedConnection
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import sessionmaker

from rungent import Runtime
from rungent.sqlalchemy import SQLAlchemyStore
from tests.benchmarks.workload import AGENT, USER, InstantModel


@dataclass
class Counts:
    """What the database saw."""

    commits: int = 0
    statements: int = 0
    """Those that write."""
    reads: int = 0


async def count_statements(name: str) -> Counts | None:
    """The cost of one run, its session apart; None for a store without a database."""
    if name == "memory":
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "count.db"
        if name == "sqlite sync":
            engine = create_engine(f"sqlite:///{path}")
            store, watched = SQLAlchemyStore(sessionmaker(engine)), engine
        else:
            async_engine = create_async_engine(f"sqlite+aiosqlite:///{path}")
            store = SQLAlchemyStore(async_sessionmaker(async_engine, expire_on_commit=False))
            watched = async_engine.sync_engine
        counts = counting(watched)
        await store.create_schema()
        runtime = Runtime(agents=[AGENT], model=InstantModel(), store=store)
        async with runtime:
            session = await runtime.create_session(identity=USER)
            before = replace(counts)
            # Followed in pages after the end, so that a reader's queries are not counted.
            receipt = await runtime.create_run(session.id, "Count this.", identity=USER)
            async for _ in runtime.stream_events(receipt.run_id, identity=USER, after_seq=0):
                pass
            return Counts(counts.commits - before.commits, counts.statements - before.statements)


def counting(engine: Engine) -> Counts:
    """Counts that grow with whatever the connections do that this engine makes from now on."""
    counts = Counts()

    def note(statement: str) -> None:
        kind = statement.lstrip().upper()
        counts.commits += kind.startswith("COMMIT")
        # A look at the file's version is the worker's, not that of its runs and readers.
        counts.reads += kind.startswith("SELECT")
        counts.statements += kind.startswith(("INSERT", "UPDATE", "DELETE"))

    def connected(connection: Any, _: object) -> None:
        # SQLite itself tells: not all statements pass through SQLAlchemy.
        if isinstance(connection, AdaptedConnection):
            connection.run_async(methodcaller("set_trace_callback", note))
        else:
            connection.set_trace_callback(note)

    event.listen(engine, "connect", connected)
    return counts
