"""Two stores on one database, as two processes have them: races end in the right error."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from sqlalchemy import Connection, create_engine, select, text

from rungent.errors import ActiveRunConflict, RunNotRetryable, StaleRun
from rungent.persistence.tables import runs
from rungent.records import Run, RunStatus
from rungent.store import Store
from rungent.store.port import Created
from rungent.testing.store_contract_changes import taken_by
from rungent.testing.store_contract_creation import (
    KEY,
    cancelled_with,
    failed_run,
    retry_of,
    stored_session,
    waiting_run,
)
from rungent.testing.store_samples import (
    AGENT,
    OWNER,
    at,
    create_running,
    creation_of,
    message_of,
    step,
)
from tests.persistence.stores import FILE_KINDS, POSTGRES_KINDS, opened, postgres_for, sql_store

ROUNDS = 6


@pytest.fixture(params=[*FILE_KINDS, *POSTGRES_KINDS])
async def rivals(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[tuple[Store, Store]]:
    kind: str = request.param
    postgres = postgres_for(kind, request)
    async with (
        opened(sql_store(kind, tmp_path, postgres)) as one,
        opened(sql_store(kind, tmp_path, postgres)) as other,
    ):
        yield one, other


async def test_of_rival_creators_one_wins_and_the_others_learn_who(
    rivals: tuple[Store, Store],
) -> None:
    for _ in range(ROUNDS):
        session = await stored_session(rivals[0])
        created: list[str] = []
        named: list[str] = []

        async def create(store: Store) -> None:
            try:
                created.append((await store.create_run(creation_of(session))).run.id)  # noqa: B023
            except ActiveRunConflict as conflict:
                named.append(conflict.run_id)  # noqa: B023

        async with trio.open_nursery() as nursery:
            for store in rivals * 2:
                nursery.start_soon(create, store)
        assert len(created) == 1
        assert named == created * 3


async def test_of_rival_equal_requests_one_creates_and_the_others_replay(
    rivals: tuple[Store, Store],
) -> None:
    for _ in range(ROUNDS):
        session = await stored_session(rivals[0])
        results: list[Created] = []

        async def create(store: Store) -> None:
            results.append(await store.create_run(creation_of(session, **KEY)))  # noqa: B023

        async with trio.open_nursery() as nursery:
            for store in rivals * 2:
                nursery.start_soon(create, store)
        assert sorted(result.replayed for result in results) == [False, True, True, True]
        assert len({result.run.id for result in results}) == 1


async def test_of_rival_retries_one_wins(rivals: tuple[Store, Store]) -> None:
    for _ in range(ROUNDS):
        session = await stored_session(rivals[0])
        failed = await failed_run(rivals[0], session)
        won: list[Created] = []

        async def retry(store: Store) -> None:
            with suppress(ActiveRunConflict, RunNotRetryable):
                won.append(await store.create_run(retry_of(session, failed)))  # noqa: B023

        async with trio.open_nursery() as nursery:
            for store in rivals * 2:
                nursery.start_soon(retry, store)
        assert len(won) == 1


async def test_a_waiting_run_is_replaced_by_one_rival_only(rivals: tuple[Store, Store]) -> None:
    for _ in range(ROUNDS):
        session = await stored_session(rivals[0])
        waiting, question = await waiting_run(rivals[0], session)
        won: list[Created] = []

        async def replace_it(store: Store) -> None:
            wanted = replace(
                creation_of(session),  # noqa: B023
                replace_waiting=cancelled_with(question.id),  # noqa: B023
            )
            with suppress(ActiveRunConflict):
                won.append(await store.create_run(wanted))  # noqa: B023

        async with trio.open_nursery() as nursery:
            for store in rivals * 2:
                nursery.start_soon(replace_it, store)
        assert len(won) == 1
        assert (await rivals[1].get_run(waiting.id)).status is RunStatus.CANCELLED
        # Question, its cancelled answer, and the new question.
        assert len(await rivals[1].list_messages(session.id)) == 3


async def test_of_rival_claimers_one_wins(rivals: tuple[Store, Store]) -> None:
    for _ in range(ROUNDS):
        run = await create_running(rivals[0], lease=None)
        won: list[str] = []

        async def claim(store: Store, owner: str) -> None:
            with suppress(StaleRun):
                await store.claim_run(run.id, owner, at(1), taken_by(owner))  # noqa: B023
                won.append(owner)  # noqa: B023

        async with trio.open_nursery() as nursery:
            for number, store in enumerate(rivals * 2):
                nursery.start_soon(claim, store, f"wrk_{number}")
        assert len(won) == 1
        lease = (await rivals[0].get_run(run.id)).lease
        assert lease is not None
        assert lease.owner == won[0]


async def test_batches_decisions_and_renewals_of_rivals_do_not_block_each_other(
    rivals: tuple[Store, Store],
) -> None:
    """Commits with messages touch runs and sessions; a wrong order of locks would deadlock."""
    driven = [await create_running(rivals[0]) for _ in range(6)]
    tokens = {run.id: 1 for run in reversed(driven)}

    async def drive(store: Store, number: int) -> None:
        run = driven[number]
        for _ in range(15):
            commit = step(run)
            commit = replace(commit, messages=(message_of(run, "x"),))
            await store.commit(commit, owner=OWNER, token=1)
            run = commit.run

    async def renew(store: Store) -> None:
        for _ in range(15):
            assert await store.renew_lease(tokens, OWNER, at(60)) == set(tokens)

    with trio.fail_after(300):
        async with trio.open_nursery() as nursery:
            for number in range(6):
                nursery.start_soon(drive, rivals[number % 2], number)
            for store in rivals:
                nursery.start_soon(renew, store)
    for run in driven:
        assert (await rivals[1].get_run(run.id)).event_seq == 15
        messages = await rivals[1].list_messages(run.session_id)
        assert [message.position for message in messages] == list(range(1, 17))


@pytest.fixture
async def postgres_rival(
    empty_postgres: str, tmp_path: Path
) -> AsyncIterator[tuple[Store, Connection]]:
    """A store, and a connection of somebody else."""
    engine = create_engine(f"postgresql+psycopg{empty_postgres}")
    async with opened(sql_store("asyncpg", tmp_path, empty_postgres)) as store:
        with engine.connect() as connection:
            yield store, connection
    engine.dispose()


def lock(connection: Connection, run: Run) -> None:
    connection.execute(select(runs.c.id).where(runs.c.id == run.id).with_for_update())


async def test_a_run_that_somebody_else_is_claiming_is_given_up_at_once(
    postgres_rival: tuple[Store, Connection],
) -> None:
    """Many workers see the same free run; only one of them works on it."""
    store, rival = postgres_rival
    run = await create_running(store, lease=None)
    lock(rival, run)
    with trio.fail_after(300), pytest.raises(StaleRun):
        await store.claim_run(run.id, OWNER, at(1), taken_by(OWNER))
    rival.rollback()
    await store.claim_run(run.id, OWNER, at(1), taken_by(OWNER))


async def test_a_worker_waits_for_the_run_that_is_reserved_for_it(
    postgres_rival: tuple[Store, Connection],
) -> None:
    """Whoever holds the row may just be renewing the lease."""
    store, rival = postgres_rival
    run = await create_running(store, status=RunStatus.QUEUED, fencing_token=0)
    lock(rival, run)
    claimed: list[Run] = []

    async def claim() -> None:
        claimed.append(await store.claim_run(run.id, OWNER, at(1), taken_by(OWNER)))

    waiting = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    with trio.fail_after(300):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(claim)
            while not rival.scalar(waiting):
                await trio.lowlevel.checkpoint()
            rival.rollback()
    assert [each.status for each in claimed] == [RunStatus.RUNNING]


async def test_many_workers_share_many_runs_without_waiting_for_each_other(
    rivals: tuple[Store, Store],
) -> None:
    """Each run is claimed once, though all look at the same list."""
    made = [await create_running(rivals[0], lease=None) for _ in range(20)]
    won: list[str] = []

    async def sweep(store: Store, owner: str) -> None:
        for run in await store.list_claimable([AGENT], owner, at(1), limit=50):
            with suppress(StaleRun):
                await store.claim_run(run.id, owner, at(1), taken_by(owner))
                won.append(run.id)

    with trio.fail_after(300):
        async with trio.open_nursery() as nursery:
            for number, store in enumerate(rivals * 4):
                nursery.start_soon(sweep, store, f"wrk_{number}")
    assert sorted(won) == sorted(run.id for run in made)
