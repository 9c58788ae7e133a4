"""What is stored of questions is what `rungent verify` expects, is found by indexes, and goes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text
from trio.testing import MockClock

from rungent import ToolCall
from rungent.persistence import RungentBase, SQLAlchemyStore, due
from rungent.persistence.audit import audit_run
from rungent.persistence.executors import choose_executor
from rungent.persistence.prune import prune
from rungent.testing.clock import HoldAutojump
from rungent.testing.store_samples import at
from tests.asking.channel import (
    ASK,
    Channel,
    approval_tool,
    ask_channel,
    asks_in,
    click,
    poll_tool,
    serving,
)
from tests.helpers import asking
from tests.persistence.stores import opened, postgres_for, sql_store

POLL = asking(ToolCall("poll", {}, "call_poll"))
DELETE = asking(ToolCall("delete", {"path": "a.txt"}, "call_delete"))
SOON = ask_channel(expires_in=timedelta(seconds=30))


@dataclass(frozen=True)
class Database:
    """A store, and a way to look at its rows beside it."""

    store: SQLAlchemyStore
    engine: Engine

    def count(self, table: str) -> int:
        with self.engine.connect() as connection:
            return connection.scalar(text(f"SELECT count(*) FROM {table}")) or 0


@pytest.fixture(params=["sqlite", "psycopg"])
async def database(
    request: pytest.FixtureRequest, tmp_path: Path, autojump_clock: MockClock
) -> AsyncGenerator[Database]:
    url = postgres_for(request.param, request)
    store = sql_store(request.param, tmp_path, url, hold=HoldAutojump(autojump_clock))
    at_file = f"sqlite:///{tmp_path / 'runs.db'}"
    engine = create_engine(f"postgresql+psycopg{url}" if url else at_file)
    async with opened(store):
        yield Database(store, engine)
    engine.dispose()


async def test_every_moment_of_a_question_is_in_order(
    autojump_clock: MockClock, database: Database, channel: Channel
) -> None:
    script = [POLL, "Passed.", ASK, "Nobody.", DELETE, "Gone.", ASK]
    tools = (poll_tool(), SOON, approval_tool())
    async with serving(database.store, channel, script, *tools) as on:

        def look(run_id: str) -> None:
            assert audit_run(database.engine, run_id) is None

        voted, tokens = await asks_in(on, channel)
        look(voted)
        await click(on, tokens["Yes"], "bob")
        await on.until(voted, "interaction.requested", 2)
        look(voted)
        await click(on, tokens["Yes"], "cleo")
        await on.log(voted)
        expired, _ = await asks_in(on, channel)
        await on.log(expired)
        deleted, tokens = await asks_in(on, channel)
        look(deleted)
        await click(on, tokens["Yes"])
        await on.log(deleted)
        cancelled, _ = await asks_in(on, channel)
        await on.cancel(cancelled)
        for run_id in (voted, expired, deleted, cancelled):
            look(run_id)


async def test_pruned_runs_take_their_buttons_with_them(
    autojump_clock: MockClock, database: Database, channel: Channel
) -> None:
    async with serving(database.store, channel, [ASK, "Done."]) as on:
        run_id, tokens = await asks_in(on, channel)
        await click(on, tokens["Approve"])
        await on.log(run_id)
        assert database.count("rungent_actions") == 2
        executor = choose_executor(database.engine, inline=database.engine.dialect.name == "sqlite")
        executor.start()
        pruned = await prune(executor, at(10**6), batch=100, pause_seconds=0)
        await executor.stop()
        assert (pruned.actions, database.count("rungent_actions")) == (2, 0)
        assert (await click(on, tokens["Approve"])).status == "unknown"


def test_due_questions_are_found_by_indexes(tmp_path: Path) -> None:
    """SQLite says how it would look; a scan of the table would name none."""
    engine = create_engine(f"sqlite:///{tmp_path / 'plan.db'}")
    RungentBase.metadata.create_all(engine)
    seen: list[str] = []
    with engine.connect() as connection:
        statement = due.due_statement(["helper"], at(0), 100)
        compiled = statement.compile(engine, compile_kwargs={"literal_binds": True})
        seen = [row[3] for row in connection.execute(text(f"EXPLAIN QUERY PLAN {compiled}"))]
    plan = "\n".join(seen)
    assert "ix_rungent_interactions_expiry" in plan
    assert "ix_rungent_interactions_closing" in plan
    assert "SCAN rungent_interactions" not in plan
