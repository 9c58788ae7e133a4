"""Group commit: who writes what together, and that a bad unit harms only itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import IntegrityError, OperationalError
from trio.testing import wait_all_tasks_blocked

from rungent.errors import StaleRun
from rungent.persistence import SQLAlchemyStore
from rungent.persistence.commits import DriveCommit
from rungent.persistence.grouping import GroupCommit, Verdict, write_batch
from rungent.records import Run
from rungent.testing.store_samples import OWNER, create_running, run_of, session_of, step
from tests.persistence.stores import make_engine, opened, postgres_for


def unit(run: Run) -> DriveCommit:
    return DriveCommit(step(run), OWNER, 1)


class Recorder:
    """A writer that waits for permission and notes what it was given."""

    def __init__(self) -> None:
        self.batches: list[list[DriveCommit]] = []
        self.allowed = trio.Semaphore(0)
        self.verdicts: dict[str, Exception] = {}

    async def write(self, units: Sequence[DriveCommit]) -> list[Verdict]:
        self.batches.append(list(units))
        await self.allowed.acquire()
        return [self.verdicts.get(unit.commit.run.id) for unit in units]

    @property
    def sizes(self) -> list[int]:
        return [len(batch) for batch in self.batches]


@pytest.fixture
def units() -> list[DriveCommit]:
    return [unit(run_of(session_of())) for _ in range(5)]


async def test_what_arrives_during_a_commit_is_written_together(units: list[DriveCommit]) -> None:
    writer = Recorder()
    group = GroupCommit(writer.write, trio.Lock())
    with trio.fail_after(300):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(group.commit, units[0])
            await wait_all_tasks_blocked()
            for one in units[1:]:
                nursery.start_soon(group.commit, one)
            await wait_all_tasks_blocked()
            assert writer.sizes == [1]
            writer.allowed.release()
            await wait_all_tasks_blocked()
            assert writer.sizes == [1, 4]
            writer.allowed.release()
        writer.allowed.release()
        await group.commit(unit(run_of(session_of())))
    assert writer.sizes == [1, 4, 1]


async def test_what_arrives_while_another_writer_has_its_turn_is_written_together(
    units: list[DriveCommit],
) -> None:
    writer, turn = Recorder(), trio.Lock()
    group = GroupCommit(writer.write, turn)
    writer.allowed.release()
    with trio.fail_after(300):
        async with trio.open_nursery() as nursery, turn:
            for one in units:
                nursery.start_soon(group.commit, one)
            await wait_all_tasks_blocked()
            assert writer.sizes == []
    assert writer.sizes == [5]


async def test_each_committer_gets_its_own_verdict(units: list[DriveCommit]) -> None:
    writer = Recorder()
    group = GroupCommit(writer.write, trio.Lock())
    lost = units[3].commit.run.id
    writer.verdicts[lost] = StaleRun()
    stored: list[str] = []

    async def commit(one: DriveCommit) -> None:
        if one.commit.run.id == lost:
            with pytest.raises(StaleRun):
                await group.commit(one)
        else:
            await group.commit(one)
            stored.append(one.commit.run.id)

    writer.allowed.release()
    with trio.fail_after(300):
        async with trio.open_nursery() as nursery:
            for one in units:
                nursery.start_soon(commit, one)
    assert len(stored) == 4


async def test_a_queued_commit_is_not_given_up_when_its_caller_is_cancelled(
    units: list[DriveCommit],
) -> None:
    writer = Recorder()
    group = GroupCommit(writer.write, trio.Lock())
    stored: list[DriveCommit] = []

    async def commit(one: DriveCommit) -> None:
        await group.commit(one)
        stored.append(one)

    async def commit_all(*, task_status: trio.TaskStatus[trio.CancelScope]) -> None:
        async with trio.open_nursery() as committers:
            for one in units:
                committers.start_soon(commit, one)
            task_status.started(committers.cancel_scope)

    with trio.fail_after(300):
        async with trio.open_nursery() as nursery:
            scope = await nursery.start(commit_all)
            await wait_all_tasks_blocked()
            scope.cancel()
            await wait_all_tasks_blocked()
            assert not stored
            writer.allowed.release()
    assert len(stored) == 5


async def test_a_writer_that_crashes_leaves_nobody_waiting(units: list[DriveCommit]) -> None:
    entered, crash = trio.Event(), trio.Event()
    calls = 0

    async def write(batch: Sequence[DriveCommit]) -> list[Verdict]:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError("gone")
        entered.set()
        await crash.wait()
        return [None] * len(batch)

    group = GroupCommit(write, trio.Lock())
    failures: list[Exception] = []

    async def commit(one: DriveCommit) -> None:
        try:
            await group.commit(one)
        except (OSError, RuntimeError) as error:
            failures.append(error)

    with trio.fail_after(300):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(commit, units[0])
            await entered.wait()
            for one in units[1:3]:
                nursery.start_soon(commit, one)
            await wait_all_tasks_blocked()
            crash.set()
        await group.commit(units[3])
    assert sorted(type(error).__name__ for error in failures) == ["OSError", "RuntimeError"]


@pytest.fixture(params=["inline", "psycopg"])
async def driven(
    tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[tuple[Engine, list[Run]]]:
    """An engine whose database holds four running runs."""
    kind: str = request.param
    engine = make_engine(kind, tmp_path, postgres_for(kind, request))
    assert isinstance(engine, Engine)
    store = SQLAlchemyStore(engine, inline=True)
    async with opened(store):
        yield engine, [await create_running(store) for _ in range(4)]


async def test_a_stale_unit_does_not_spoil_the_batch(driven: tuple[Engine, list[Run]]) -> None:
    engine, runs = driven
    units = [unit(run) for run in runs]
    units[1] = DriveCommit(units[1].commit, OWNER, 9)
    verdicts = write_batch(engine, units)
    assert [type(verdict) for verdict in verdicts] == [type(None), StaleRun, type(None), type(None)]
    assert await stored_versions(engine, runs) == [2, 1, 2, 2]
    assert await stored_events(engine, runs) == [1, 0, 1, 1]


async def test_a_unit_that_the_database_refuses_does_not_spoil_the_batch(
    driven: tuple[Engine, list[Run]],
) -> None:
    engine, runs = driven
    first = unit(runs[0])
    assert write_batch(engine, [first]) == [None]
    units = [unit(run) for run in (first.commit.run, *runs[1:])]
    taken = units[2].commit.events[0].model_copy(update={"id": first.commit.events[0].id})
    units[2] = DriveCommit(replace(units[2].commit, events=(taken,)), OWNER, 1)
    verdicts = write_batch(engine, units)
    expected = [type(None), type(None), IntegrityError, type(None)]
    assert [type(verdict) for verdict in verdicts] == expected
    assert await stored_versions(engine, runs) == [3, 2, 1, 2]
    assert await stored_events(engine, runs) == [2, 1, 0, 1]


async def test_a_batch_that_was_stored_although_its_commit_failed_is_recognised(
    driven: tuple[Engine, list[Run]],
) -> None:
    """The connection breaks after COMMIT took effect: the verdict must still be the truth."""
    engine, runs = driven
    broken: list[bool] = []

    def commit_and_break(connection: Connection) -> None:
        if not broken:
            broken.append(True)
            connection.connection.commit()
            raise OperationalError("COMMIT", {}, OSError("connection lost"))

    event.listen(engine, "commit", commit_and_break)
    stale = DriveCommit(step(runs[3]), OWNER, 9)
    units = [*(unit(run) for run in runs[:3])]
    assert write_batch(engine, units) == [None] * 3
    assert broken
    assert type(write_batch(engine, [stale])[0]) is StaleRun
    assert await stored_versions(engine, runs) == [2, 2, 2, 1]


async def test_two_units_of_one_run_are_taken_in_order(driven: tuple[Engine, list[Run]]) -> None:
    engine, runs = driven
    first = unit(runs[0])
    assert write_batch(engine, [first, unit(first.commit.run)]) == [None, None]
    assert await stored_versions(engine, runs[:1]) == [3]


async def stored_versions(engine: Engine, runs: Sequence[Run]) -> list[int]:
    store = SQLAlchemyStore(engine, inline=True)
    async with store.open():
        return [(await store.get_run(run.id)).version for run in runs]


async def stored_events(engine: Engine, runs: Sequence[Run]) -> list[int]:
    store = SQLAlchemyStore(engine, inline=True)
    async with store.open():
        return [len(await store.list_events(run.id, after=0, limit=9)) for run in runs]
