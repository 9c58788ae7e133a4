"""The world outside: a table of effects, written in transactions that the store knows nothing of."""

from __future__ import annotations

from pathlib import Path

import trio
from sqlalchemy import (
    Column,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    create_engine,
    exists,
    literal,
    select,
)
from sqlalchemy.pool import NullPool

__all__ = ["Effects", "plain_engine"]

METADATA = MetaData()
EFFECTS = Table(
    "effects",
    METADATA,
    # Several rows of one key are what must not be.
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("key", String(200), index=True),
    Column("tool", String(64)),
)


def plain_engine(folder: Path, postgres: str) -> Engine:
    """An engine for effects: the PostgreSQL server, or a file of its own."""
    if postgres:
        return create_engine(f"postgresql+psycopg{postgres}", poolclass=NullPool)
    return create_engine(f"sqlite:///{folder / 'effects.db'}", poolclass=NullPool)


class Effects:
    """What tools did, by idempotency key."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def create(self) -> None:
        """Begin with an empty table."""
        self.drop()
        METADATA.create_all(self._engine)

    def drop(self) -> None:
        """Leave nothing behind in a database that others use too."""
        METADATA.drop_all(self._engine)

    async def act(self, tool_name: str, key: str) -> None:
        """Take effect; of `charge` only once for each key."""
        await trio.to_thread.run_sync(self._act, tool_name, key)

    async def find(self, tool_name: str, key: str) -> bool:
        """Whether the tool took effect under this key."""
        return await trio.to_thread.run_sync(self._find, tool_name, key)

    def all(self) -> list[tuple[str, str]]:
        """Key and tool of every effect."""
        with self._engine.begin() as connection:
            rows = connection.execute(select(EFFECTS.c.key, EFFECTS.c.tool))
            return [(row.key, row.tool) for row in rows]

    def _act(self, tool_name: str, key: str) -> None:
        with self._engine.begin() as connection:
            row = select(literal(key), literal(tool_name))
            if tool_name == "charge":
                row = row.where(~exists().where(EFFECTS.c.key == key))
            # One statement: nobody gets between looking and writing.
            connection.execute(EFFECTS.insert().from_select(["key", "tool"], row))

    def _find(self, tool_name: str, key: str) -> bool:
        with self._engine.begin() as connection:
            known = select(EFFECTS.c.id).where(EFFECTS.c.key == key, EFFECTS.c.tool == tool_name)
            return connection.scalar(known) is not None
