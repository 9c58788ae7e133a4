"""The stores that the suites run over, each opened with an empty schema."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.ext.asyncio import AsyncEngine, async_sessionmaker, create_async_engine
from sqlalchemy.orm import sessionmaker
from sqlalchemy.pool import QueuePool

from rungent.persistence import RungentBase, SQLAlchemyStore
from rungent.store import MemoryStore, Store

__all__ = [
    "ALL_KINDS",
    "FILE_KINDS",
    "POSTGRES_KINDS",
    "checked_out",
    "make_engine",
    "open_store",
    "opened",
    "postgres_for",
    "sql_store",
]

FILE_KINDS = ["sqlite", "aiosqlite"]
POSTGRES_KINDS = ["asyncpg", "psycopg", "psycopg_async"]
ALL_KINDS = ["memory", *FILE_KINDS, "inline", "aiosqlite_memory", *POSTGRES_KINDS]


def make_engine(kind: str, folder: Path, postgres: str = "") -> Engine | AsyncEngine:
    """An engine of this kind; files lie in `folder`, and `postgres` is the end of an URL."""
    file = f"///{folder / 'runs.db'}"
    match kind:
        case "sqlite" | "inline":
            return create_engine(f"sqlite:{file}")
        case "aiosqlite":
            return create_async_engine(f"sqlite+aiosqlite:{file}")
        case "aiosqlite_memory":
            return create_async_engine("sqlite+aiosqlite://")
        case "psycopg":
            return create_engine(f"postgresql+psycopg{postgres}")
        case "psycopg_async":
            return create_async_engine(f"postgresql+psycopg{postgres}")
        case "asyncpg":
            return create_async_engine(f"postgresql+asyncpg{postgres}")
        case _:
            raise ValueError(kind)


def sql_store(kind: str, folder: Path, postgres: str = "", **options: Any) -> SQLAlchemyStore:
    """A store over such an engine; the kinds with files get a sessionmaker."""
    engine = make_engine(kind, folder, postgres)
    if kind == "inline":
        return SQLAlchemyStore(engine, inline=True, **options)
    if kind not in FILE_KINDS:
        return SQLAlchemyStore(engine, **options)
    if isinstance(engine, AsyncEngine):
        return SQLAlchemyStore(async_sessionmaker(engine), **options)
    return SQLAlchemyStore(sessionmaker(engine), **options)


def checked_out(engine: Engine | AsyncEngine) -> int:
    """How many connections are in use."""
    pool = engine.pool
    return pool.checkedout() if isinstance(pool, QueuePool) else 0


@asynccontextmanager
async def opened(store: SQLAlchemyStore) -> AsyncIterator[SQLAlchemyStore]:
    """The store, open and with its tables."""
    async with store.open():
        await store.create_schema()
        yield store


def open_store(
    kind: str, folder: Path, request: pytest.FixtureRequest
) -> AbstractAsyncContextManager[Store]:
    """The opened, empty store; starts the PostgreSQL server if this is the first to need it."""
    if kind == "memory":
        return _memory(MemoryStore())
    return opened(sql_store(kind, folder, postgres_for(kind, request)))


def postgres_for(kind: str, request: pytest.FixtureRequest) -> str:
    """The end of an URL to an empty PostgreSQL database, for the kinds that need one."""
    url: str = request.getfixturevalue("empty_postgres") if kind in POSTGRES_KINDS else ""
    return url


@asynccontextmanager
async def _memory(store: MemoryStore) -> AsyncIterator[Store]:
    async with store.open():
        yield store


@pytest.fixture
def empty_postgres(postgres_url: str) -> str:
    """The server's URL ending, with empty tables."""
    engine = create_engine(f"postgresql+psycopg{postgres_url}")
    RungentBase.metadata.create_all(engine)
    names = ", ".join(RungentBase.metadata.tables)
    with engine.begin() as connection:
        connection.execute(text(f"TRUNCATE {names}"))
    engine.dispose()
    return postgres_url
