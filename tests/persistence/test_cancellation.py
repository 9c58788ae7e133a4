"""A cancelled caller always learns what happened, and leaves nothing behind."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import trio

from rungent.errors import ActiveRunConflict
from rungent.persistence import SQLAlchemyStore
from rungent.records import Run
from rungent.testing.store_samples import OWNER, create_running, creation_of, session_of, step
from tests.persistence.stores import (
    FILE_KINDS,
    POSTGRES_KINDS,
    checked_out,
    make_engine,
    opened,
    postgres_for,
)

TASKS = 6
ROUNDS = 25
LONGEST = 40


async def go_round(checkpoints: int) -> None:
    for _ in range(checkpoints):
        await trio.lowlevel.checkpoint()


async def cancel_soon(scope: trio.CancelScope, checkpoints: int) -> None:
    await go_round(checkpoints)
    scope.cancel()


@pytest.mark.parametrize("kind", [*FILE_KINDS, "aiosqlite_memory", *POSTGRES_KINDS])
async def test_cancelled_commits_are_stored_exactly_when_acknowledged(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Commits of several runs, in batches, each cancelled after a random number of steps."""
    engine = make_engine(kind, tmp_path, postgres_for(kind, request))
    dice = random.Random(7)
    cancelled = 0

    async def drive(store: SQLAlchemyStore, run: Run) -> None:
        nonlocal cancelled
        acknowledged = run
        written: list[str] = []
        for _ in range(ROUNDS):
            commit = step(acknowledged, events=2)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(cancel_soon, nursery.cancel_scope, dice.randrange(LONGEST))
                await go_round(dice.randrange(LONGEST // 4))
                await store.commit(commit, owner=OWNER, token=1)
                acknowledged = commit.run
                written += [event.id for event in commit.events]
            cancelled += acknowledged is not commit.run
        assert await store.get_run(run.id) == acknowledged
        events = await store.list_events(run.id, after=0, limit=1000)
        assert [event.id for event in events] == written
        assert [event.seq for event in events] == list(range(1, len(written) + 1))

    async with opened(SQLAlchemyStore(engine)) as store:
        with trio.fail_after(300):
            async with trio.open_nursery() as nursery:
                for _ in range(TASKS):
                    nursery.start_soon(drive, store, await create_running(store))
        assert checked_out(engine) == 0
    assert 0 < cancelled < TASKS * ROUNDS


@pytest.mark.parametrize("kind", [*FILE_KINDS, "aiosqlite_memory", *POSTGRES_KINDS])
async def test_cancelled_reads_and_creations_leave_no_connection_in_use(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    engine = make_engine(kind, tmp_path, postgres_for(kind, request))
    dice = random.Random(11)

    async def create_once(store: SQLAlchemyStore) -> None:
        """An unacknowledged run does not exist: creating it again meets no active run."""
        session = session_of()
        await store.create_session(session)
        created = False
        longest = LONGEST
        while not created:
            # However slow the database is, some attempt has time enough.
            longest += longest // 2
            async with trio.open_nursery() as nursery:
                nursery.start_soon(cancel_soon, nursery.cancel_scope, dice.randrange(longest))
                await store.get_session(session.id)
                await store.create_run(creation_of(session))
                created = True
        with pytest.raises(ActiveRunConflict):
            await store.create_run(creation_of(session))
        assert len(await store.list_messages(session.id)) == 1

    async with opened(SQLAlchemyStore(engine)) as store:
        with trio.fail_after(300):
            async with trio.open_nursery() as nursery:
                for _ in range(TASKS):
                    nursery.start_soon(create_once, store)
        assert checked_out(engine) == 0


async def test_leaving_an_open_store_waits_for_a_cancelled_commit(tmp_path: Path) -> None:
    """The nursery around a store is cancelled while commits are under way."""
    engine = make_engine("aiosqlite", tmp_path)
    acknowledged: dict[str, Run] = {}

    async def drive(store: SQLAlchemyStore, run: Run) -> None:
        while True:
            commit = step(run)
            await store.commit(commit, owner=OWNER, token=1)
            run = acknowledged[run.id] = commit.run
            if run.version == 9:
                done.set()

    done = trio.Event()
    with trio.fail_after(300):
        async with trio.open_nursery() as nursery:
            store = await nursery.start(_serve, engine)
            for _ in range(3):
                nursery.start_soon(drive, store, await create_running(store))
            await done.wait()
            nursery.cancel_scope.cancel()
    async with store.open():
        for run in acknowledged.values():
            assert await store.get_run(run.id) == run


async def _serve(
    engine: object, *, task_status: trio.TaskStatus[SQLAlchemyStore] = trio.TASK_STATUS_IGNORED
) -> None:
    store = SQLAlchemyStore(engine)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    async with opened(store):
        task_status.started(store)
        await trio.sleep_forever()
