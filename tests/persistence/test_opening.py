"""What a store owns, for how long, and which engines it takes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest
import trio
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine, async_sessionmaker, create_async_engine
from sqlalchemy.orm import sessionmaker
from sqlalchemy.pool import StaticPool
from trio.testing import MockClock

from rungent.persistence import SQLAlchemyStore
from rungent.sqlalchemy import SQLAlchemyStore as Alias
from rungent.store import Store
from rungent.testing.store_samples import (
    OWNER,
    create_running,
    creation_of,
    ended,
    session_of,
    step,
)
from tests.persistence.stores import (
    FILE_KINDS,
    checked_out,
    make_engine,
    opened,
    postgres_for,
    sql_store,
)

THREAD = "rungent-store"


def store_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == THREAD]


@pytest.mark.parametrize("kind", [*FILE_KINDS, "inline", "asyncpg", "psycopg_async"])
async def test_a_store_can_be_opened_again(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    store = sql_store(kind, tmp_path, postgres_for(kind, request))
    run = None
    for _ in range(3):
        async with opened(store):
            run = run or await create_running(store)
            commit = step(await store.get_run(run.id))
            await store.commit(commit, owner=OWNER, token=1)
        assert store_threads() == []
    assert run is not None
    assert (await store.get_run(run.id)).version == 4


@pytest.mark.parametrize("kind", [*FILE_KINDS, "inline", "asyncpg", "psycopg"])
async def test_operations_outside_open_work_and_leave_nothing_running(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    engine = make_engine(kind, tmp_path, postgres_for(kind, request))
    store = SQLAlchemyStore(engine, inline=kind == "inline")
    await store.create_schema()
    sessions = [session_of() for _ in range(4)]
    async with trio.open_nursery() as nursery:
        for session in sessions:
            nursery.start_soon(store.create_session, session)
    for session in sessions:
        assert await store.get_session(session.id) == session
    assert store_threads() == []
    assert checked_out(engine) == 0


async def test_leaving_one_of_two_openings_keeps_the_store_open(tmp_path: Path) -> None:
    store = sql_store("aiosqlite", tmp_path)
    async with opened(store):
        async with store.open():
            assert store_threads() == [THREAD]
        assert store_threads() == [THREAD]
    assert store_threads() == []


async def test_a_database_in_memory_outlives_single_operations_before_it_is_opened() -> None:
    for store in (
        SQLAlchemyStore(create_async_engine("sqlite+aiosqlite://")),
        SQLAlchemyStore(create_engine("sqlite://"), inline=True),
    ):
        await store.create_schema()
        session = session_of()
        await store.create_session(session)
        async with store.open():
            assert await store.get_session(session.id) == session


async def test_a_watch_without_a_file_wakes_at_every_poll(autojump_clock: MockClock) -> None:
    store = SQLAlchemyStore(create_async_engine("sqlite+aiosqlite://"))
    times: list[float] = []
    with trio.move_on_after(3.5):
        await store.watch(lambda _: times.append(trio.current_time()), 1)
    assert times == [1, 2, 3]


async def test_a_shared_connection_does_one_thing_at_a_time() -> None:
    """Commits, creations and reads at once on one connection: nothing acknowledged is lost."""
    store = SQLAlchemyStore(
        create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    )
    asyncio_store = SQLAlchemyStore(create_async_engine("sqlite+aiosqlite://"))
    for one in (store, asyncio_store):
        async with opened(one), trio.open_nursery() as nursery:
            for _ in range(12):
                nursery.start_soon(_live, one)


async def _live(store: Store) -> None:
    run = await create_running(store)
    for _ in range(5):
        commit = step(run)
        await store.commit(commit, owner=OWNER, token=1)
        run = commit.run
        assert await store.get_run(run.id) == run
    await store.commit(ended(run), owner=OWNER, token=1)
    session = await store.get_session(run.session_id)
    await store.create_run(creation_of(session))
    assert len(await store.list_runs(session.id, limit=9)) == 2


def test_an_engine_that_cannot_work_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="StaticPool"):
        SQLAlchemyStore(create_engine("sqlite://"))
    with pytest.raises(ValueError, match="inline"):
        SQLAlchemyStore(make_engine("aiosqlite", tmp_path), inline=True)
    for unbound in (sessionmaker(), async_sessionmaker()):
        with pytest.raises(TypeError, match="bound"):
            SQLAlchemyStore(unbound)
    assert Alias is SQLAlchemyStore


PRAGMAS = ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")


@pytest.mark.parametrize("kind", FILE_KINDS)
@pytest.mark.parametrize("configured", [True, False])
async def test_sqlite_is_configured_unless_the_host_does_it(
    kind: str, configured: bool, tmp_path: Path
) -> None:
    """Seen through the engine itself: every connection is configured, whoever opens it."""
    engine = make_engine(kind, tmp_path)
    plain = engine.sync_engine if isinstance(engine, AsyncEngine) else engine
    seen: list[tuple[Any, ...]] = []

    def ask(connection: Connection) -> None:
        found = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in PRAGMAS]
        seen.append(tuple(found))

    store = SQLAlchemyStore(engine, configure_sqlite=configured)
    event.listen(plain, "begin", ask)
    async with opened(store):
        await store.create_session(session_of())
    expected = ("wal", 1, 5000, 1) if configured else ("delete", 2, 5000, 0)
    assert seen[-1] == expected


async def test_connections_that_existed_before_the_store_are_configured_too(
    tmp_path: Path,
) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'runs.db'}")
    with engine.connect() as connection:
        assert connection.scalar(text("PRAGMA foreign_keys")) == 0
    async with opened(SQLAlchemyStore(engine)):
        with engine.connect() as connection:
            assert connection.scalar(text("PRAGMA foreign_keys")) == 1


def _explicit_begin(engine: Engine) -> None:
    """The driver begins nothing by itself; the host emits BEGIN."""

    @event.listens_for(engine, "connect")
    def connected(dbapi_connection: Any, _: Any) -> None:
        dbapi_connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")


def _no_begin(engine: Engine) -> None:
    """The driver begins nothing by itself and nobody else does."""

    @event.listens_for(engine, "connect")
    def connected(dbapi_connection: Any, _: Any) -> None:
        dbapi_connection.isolation_level = None


RECIPES: dict[str, tuple[Callable[[Engine], None], dict[str, Any]]] = {
    "as it is": (lambda _: None, {}),
    "explicit begin": (_explicit_begin, {}),
    "no begin": (_no_begin, {}),
}
if sys.version_info >= (3, 12):
    RECIPES["autocommit off"] = (lambda _: None, {"autocommit": False})


@pytest.mark.parametrize("recipe", RECIPES)
async def test_transactions_are_real_whichever_way_the_host_begins_them(
    recipe: str, tmp_path: Path
) -> None:
    prepare, arguments = RECIPES[recipe]
    engine = create_engine(f"sqlite:///{tmp_path / 'runs.db'}", connect_args=arguments)
    prepare(engine)
    async with opened(SQLAlchemyStore(engine)) as store:
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(_live, store)
        run = await create_running(store)
        taken = step(run)
        await store.commit(taken, owner=OWNER, token=1)
        doomed = replace(step(taken.run), events=taken.events)
        with pytest.raises(IntegrityError):
            await store.commit(doomed, owner=OWNER, token=1)
        with pytest.raises(IntegrityError):
            await store.cancel_run(run.id, lambda _: doomed)
        assert await store.get_run(run.id) == taken.run


@pytest.mark.parametrize("kind", FILE_KINDS)
@pytest.mark.parametrize(
    ("recipe", "begin"), [("as it is", "BEGIN"), ("no begin", "BEGIN IMMEDIATE")]
)
async def test_a_commit_is_begun_by_the_driver_if_that_does_so_by_itself(
    kind: str, recipe: str, begin: str, tmp_path: Path
) -> None:
    engine = make_engine(kind, tmp_path)
    plain = engine.sync_engine if isinstance(engine, AsyncEngine) else engine
    RECIPES[recipe][0](plain)
    said: list[str] = []

    def listen_in(connection: Any, _: object) -> None:
        if isinstance(engine, AsyncEngine):
            connection.run_async(methodcaller("set_trace_callback", said.append))
        else:
            connection.set_trace_callback(said.append)

    event.listen(plain, "connect", listen_in)
    async with opened(SQLAlchemyStore(engine)) as store:
        run = await create_running(store)
        said.clear()
        await store.commit(step(run), owner=OWNER, token=1)
    assert [each.strip() for each in said if each.startswith("BEGIN")] == [begin]
    assert [each.split()[0] for each in said] == ["BEGIN", "UPDATE", "INSERT", "COMMIT"]
