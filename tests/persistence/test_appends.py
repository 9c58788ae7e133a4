"""Commits that only add events to PostgreSQL: one statement, which commits itself where it may."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import trio
from sqlalchemy import Connection, Engine, create_engine, event, select, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from rungent.errors import StaleRun
from rungent.persistence import SQLAlchemyStore
from rungent.persistence.commits import DriveCommit
from rungent.persistence.grouping import write_batch
from rungent.persistence.tables import events, runs
from rungent.records import Run
from rungent.testing.store_samples import OWNER, create_running, step
from tests.persistence.stores import POSTGRES_KINDS, checked_out, opened

ROUNDS = 5
WAITING = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")


@pytest.fixture(params=POSTGRES_KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def witness(empty_postgres: str) -> Iterator[Connection]:
    """A connection that sees what is committed."""
    engine = create_engine(f"postgresql+psycopg{empty_postgres}", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def engine_of(kind: str, postgres: str, **options: Any) -> tuple[Engine | AsyncEngine, Engine]:
    """An engine, and the synchronous one that has its listeners."""
    if kind == "psycopg":
        plain = create_engine(f"postgresql+psycopg{postgres}", **options)
        return plain, plain
    driver = kind.removesuffix("_async")
    engine = create_async_engine(f"postgresql+{driver}{postgres}", **options)
    return engine, engine.sync_engine


async def append(store: SQLAlchemyStore, run: Run) -> Run:
    commit = step(run)
    await store.commit(commit, owner=OWNER, token=1)
    return commit.run


async def test_an_append_is_committed_by_its_one_statement(
    kind: str, empty_postgres: str, witness: Connection
) -> None:
    engine, plain = engine_of(kind, empty_postgres)
    statements: list[str] = []
    seen: list[int] = []

    def executed(*arguments: Any) -> None:
        statements.append(arguments[2])

    def committing(_: Connection) -> None:
        seen.append(len(witness.execute(select(events.c.id)).all()))

    async with opened(SQLAlchemyStore(engine)) as store:
        run = await create_running(store)
        event.listen(plain, "before_cursor_execute", executed)
        event.listen(plain, "commit", committing)
        run = await append(store, run)
        await append(store, run)
        assert len(statements) == 2
        # Nothing is left for the COMMIT that follows: it never reaches the server.
        assert seen == [1, 2]


@pytest.mark.parametrize("moment", ["begin", "checkout"])
async def test_what_a_host_sets_for_a_transaction_holds_for_an_append(
    kind: str, moment: str, empty_postgres: str
) -> None:
    engine, plain = engine_of(kind, empty_postgres)
    found: list[str] = []

    def set_tenant(*arguments: Any) -> None:
        _ask(arguments[0], "SELECT set_config('app.tenant', 'acme', true)")

    def executing(connection: Connection, _: object, statement: str, *rest: object) -> None:
        if statement.startswith("WITH changed"):
            found.append(_ask(connection, "SELECT current_setting('app.tenant', true)"))

    event.listen(plain, moment, set_tenant)
    event.listen(plain, "before_cursor_execute", executing)
    async with opened(SQLAlchemyStore(engine)) as store:
        run = await create_running(store)
        for _ in range(ROUNDS):
            run = await append(store, run)
    assert found == ["acme"] * ROUNDS


def _ask(connection: Any, question: str) -> str:
    """What the driver's connection answers, whether it comes from the engine or from the pool."""
    adapted: Any = connection.connection if isinstance(connection, Connection) else connection
    cursor = adapted.cursor()
    cursor.execute(question)
    answer: str = cursor.fetchone()[0]
    cursor.close()
    return answer


@pytest.mark.parametrize("level", ["read committed", "READ_COMMITTED", "REPEATABLE READ"])
async def test_connections_come_back_however_the_host_spells_its_isolation_level(
    kind: str, level: str, empty_postgres: str
) -> None:
    limits = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 20}
    engine, _ = engine_of(kind, empty_postgres, isolation_level=level, **limits)
    async with opened(SQLAlchemyStore(engine)) as store:
        run = await create_running(store)
        for _ in range(ROUNDS):
            run = await append(store, run)
        assert await store.get_run(run.id) == run
        assert checked_out(engine) == 0


async def test_a_connection_keeps_the_isolation_level_that_a_listener_gave_it(
    kind: str, empty_postgres: str
) -> None:
    engine, plain = engine_of(kind, empty_postgres, pool_size=1)
    characteristics = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ"
    levels: list[str] = []

    def connected(adapted: Any, _: object) -> None:
        cursor = adapted.cursor()
        cursor.execute(characteristics)
        cursor.close()
        adapted.commit()

    def executing(connection: Connection, _: object, statement: str, *rest: object) -> None:
        if "FROM rungent_events" in statement:
            levels.append(_ask(connection, "SHOW transaction_isolation"))

    event.listen(plain, "connect", connected)
    event.listen(plain, "before_cursor_execute", executing)
    async with opened(SQLAlchemyStore(engine)) as store:
        run = await create_running(store)
        await store.list_events(run.id, after=0, limit=1)
        await append(store, run)
        await store.list_events(run.id, after=0, limit=1)
    assert levels == ["repeatable read"] * 2


async def test_rival_appends_in_opposite_orders_never_wait_for_each_other_in_a_circle(
    empty_postgres: str, witness: Connection
) -> None:
    """Two processes that both believe that they drive the same runs."""
    engine, _ = engine_of("psycopg", empty_postgres)
    assert isinstance(engine, Engine)
    errors: list[object] = []
    event.listen(engine, "handle_error", errors.append)
    async with opened(SQLAlchemyStore(engine, inline=True)) as store:
        found = [await create_running(store) for _ in range(9)]
        units = [DriveCommit(step(run), OWNER, 1) for run in sorted(found, key=lambda run: run.id)]
        orders = (units, units[::-1])
        middle = units[len(units) // 2].commit.run.id
        with ThreadPoolExecutor(2) as pool:
            with engine.begin() as other:
                # Each comes half-way, so that what they hold by then is decided by their order.
                other.execute(select(runs.c.id).where(runs.c.id == middle).with_for_update())
                verdicts = [pool.submit(write_batch, engine, order) for order in orders]
                with trio.fail_after(300):
                    while witness.scalar(WAITING) != len(orders):
                        await trio.lowlevel.checkpoint()
            forward, backward = verdicts[0].result(60), verdicts[1].result(60)[::-1]
    assert not errors
    for pair in zip(forward, backward, strict=True):
        assert {type(verdict) for verdict in pair} == {type(None), StaleRun}
