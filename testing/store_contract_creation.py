"""Contract of creating, retrying and replacing runs. Source: docs/testing.md#stores."""

# ruff: noqa: D102 - the name of a test is its sentence
from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import trio

from rungent.errors import (
    ActiveRunConflict,
    IdempotencyKeyReused,
    NotFound,
    RunNotRetryable,
    RuntimeBusy,
)
from rungent.records import Run, RunStatus, Session
from rungent.store.port import Commit, Created, Creation, Store
from rungent.testing.store_samples import (
    OWNER,
    creation_of,
    ended,
    event_of,
    interaction_of,
    message_of,
    session_of,
    step,
)

__all__ = ["CreationContract"]

KEY: dict[str, Any] = {"idempotency_key": "key", "request_digest": "d" * 64}


class CreationContract:
    """Every rule that may forbid a run, and that a forbidden run leaves no trace."""

    async def test_a_run_is_created_with_its_message_and_events(self, store: Store) -> None:
        session = await stored_session(store)
        creation = creation_of(session, event_seq=1)
        run = creation.commit.run
        event = event_of(run, 1, "run.started", status="running")
        created = await store.create_run(
            replace(creation, commit=replace(creation.commit, events=(event,)))
        )
        assert created == Created(run, position=1)
        assert await store.get_run(run.id) == run
        assert await store.list_events(run.id, after=0, limit=9) == [event]
        [message] = await store.list_messages(session.id)
        assert (message.id, message.position) == (run.input_message_id, 1)
        assert (await store.get_session(session.id)).message_count == 1

    async def test_a_creator_learns_the_place_of_the_message(self, store: Store) -> None:
        session = await stored_session(store)
        first = (await store.create_run(creation_of(session))).run
        await store.commit(
            ended(first, RunStatus.FAILED, failure_retryable=True), owner=OWNER, token=1
        )
        again = await store.create_run(retry_of(session, first))
        assert again.position is None
        await store.commit(ended(again.run, RunStatus.COMPLETED), owner=OWNER, token=1)
        assert (await store.create_run(creation_of(session))).position == 2

    @pytest.mark.parametrize("status", ["queued", "running", "waiting_input", "waiting_external"])
    async def test_an_active_run_forbids_another(self, store: Store, status: str) -> None:
        session = await stored_session(store)
        first = await store.create_run(creation_of(session, status=RunStatus(status)))
        with pytest.raises(ActiveRunConflict) as caught:
            await store.create_run(creation_of(session))
        assert (caught.value.run_id, caught.value.status) == (first.run.id, status)
        assert await store.list_runs(session.id, limit=9) == [first.run]
        assert len(await store.list_messages(session.id)) == 1

    async def test_a_run_may_follow_an_ended_one(self, store: Store) -> None:
        session = await stored_session(store)
        first = (await store.create_run(creation_of(session))).run
        await store.commit(ended(first), owner=OWNER, token=1)
        second = await store.create_run(creation_of(session))
        assert await store.get_run(second.run.id) == second.run

    async def test_the_same_key_and_request_replays_the_run(self, store: Store) -> None:
        """The earlier run is returned with its current status, before the active-run rule."""
        session = await stored_session(store)
        first = (await store.create_run(creation_of(session, **KEY))).run
        assert await store.create_run(creation_of(session, **KEY)) == Created(first, replayed=True)
        done = ended(first)
        await store.commit(done, owner=OWNER, token=1)
        assert await store.create_run(creation_of(session, **KEY)) == Created(done.run, True)
        assert len(await store.list_messages(session.id)) == 1

    async def test_the_same_key_for_another_request_is_refused(self, store: Store) -> None:
        session = await stored_session(store)
        first = (await store.create_run(creation_of(session, **KEY))).run
        with pytest.raises(IdempotencyKeyReused) as caught:
            await store.create_run(creation_of(session, **KEY | {"request_digest": "e" * 64}))
        assert caught.value.run_id == first.id

    async def test_a_key_belongs_to_one_session(self, store: Store) -> None:
        for _ in range(2):
            created = await store.create_run(creation_of(await stored_session(store), **KEY))
            assert not created.replayed

    async def test_a_waiting_run_is_replaced_in_the_same_transaction(self, store: Store) -> None:
        session = await stored_session(store)
        waiting, question = await waiting_run(store, session)
        creation = replace(creation_of(session), replace_waiting=cancelled_with(question.id))
        created = await store.create_run(creation)
        assert created.replaced is not None
        assert created.replaced.run == await store.get_run(waiting.id)
        assert created.replaced.run.status is RunStatus.CANCELLED
        assert await store.get_run(created.run.id) == created.run
        events = await store.list_events(waiting.id, after=0, limit=9)
        assert events[-1:] == list(created.replaced.events)
        assert (await store.get_interaction(question.id)).status == "resolved"

    @pytest.mark.parametrize("status", ["queued", "running", "waiting_external"])
    async def test_only_a_run_that_waits_for_input_is_replaced(
        self, store: Store, status: str
    ) -> None:
        session = await stored_session(store)
        first = (await store.create_run(creation_of(session, status=RunStatus(status)))).run
        with pytest.raises(ActiveRunConflict):
            await store.create_run(replace(creation_of(session), replace_waiting=ended))
        assert await store.get_run(first.id) == first

    async def test_a_retryable_failure_can_be_retried_once(self, store: Store) -> None:
        """The second retry must name the first one: only the newest run qualifies.

        All runs have the same time, so a store cannot tell their order by the clock alone.
        """
        session = await stored_session(store)
        first = await failed_run(store, session)
        retry = await store.create_run(retry_of(session, first))
        assert await store.get_run(retry.run.id) == retry.run
        assert len(await store.list_messages(session.id)) == 1
        failure = step(
            retry.run,
            seconds=0,
            status=RunStatus.FAILED,
            lease=None,
            failure_code="provider_error",
            failure_retryable=True,
        )
        await store.commit(failure, owner=OWNER, token=1)
        with pytest.raises(RunNotRetryable) as caught:
            await store.create_run(retry_of(session, first))
        assert caught.value.status == "failed"
        assert not (await store.create_run(retry_of(session, failure.run))).replayed

    async def test_a_run_before_a_newer_message_cannot_be_retried(self, store: Store) -> None:
        session = await stored_session(store)
        first = await failed_run(store, session)
        second = await failed_run(store, session)
        with pytest.raises(RunNotRetryable):
            await store.create_run(retry_of(session, first))
        assert (await store.create_run(retry_of(session, second))).run.retried_from == second.id

    async def test_other_ends_cannot_be_retried(self, store: Store) -> None:
        ends: list[dict[str, Any]] = [
            {"status": RunStatus.COMPLETED},
            {"status": RunStatus.CANCELLED},
            {"status": RunStatus.FAILED, "failure_retryable": False},
        ]
        for changes in ends:
            session = await stored_session(store)
            run = (await store.create_run(creation_of(session))).run
            after = step(run, lease=None, **changes)
            await store.commit(after, owner=OWNER, token=1)
            with pytest.raises(RunNotRetryable) as caught:
                await store.create_run(retry_of(session, run))
            assert caught.value.status == changes["status"]
            assert await store.list_runs(session.id, limit=9) == [after.run]

    async def test_a_run_of_another_session_cannot_be_retried(self, store: Store) -> None:
        failed = await failed_run(store, await stored_session(store))
        with pytest.raises(NotFound):
            await store.create_run(retry_of(await stored_session(store), failed))

    async def test_a_replayed_retry_comes_before_the_retry_rule(self, store: Store) -> None:
        session = await stored_session(store)
        failed = await failed_run(store, session)
        retry = await store.create_run(retry_of(session, failed, **KEY))
        assert await store.create_run(retry_of(session, failed, **KEY)) == Created(retry.run, True)

    async def test_a_refusal_comes_last_and_changes_nothing(self, store: Store) -> None:
        session = await stored_session(store)
        first = (await store.create_run(creation_of(session, **KEY))).run
        refusal = RuntimeBusy()
        again = replace(creation_of(session, **KEY), refusal=refusal)
        assert (await store.create_run(again)).replayed
        with pytest.raises(ActiveRunConflict):
            await store.create_run(replace(creation_of(session), refusal=refusal))
        waiting = ended(first, RunStatus.WAITING_INPUT)
        await store.commit(waiting, owner=OWNER, token=1)
        refused = replace(creation_of(session), refusal=refusal, replace_waiting=ended)
        with pytest.raises(RuntimeBusy) as caught:
            await store.create_run(refused)
        assert caught.value is refusal
        assert await store.list_runs(session.id, limit=9) == [waiting.run]

    async def test_of_many_creators_at_once_one_wins(self, store: Store) -> None:
        session = await stored_session(store)
        created: list[str] = []
        named: list[str] = []

        async def create() -> None:
            try:
                created.append((await store.create_run(creation_of(session))).run.id)
            except ActiveRunConflict as conflict:
                named.append(conflict.run_id)

        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(create)
        assert len(created) == 1
        assert named == created * 7
        assert len(await store.list_messages(session.id)) == 1

    async def test_of_many_equal_requests_at_once_one_creates(self, store: Store) -> None:
        session = await stored_session(store)
        results: list[Created] = []

        async def create() -> None:
            results.append(await store.create_run(creation_of(session, **KEY)))

        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(create)
        assert [result.replayed for result in results].count(False) == 1
        assert len({result.run.id for result in results}) == 1


