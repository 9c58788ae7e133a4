"""One connection writes to an SQLite file, for as long as nothing fails on it."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio
from sqlalchemy import Engine, event
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine
from trio.testing import MockClock

from rungent.errors import ActiveRunConflict, StaleRun
from rungent.persistence import SQLAlchemyStore
from rungent.records import Run
from rungent.testing.clock import HoldAutojump
from rungent.testing.store_samples import OWNER, create_running, creation_of, session_of, step
from tests.persistence.stores import FILE_KINDS, checked_out, make_engine, opened


class Watched:
    """A store, and the driver connections of its engine that are open or were closed."""

    def __init__(self, source: Engine | AsyncEngine) -> None:
        self.source = source
        self.store = SQLAlchemyStore(source)
        self.open: list[Any] = []
        self.closed = 0
        plain = source.sync_engine if isinstance(source, AsyncEngine) else source
        event.listen(plain, "connect", self._connected)
        event.listen(plain, "close", self._closed)
        event.listen(plain, "close_detached", self._closed)

    def _connected(self, connection: Any, _: object) -> None:
        self.open.append(connection)

    def _closed(self, connection: Any, *_: object) -> None:
        self.open.remove(connection)
        self.closed += 1


@pytest.fixture(params=FILE_KINDS)
async def watched(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Watched]:
    found = Watched(make_engine(request.param, tmp_path))
    async with opened(found.store):
        yield found


async def test_all_writes_use_one_connection_that_does_not_count_in_the_pool(
    watched: Watched,
) -> None:
    run = await create_running(watched.store)
    for _ in range(5):
        run = await _advance(watched.store, run)
    writer, *readers = watched.open
    assert not readers
    await watched.store.get_run(run.id)
    assert watched.open[0] is writer
    assert len(watched.open) == 2
    assert checked_out(watched.source) == 0


async def test_closing_the_store_closes_its_connections(tmp_path: Path) -> None:
    for kind in FILE_KINDS:
        watched = Watched(make_engine(kind, tmp_path))
        async with opened(watched.store):
            await watched.store.get_run((await create_running(watched.store)).id)
            assert watched.open
        assert not watched.open


async def test_after_a_failure_the_next_write_has_a_new_connection(watched: Watched) -> None:
    run = await create_running(watched.store)
    run = await _advance(watched.store, run)
    stored = (await watched.store.list_events(run.id, after=0, limit=100))[-1]
    commit = step(run)
    taken = commit.events[0].model_copy(update={"id": stored.id})
    before = watched.closed
    with pytest.raises(IntegrityError) as caught:
        await watched.store.commit(replace(commit, events=(taken,)), owner=OWNER, token=1)
    assert watched.closed > before
    assert stored.id not in str(caught.value)
    await _advance(watched.store, run)


async def test_a_refusal_leaves_the_connection_and_nothing_of_what_was_refused(
    watched: Watched,
) -> None:
    run = await create_running(watched.store)
    again = creation_of(await watched.store.get_session(run.session_id))
    before = watched.closed
    with pytest.raises(ActiveRunConflict):
        await watched.store.create_run(again)
    with pytest.raises(StaleRun):
        await watched.store.cancel_run(run.id, lambda found: step(step(found).run))
    assert watched.closed == before
    assert await watched.store.get_run(run.id) == run
    assert (await _advance(watched.store, run)).version == run.version + 1


async def test_a_connection_that_died_between_two_writes_is_replaced(watched: Watched) -> None:
    async def die() -> None:
        if isinstance(watched.source, Engine):
            watched.open[-1].close()
        else:
            await watched.store._run(lambda _: watched.open[-1].close())  # pyright: ignore[reportPrivateUsage]

    run = await create_running(watched.store)
    await die()
    run = await _advance(watched.store, run)
    await die()
    await watched.store.create_session(session_of())
    assert (await watched.store.get_run(run.id)).version == run.version


async def test_writes_of_many_tasks_take_turns_on_it(watched: Watched) -> None:
    runs = [await create_running(watched.store) for _ in range(20)]
    async with trio.open_nursery() as nursery:
        for run in runs:
            nursery.start_soon(_advance, watched.store, run)
            nursery.start_soon(watched.store.create_session, session_of())
    assert [(await watched.store.get_run(run.id)).version for run in runs] == [2] * 20


async def _advance(store: SQLAlchemyStore, run: Run) -> Run:
    commit = step(run)
    await store.commit(commit, owner=OWNER, token=1)
    return commit.run


async def test_only_commits_of_others_are_reported(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    engine = make_engine("inline", tmp_path)
    store = SQLAlchemyStore(engine, inline=True, hold=HoldAutojump(autojump_clock))
    heard: list[str | None] = []
    async with opened(store), trio.open_nursery() as nursery:
        run = await create_running(store)
        nursery.start_soon(store.watch, heard.append, 0.5)
        await trio.sleep(1.2)
        assert heard == [None], "what came before is unknown"
        for _ in range(3):
            run = await _advance(store, run)
            await trio.sleep(1)
        assert heard == [None]
        with sqlite3.connect(tmp_path / "runs.db") as other:
            other.execute("UPDATE rungent_sessions SET title = 'changed'")
        other.close()
        await trio.sleep(1)
        assert heard == [None, None]
        nursery.cancel_scope.cancel()
