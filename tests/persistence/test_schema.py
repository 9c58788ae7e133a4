"""The tables: what the database itself guarantees, on both databases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event, inspect, text
from sqlalchemy.exc import IntegrityError, StatementError
from sqlalchemy.schema import CreateTable

from rungent.persistence import RungentBase, SQLAlchemyStore
from rungent.persistence.tables import IS_ACTIVE
from rungent.records import ACTIVE, RunStatus
from rungent.testing.store_contract_creation import stored_session
from rungent.testing.store_samples import (
    OWNER,
    START,
    create_running,
    creation_of,
    interaction_of,
    session_of,
    started_claim,
    step,
    task_of,
)
from tests.persistence.stores import opened

TABLES = {
    "rungent_actions",
    "rungent_sessions",
    "rungent_messages",
    "rungent_runs",
    "rungent_events",
    "rungent_interactions",
    "rungent_tool_calls",
    "rungent_external_tasks",
}

POSTGRESQL = create_engine("postgresql+psycopg://nobody/none").dialect
SQLITE = create_engine("sqlite://").dialect


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """An engine with the tables; on PostgreSQL its connections speak another zone than UTC."""
    if request.param == "sqlite":
        engine = create_engine(f"sqlite:///{tmp_path / 'runs.db'}")
    else:
        ending = request.getfixturevalue("empty_postgres")
        zone = {"options": "-c timezone=Asia/Tokyo"}
        engine = create_engine(f"postgresql+psycopg{ending}", connect_args=zone)
    RungentBase.metadata.create_all(engine)
    yield engine
    engine.dispose()


def test_the_metadata_holds_exactly_the_eight_tables(engine: Engine) -> None:
    assert set(RungentBase.metadata.tables) == TABLES
    assert set(inspect(engine).get_table_names()) == TABLES


def test_json_is_native_on_both_databases() -> None:
    events = RungentBase.metadata.tables["rungent_events"]
    assert "data JSONB NOT NULL" in str(CreateTable(events).compile(dialect=POSTGRESQL))
    assert "data JSON NOT NULL" in str(CreateTable(events).compile(dialect=SQLITE))


def test_times_have_a_zone_where_the_database_knows_zones() -> None:
    events = RungentBase.metadata.tables["rungent_events"]
    table = str(CreateTable(events).compile(dialect=POSTGRESQL))
    assert "created_at TIMESTAMP WITH TIME ZONE NOT NULL" in table


async def test_times_of_a_connection_in_another_zone_come_back_in_utc(engine: Engine) -> None:
    store = SQLAlchemyStore(engine)
    async with store.open():
        session = await stored_session(store)
        found = await store.get_session(session.id)
    assert found == session
    assert found.created_at.isoformat() == START.isoformat()


async def test_a_time_without_zone_is_refused(engine: Engine) -> None:
    store = SQLAlchemyStore(engine)
    naive = session_of().model_copy(update={"created_at": START.replace(tzinfo=None)})
    with pytest.raises(StatementError, match="needs a zone"):
        await store.create_session(naive)


async def test_a_session_takes_everything_with_it(engine: Engine) -> None:
    store = SQLAlchemyStore(engine)
    async with store.open():
        run = await create_running(store)
        commit = replace(
            step(run),
            claims=(started_claim(run),),
            interactions=(interaction_of(run),),
            tasks=(task_of(run),),
        )
        await store.commit(commit, owner=OWNER, token=1)
        with engine.begin() as connection:
            connection.execute(text("DELETE FROM rungent_sessions"))
            for table in TABLES:
                assert connection.scalar(text(f"SELECT count(*) FROM {table}")) == 0


async def test_the_database_itself_refuses_a_second_active_run(engine: Engine) -> None:
    """A rule that a bug cannot get around."""
    store = SQLAlchemyStore(engine)
    async with store.open():
        session = await stored_session(store)
        first = (await store.create_run(creation_of(session, status=RunStatus.COMPLETED))).run
        await store.create_run(creation_of(session))
        revived = step(first, status=RunStatus.RUNNING)
        with pytest.raises(IntegrityError):
            await store.cancel_run(first.id, lambda _: revived)
        assert await store.get_run(first.id) == first


async def test_the_database_itself_refuses_a_second_pending_interaction(engine: Engine) -> None:
    store = SQLAlchemyStore(engine)
    async with store.open():
        run = await create_running(store)
        resolved = tuple(interaction_of(run, status="resolved") for _ in range(2))
        first = replace(step(run), interactions=(*resolved, interaction_of(run)))
        await store.commit(first, owner=OWNER, token=1)
        second = replace(step(first.run), interactions=(interaction_of(run),))
        with pytest.raises(IntegrityError):
            await store.commit(second, owner=OWNER, token=1)
        assert await store.get_run(run.id) == first.run


def test_the_index_of_active_runs_names_every_active_status() -> None:
    named = re.findall(r"'(\w+)'", IS_ACTIVE.text)
    assert sorted(named) == sorted(status.value for status in ACTIVE)


async def test_the_active_run_of_a_session_is_found_by_its_index(tmp_path: Path) -> None:
    """However many runs the session has: a look at all of them would grow with it."""
    engine = create_engine(f"sqlite:///{tmp_path / 'runs.db'}")
    asked: list[tuple[str, Any]] = []
    event.listen(engine, "before_cursor_execute", lambda *given: asked.append(given[2:4]))
    store = SQLAlchemyStore(engine, inline=True)
    async with opened(store):
        await create_running(store)
        [(look, values)] = [
            each for each in asked if re.search("^SELECT.*status IN", each[0], re.DOTALL)
        ]
        with engine.connect() as connection:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {look}", values).all()
    assert "uq_rungent_runs_active" in str(plan)