async def stored_session(store: Store) -> Session:
    """A new session in the store."""
    session = session_of()
    await store.create_session(session)
    return session


async def waiting_run(store: Store, session: Session) -> tuple[Run, Any]:
    """A run that waits for the answer to a question."""
    run = (await store.create_run(creation_of(session))).run
    question = interaction_of(run)
    parked = ended(run, RunStatus.WAITING_INPUT)
    await store.commit(replace(parked, interactions=(question,)), owner=OWNER, token=1)
    return parked.run, question


def cancelled_with(interaction_id: str) -> Any:
    """What turns the waiting run into its cancelled form."""

    def cancel(run: Run) -> Commit:
        commit = ended(run, RunStatus.CANCELLED)
        resolved = interaction_of(
            run,
            id=interaction_id,
            status="resolved",
            outcome="cancelled",
            resolved_at=run.updated_at,
        )
        note = message_of(run, "{}", role="tool", tool_call_id="call00001", public=False)
        return replace(commit, interactions=(resolved,), messages=(note,))

    return cancel


async def failed_run(store: Store, session: Session) -> Run:
    """A run that failed retryably, in no time."""
    run = (await store.create_run(creation_of(session))).run
    failure = step(run, seconds=0, status=RunStatus.FAILED, lease=None, failure_retryable=True)
    await store.commit(failure, owner=OWNER, token=1)
    return failure.run


def retry_of(session: Session, run: Run, **changes: Any) -> Creation:
    """A retry: the same user message, no new one."""
    creation = creation_of(
        session, retried_from=run.id, input_message_id=run.input_message_id, **changes
    )
    return replace(creation, retry_of=run.id)
