"""Watching PostgreSQL: whose commits are heard, and what becomes of a broken connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trio
from sqlalchemy import Engine, create_engine, text
from trio.testing import MockClock, wait_all_tasks_blocked

from rungent.ids import new_id
from rungent.persistence import SQLAlchemyStore, notify
from rungent.persistence.postgres import PostgresBulk, origin, told_runs
from rungent.testing.store_contract_changes import taken_by
from rungent.testing.store_samples import OTHER, OWNER, at, create_running, step
from tests.persistence.stores import POSTGRES_KINDS, checked_out, make_engine, opened, sql_store

T = TypeVar("T")
FOREVER = 3600.0


class Ear:
    """What a watcher was told, and a way to wait for more."""

    def __init__(self) -> None:
        self.told: list[str | None] = []
        self._changed = trio.Event()

    def wake(self, run_id: str | None) -> None:
        self.told.append(run_id)
        self._changed.set()
        self._changed = trio.Event()

    async def wait_for(self, count: int) -> list[str | None]:
        """The first `count` of what was told."""
        while len(self.told) < count:
            await self._changed.wait()
        return self.told[:count]


@asynccontextmanager
async def watching(store: SQLAlchemyStore, poll_seconds: float = FOREVER) -> AsyncIterator[Ear]:
    """Somebody who hears from now on."""
    ear = Ear()
    with trio.fail_after(300):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.watch, ear.wake, poll_seconds)
            assert await ear.wait_for(1) == [None]
            yield ear
            nursery.cancel_scope.cancel()


@pytest.fixture
def admin(empty_postgres: str) -> Iterator[Engine]:
    engine = create_engine(f"postgresql+psycopg{empty_postgres}")
    yield engine
    engine.dispose()


LISTENING = "FROM pg_stat_activity WHERE query ILIKE 'LISTEN%'"


def listeners(admin: Engine) -> int:
    with admin.connect() as connection:
        count: int = connection.execute(text(f"SELECT count(*) {LISTENING}")).scalar_one()
        return count


@pytest.mark.parametrize("kind", POSTGRES_KINDS)
async def test_a_watcher_hears_which_run_another_store_changed(
    kind: str, tmp_path: Path, empty_postgres: str
) -> None:
    """Commits of drives, claims and cancels alike; its own store's are no news."""
    async with (
        opened(sql_store(kind, tmp_path, empty_postgres)) as mine,
        opened(sql_store(kind, tmp_path, empty_postgres)) as theirs,
    ):
        run, own = await create_running(theirs), await create_running(mine)
        free = await create_running(theirs, lease=None)
        async with watching(mine) as ear:
            await mine.commit(step(own), owner=OWNER, token=1)
            await theirs.commit(step(run), owner=OWNER, token=1)
            await theirs.claim_run(free.id, OTHER, at(1), taken_by(OTHER))
            await theirs.cancel_run(run.id, step)
            assert await ear.wait_for(4) == [None, run.id, free.id, run.id]


@pytest.mark.parametrize("kind", POSTGRES_KINDS)
async def test_a_watcher_takes_no_connection_from_the_pool_and_leaves_none(
    kind: str, tmp_path: Path, empty_postgres: str, admin: Engine
) -> None:
    engine = make_engine(kind, tmp_path, empty_postgres)
    async with opened(SQLAlchemyStore(engine)) as store:
        async with watching(store):
            assert listeners(admin) == 1
            assert checked_out(engine) == 0
            await wait_all_tasks_blocked()
        with trio.fail_after(300):
            while listeners(admin):
                await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("kind", POSTGRES_KINDS)
async def test_a_watcher_listens_again_after_its_connection_broke(
    kind: str, tmp_path: Path, empty_postgres: str, admin: Engine
) -> None:
    """What was committed in between is covered by the report of any run."""
    async with (
        opened(sql_store(kind, tmp_path, empty_postgres)) as mine,
        opened(sql_store(kind, tmp_path, empty_postgres)) as theirs,
    ):
        run = await create_running(theirs)
        async with watching(mine) as ear:
            with admin.begin() as connection:
                connection.execute(text(f"SELECT pg_terminate_backend(pid) {LISTENING}"))
            # Once for the pause, once for the new connection.
            assert await ear.wait_for(3) == [None] * 3
            await theirs.commit(step(run), owner=OWNER, token=1)
            assert (await ear.wait_for(4))[-1] == run.id


async def test_news_of_too_many_runs_is_news_of_any(tmp_path: Path, empty_postgres: str) -> None:
    engine = make_engine("psycopg", tmp_path, empty_postgres)
    assert isinstance(engine, Engine)
    async with (
        opened(sql_store("asyncpg", tmp_path, empty_postgres)) as store,
        watching(store) as ear,
    ):
        for count in (3, 300):
            with engine.begin() as connection:
                ids = [new_id("run_") for _ in range(count)]
                PostgresBulk().log(connection, [], ids)
        assert (await ear.wait_for(5))[-1] is None
    engine.dispose()


def test_a_listener_passes_over_its_own_news() -> None:
    engines = [create_engine("postgresql+psycopg://x/y") for _ in range(2)]
    mine, theirs = map(origin, engines)
    assert told_runs(f"{mine} run_1", mine) == []
    assert told_runs(f"{theirs} run_1 run_2", mine) == ["run_1", "run_2"]
    assert told_runs(theirs, mine) == [None]


async def test_without_a_connection_a_watcher_polls_and_tries_ever_more_rarely(
    autojump_clock: MockClock,
) -> None:
    times: list[float] = []

    async def run(job: Callable[[Engine], Any]) -> Any:
        raise ConnectionRefusedError

    with trio.move_on_after(20):
        await notify.listen(run, lambda _: times.append(trio.current_time()), 30)
    pauses = [later - earlier for earlier, later in zip([0, *times], times, strict=False)]
    assert pauses == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5])


async def test_a_watcher_is_told_now_and_then_though_nothing_is_heard(
    tmp_path: Path, empty_postgres: str
) -> None:
    """A proxy may swallow notifications."""
    async with (
        opened(sql_store("asyncpg", tmp_path, empty_postgres)) as store,
        watching(store, poll_seconds=0.001) as ear,
    ):
        assert await ear.wait_for(4) == [None] * 4
