"""The database goes away for a while: nothing is lost, nothing comes twice, nobody spins."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from trio.testing import MockClock

from rungent.persistence import SQLAlchemyStore
from rungent.records import Run
from rungent.testing.clock import HoldAutojump
from rungent.testing.store_samples import OWNER, create_running, session_of, step
from tests.persistence.postgres import Server, run_server
from tests.persistence.stores import (
    FILE_KINDS,
    POSTGRES_KINDS,
    checked_out,
    make_engine,
    opened,
)

RUNS = 6


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that may be stopped. Acknowledged is stored, as after a crash of the process."""
    with run_server("-c fsync=off -c synchronous_commit=on") as server:
        yield server


class Drives:
    """Several runs that commit one event after another, and what was acknowledged."""

    def __init__(self, store: SQLAlchemyStore) -> None:
        self._store = store
        self.acknowledged: dict[str, list[str]] = {}
        self._progress = trio.Event()

    async def drive(self, run: Run) -> None:
        events = self.acknowledged[run.id] = []
        while True:
            commit = step(run)
            await self._store.commit(commit, owner=OWNER, token=1)
            run = commit.run
            events.append(commit.events[0].id)
            self._progress.set()
            self._progress = trio.Event()

    async def all_made(self, more: int) -> None:
        """Wait until each run got this many commits through, from now on."""
        goals = {run_id: len(events) + more for run_id, events in self.acknowledged.items()}
        while len(goals) < RUNS or any(
            len(self.acknowledged[run_id]) < goal for run_id, goal in goals.items()
        ):
            await self._progress.wait()
            goals = {run_id: goals.get(run_id, more) for run_id in self.acknowledged}


@pytest.mark.parametrize("kind", POSTGRES_KINDS)
async def test_a_server_that_crashes_and_comes_back_loses_nothing(
    kind: str, tmp_path: Path, server: Server
) -> None:
    engine = make_engine(kind, tmp_path, server.url)
    plain = engine.sync_engine if isinstance(engine, AsyncEngine) else engine
    attempts = 0

    def connecting(*_: object) -> None:
        nonlocal attempts
        attempts += 1

    event.listen(plain, "do_connect", connecting)
    async with opened(SQLAlchemyStore(engine)) as store:
        runs = [await create_running(store) for _ in range(RUNS)]
        drives = Drives(store)
        with trio.fail_after(300):
            async with trio.open_nursery() as nursery:
                for run in runs:
                    nursery.start_soon(drives.drive, run)
                await drives.all_made(5)
                await trio.to_thread.run_sync(server.stop, "immediate")
                attempts = 0
                failures = 0
                for ask in (
                    lambda: store.create_session(session_of()),
                    lambda: store.get_run(runs[0].id),
                ):
                    try:
                        await ask()
                    except Exception:  # noqa: BLE001 - drivers differ
                        failures += 1
                await trio.to_thread.run_sync(server.start)
                tried = attempts
                await store.create_session(session_of())
                await drives.all_made(5)
                nursery.cancel_scope.cancel()
        assert failures == 2
        # The two operations, and a few looks at growing intervals by all drives together.
        assert tried < 40
        assert checked_out(engine) == 0
        for run in runs:
            events = await store.list_events(run.id, after=0, limit=100_000)
            made = drives.acknowledged[run.id]
            # One more may have been stored when its caller was cancelled.
            assert [each.id for each in events][: len(made)] == made
            assert len(events) - len(made) in (0, 1)
            assert [each.seq for each in events] == list(range(1, len(events) + 1))


@pytest.mark.parametrize("kind", POSTGRES_KINDS)
async def test_connections_that_died_in_the_pool_are_replaced_unseen(
    kind: str, tmp_path: Path, server: Server
) -> None:
    async with opened(SQLAlchemyStore(make_engine(kind, tmp_path, server.url))) as store:
        run = await create_running(store)
        for mode in ("fast", "immediate"):
            await trio.to_thread.run_sync(server.stop, mode)
            await trio.to_thread.run_sync(server.start)
            assert await store.get_run(run.id) == run
            await trio.to_thread.run_sync(server.stop, mode)
            await trio.to_thread.run_sync(server.start)
            run = await store.cancel_run(run.id, step)


