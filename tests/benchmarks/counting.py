"""Counts what one run costs a SQLite database: transactions and statements."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event
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
        await store.create_schema()
        runtime = Runtime(agents=[AGENT], model=InstantModel(), store=store)
        async with runtime:
            session = await runtime.create_session(identity=USER)
            counts = counting(watched)
            # Followed in pages after the end, so that a reader's queries are not counted.
            receipt = await runtime.create_run(session.id, "Count this.", identity=USER)
            async for _ in runtime.stream_events(receipt.run_id, identity=USER, after_seq=0):
                pass
            return Counts(counts.commits, counts.statements)


def counting(engine: Engine) -> Counts:
    """Counts that grow with whatever this engine does from now on."""
    counts = Counts()

    def commit(connection: Any) -> None:
        counts.commits += 1

    def execute(
        connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool
    ) -> None:
        reads = statement.lstrip().upper().startswith(("SELECT", "PRAGMA"))
        counts.reads += reads
        counts.statements += not reads

    event.listen(engine, "commit", commit)
    event.listen(engine, "before_cursor_execute", execute)
    return counts
