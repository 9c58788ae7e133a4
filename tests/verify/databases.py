"""A SQLite file that a runtime wrote, to look into and to damage."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text

from rungent.persistence.audit import audit_run, list_run_ids
from tests.helpers import Stage, stage
from tests.persistence.stores import opened, sql_store

__all__ = ["Database", "recording"]


@dataclass(slots=True)
class Database:
    """The file and its URL."""

    path: Path

    @property
    def url(self) -> str:
        """The URL for the command line."""
        return f"sqlite:///{self.path}"

    def change(self, *statements: str, **values: object) -> None:
        """Execute statements without any rule in the way."""
        engine = create_engine(self.url)
        with engine.begin() as connection:
            for statement in statements:
                connection.execute(text(statement), values)
        engine.dispose()

    def rows(self, statement: str) -> list[Mapping[str, Any]]:
        """What a query finds."""
        engine = create_engine(self.url)
        with engine.connect() as connection:
            found = [dict(row) for row in connection.execute(text(statement)).mappings()]
        engine.dispose()
        return list(found)

    def violations(self) -> list[str | None]:
        """What is wrong with each run, by id."""
        engine = create_engine(self.url)
        found = [audit_run(engine, run_id) for run_id in list_run_ids(engine, "", 1000)]
        engine.dispose()
        return found


@asynccontextmanager
async def recording(
    folder: Path, *args: Any, **options: Any
) -> AsyncGenerator[tuple[Stage, Database], None]:
    """A stage like any other, whose runs go into a file."""
    store = sql_store("inline", folder)
    async with opened(store), stage(*args, store=store, **options) as on:
        yield on, Database(folder / "runs.db")