@pytest.mark.parametrize("kind", FILE_KINDS)
async def test_drives_wait_for_a_locked_file_and_others_are_told(kind: str, tmp_path: Path) -> None:
    """Another program holds the write lock longer than the driver waits."""
    url = f":///{tmp_path / 'runs.db'}"
    engine: Engine | AsyncEngine = (
        create_engine(f"sqlite{url}", connect_args={"timeout": 0.01})
        if kind == "sqlite"
        else create_async_engine(f"sqlite+aiosqlite{url}", connect_args={"timeout": 0.01})
    )
    async with opened(SQLAlchemyStore(engine, configure_sqlite=False)) as store:
        runs = [await create_running(store) for _ in range(RUNS)]
        drives = Drives(store)
        other = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
        with trio.fail_after(300):
            async with trio.open_nursery() as nursery:
                for run in runs:
                    nursery.start_soon(drives.drive, run)
                await drives.all_made(3)
                while not other.in_transaction:
                    try:
                        other.execute("BEGIN EXCLUSIVE")
                    except sqlite3.OperationalError:
                        await trio.lowlevel.checkpoint()
                with pytest.raises(OperationalError, match="locked"):
                    await store.create_session(session_of())
                other.execute("ROLLBACK")
                await drives.all_made(3)
                nursery.cancel_scope.cancel()
        other.close()
        for run in runs:
            events = await store.list_events(run.id, after=0, limit=100_000)
            made = drives.acknowledged[run.id]
            assert [each.id for each in events][: len(made)] == made
            assert len(events) - len(made) in (0, 1)


class Gate:
    """Another process that has the file's write lock while closed, and who was refused then."""

    def __init__(self, file: Path, clock: MockClock) -> None:
        self.engine = create_engine(f"sqlite:///{file}", connect_args={"timeout": 0})
        self.store = SQLAlchemyStore(
            self.engine, inline=True, configure_sqlite=False, hold=HoldAutojump(clock)
        )
        self.refused: list[float] = []
        self._other = sqlite3.connect(file, isolation_level=None)

    def close(self) -> None:
        self._other.execute("BEGIN IMMEDIATE")
        event.listen(self.engine, "begin", self._note)

    def open(self) -> None:
        event.remove(self.engine, "begin", self._note)
        self._other.close()

    def _note(self, _: object) -> None:
        self.refused.append(trio.current_time())


async def test_all_drives_together_ask_ever_more_rarely(
    tmp_path: Path, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """However many wait, and whenever they came, there is one attempt at a time."""
    gate = Gate(tmp_path / "runs.db", autojump_clock)
    async with opened(gate.store) as store:
        runs = [await create_running(store) for _ in range(20)]
        gate.close()

        async def commit_late(number: int) -> None:
            await trio.sleep(number / 10)
            await store.commit(step(runs[number]), owner=OWNER, token=1)

        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(commit_late, number)
            await trio.sleep(10)
            gate.open()
        pauses = [b - a for a, b in zip(gate.refused, gate.refused[1:], strict=False)]
        assert pauses[:5] == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8])
        assert pauses[5:] == pytest.approx([1] * len(pauses[5:]))
        assert trio.current_time() < 11.1
        assert [record.message for record in caplog.records] == [
            "commits wait for the database: OperationalError"
        ]
        for run in runs:
            assert (await store.get_run(run.id)).version == 2


async def test_a_cancelled_drive_stops_waiting_and_stores_nothing_later(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Its worker could not renew the lease, so the runtime stops the drive."""
    gate = Gate(tmp_path / "runs.db", autojump_clock)
    async with opened(gate.store) as store:
        run, other = await create_running(store), await create_running(store)
        gate.close()
        async with trio.open_nursery() as nursery:
            with trio.move_on_after(20) as lease:
                nursery.start_soon(_commit, store, other)
                await store.commit(step(run), owner=OWNER, token=1)
            assert lease.cancelled_caught
            assert trio.current_time() == 20
            gate.open()
        assert (await store.get_run(run.id)) == run
        assert (await store.get_run(other.id)).version == 2


async def _commit(store: SQLAlchemyStore, run: Run) -> None:
    await store.commit(step(run), owner=OWNER, token=1)
