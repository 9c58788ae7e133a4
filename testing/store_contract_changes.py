"""Contract of commits, decisions, leases and the ledger. Source: docs/testing.md#stores."""

# ruff: noqa: D102 - the name of a test is its sentence
from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

import pytest
import trio

from rungent.errors import RunNotWaiting, StaleRun
from rungent.records import ExternalTask, Interaction, Lease, Run, RunState, RunStatus
from rungent.store.port import Commit, Store
from rungent.testing.store_samples import (
    OTHER,
    OWNER,
    at,
    create_running,
    ended,
    interaction_of,
    message_of,
    started_claim,
    step,
    task_of,
)

__all__ = ["ChangeContract"]


class ChangeContract:
    """One transition is one transaction, and only whoever may makes it."""

    async def test_a_commit_writes_everything_together(self, store: Store) -> None:
        run = await create_running(store)
        state = RunState(initialised=True, step_open=True, done={"print": "call00001"})
        commit = replace(
            step(run, events=2, state=state, model_steps=1),
            messages=(message_of(run, "Thinking", role="assistant"),),
            claims=(started_claim(run),),
            interactions=(interaction_of(run, frozen_call={"name": "book", "arguments": {}}),),
            tasks=(task_of(run),),
        )
        await store.commit(commit, owner=OWNER, token=1)
        assert await store.get_run(run.id) == commit.run
        assert await store.list_events(run.id, after=0, limit=9) == list(commit.events)
        assert await store.list_claims(run.id) == list(commit.claims)
        assert await store.get_interaction(commit.interactions[0].id) == commit.interactions[0]
        assert len(await store.list_messages(run.session_id)) == 2
        seen: list[ExternalTask | None] = []
        await store.report_task(run.id, "job-1", lambda _, task: seen.append(task))
        assert seen == list(commit.tasks)

    async def test_rows_of_the_same_key_are_replaced(self, store: Store) -> None:
        run = await create_running(store)
        question = interaction_of(run)
        first = replace(
            step(run),
            claims=(started_claim(run),),
            interactions=(question,),
            tasks=(task_of(run),),
        )
        await store.commit(first, owner=OWNER, token=1)
        claim = started_claim(run, state="failed", code="tool_error", attempts=2, settled_at=at(3))
        answer = question.model_copy(
            update={"status": "resolved", "outcome": "answered", "response": ["a", None]}
        )
        task = task_of(run, state="completed", public=None, settled_at=at(3))
        second = replace(step(first.run), claims=(claim,), interactions=(answer,), tasks=(task,))
        await store.commit(second, owner=OWNER, token=1)
        assert await store.list_claims(run.id) == [claim]
        assert await store.get_interaction(question.id) == answer
        seen: list[ExternalTask | None] = []
        await store.report_task(run.id, "job-1", lambda _, found: seen.append(found))
        assert seen == [task]

    async def test_a_commit_of_anybody_else_is_stale_and_writes_nothing(self, store: Store) -> None:
        run = await create_running(store)
        commit = replace(step(run), messages=(message_of(run),), claims=(started_claim(run),))
        ahead = step(step(run).run)
        for attempt, owner, token in (
            (commit, OTHER, 1),
            (commit, OWNER, 0),
            (commit, OWNER, 2),
            (ahead, OWNER, 1),
        ):
            with pytest.raises(StaleRun):
                await store.commit(attempt, owner=owner, token=token)
        assert await store.get_run(run.id) == run
        assert await store.list_events(run.id, after=0, limit=9) == []
        assert await store.list_claims(run.id) == []
        assert len(await store.list_messages(run.session_id)) == 1

    async def test_a_commit_is_stored_once(self, store: Store) -> None:
        run = await create_running(store)
        commit = step(run)
        await store.commit(commit, owner=OWNER, token=1)
        with pytest.raises(StaleRun):
            await store.commit(commit, owner=OWNER, token=1)
        assert await store.list_events(run.id, after=0, limit=9) == list(commit.events)

    @pytest.mark.parametrize(
        "status", ["waiting_input", "waiting_external", "completed", "failed", "cancelled"]
    )
    async def test_a_run_that_is_not_running_takes_no_commit(
        self, store: Store, status: str
    ) -> None:
        run = await create_running(store)
        parked = ended(run, RunStatus(status))
        await store.commit(parked, owner=OWNER, token=1)
        with pytest.raises(StaleRun):
            await store.commit(step(parked.run), owner=OWNER, token=1)
        assert await store.get_run(run.id) == parked.run

    async def test_commits_of_an_unknown_run_are_stale(self, store: Store) -> None:
        run = await create_running(store)
        unknown = run.model_copy(update={"id": "run_none"})
        with pytest.raises(StaleRun):
            await store.commit(step(unknown), owner=OWNER, token=1)

    async def test_many_runs_commit_at_once_without_gaps(self, store: Store) -> None:
        """A stale commit among them harms nobody else."""
        runs = [await create_running(store) for _ in range(6)]
        stale: list[str] = []

        async def drive(run: Run) -> None:
            for _ in range(5):
                commit = step(run, events=2)
                await store.commit(commit, owner=OWNER, token=1)
                run = commit.run
                with pytest.raises(StaleRun):
                    await store.commit(commit, owner=OWNER, token=1)
                stale.append(run.id)

        async with trio.open_nursery() as nursery:
            for run in runs:
                nursery.start_soon(drive, run)
        assert len(stale) == 30
        for run in runs:
            events = await store.list_events(run.id, after=0, limit=100)
            assert [event.seq for event in events] == list(range(1, 11))
            assert (await store.get_run(run.id)).event_seq == 10

    async def test_a_commit_never_shortens_a_renewed_lease(self, store: Store) -> None:
        """The drive knows its lease as it was claimed; renewals are newer."""
        run = await create_running(store)
        await store.renew_lease({run.id: 1}, OWNER, at(60))
        first = step(run)
        await store.commit(first, owner=OWNER, token=1)
        assert (await store.get_run(run.id)).lease == Lease(owner=OWNER, expires_at=at(60))
        later = Lease(owner=OWNER, expires_at=at(90))
        second = step(first.run, lease=later)
        await store.commit(second, owner=OWNER, token=1)
        assert (await store.get_run(run.id)).lease == later
        await store.commit(ended(second.run), owner=OWNER, token=1)
        assert (await store.get_run(run.id)).lease is None

    async def test_claiming_commits_the_decision(self, store: Store) -> None:
        run = await create_running(store, status=RunStatus.QUEUED, lease=None, fencing_token=0)
        seen: list[Run] = []

        def claim(found: Run) -> Commit:
            seen.append(found)
            return taken_by(OTHER)(found)

        claimed = await store.claim_run(run.id, OTHER, at(1), claim)
        assert seen[-1] == run
        assert claimed == await store.get_run(run.id)
        assert claimed.lease == Lease(owner=OTHER, expires_at=at(100))
        assert [e.seq for e in await store.list_events(run.id, after=0, limit=9)] == [1]

    async def test_a_leased_run_cannot_be_claimed(self, store: Store) -> None:
        running = await create_running(store)
        queued = await create_running(store, status=RunStatus.QUEUED)
        waiting = await create_running(store, status=RunStatus.WAITING_INPUT, lease=None)
        for run, owner in ((running, OTHER), (running, OWNER), (queued, OTHER), (waiting, OWNER)):
            with pytest.raises(StaleRun):
                await store.claim_run(run.id, owner, at(1), taken_by(owner))
            assert await store.get_run(run.id) == run
        claimed = await store.claim_run(queued.id, OWNER, at(1), taken_by(OWNER))
        assert claimed.status is RunStatus.RUNNING
        taken = await store.claim_run(running.id, OTHER, at(30), taken_by(OTHER))
        assert taken.lease == Lease(owner=OTHER, expires_at=at(100))

    async def test_of_many_claimers_at_once_one_wins(self, store: Store) -> None:
        run = await create_running(store, lease=None)
        won: list[str] = []

        async def claim(owner: str) -> None:
            try:
                await store.claim_run(run.id, owner, at(1), taken_by(owner))
            except StaleRun:
                return
            won.append(owner)

        async with trio.open_nursery() as nursery:
            for n in range(8):
                nursery.start_soon(claim, f"wrk_{n}")
        assert len(won) == 1
        assert (await store.get_run(run.id)).fencing_token == 2

    async def test_a_takeover_makes_the_old_drive_stale(self, store: Store) -> None:
        run = await create_running(store)
        await store.claim_run(run.id, OTHER, at(31), taken_by(OTHER))
        with pytest.raises(StaleRun):
            await store.commit(step(run), owner=OWNER, token=1)

    async def test_an_answer_is_decided_on_the_current_rows(self, store: Store) -> None:
        run = await create_running(store)
        question = interaction_of(run)
        parked = replace(ended(run, RunStatus.WAITING_INPUT), interactions=(question,))
        await store.commit(parked, owner=OWNER, token=1)
        seen: list[tuple[Run, Interaction | None]] = []
        answer = question.model_copy(update={"status": "resolved", "outcome": "answered"})

        def resolve(found: Run, interaction: Interaction | None) -> Commit:
            seen.append((found, interaction))
            return replace(taken_by(OTHER)(found), interactions=(answer,))

        resumed = await store.resolve_interaction(run.id, question.id, resolve)
        assert seen[-1] == (parked.run, question)
        assert resumed == await store.get_run(run.id)
        assert resumed.status is RunStatus.RUNNING
        assert await store.get_interaction(question.id) == answer

    async def test_an_interaction_of_another_run_is_none(self, store: Store) -> None:
        run, other = await create_running(store), await create_running(store)
        question = interaction_of(other)
        await store.commit(replace(step(other), interactions=(question,)), owner=OWNER, token=1)
        seen: list[Interaction | None] = []
        for interaction_id in (question.id, "int_none"):
            await store.resolve_interaction(
                run.id, interaction_id, lambda _, found: seen.append(found)
            )
        assert seen == [None, None]

    async def test_of_many_completions_at_once_one_counts(self, store: Store) -> None:
        run = await create_running(store)
        task = task_of(run)
        parked = replace(ended(run, RunStatus.WAITING_EXTERNAL), tasks=(task,))
        await store.commit(parked, owner=OWNER, token=1)
        settled = task.model_copy(update={"state": "completed", "settled_at": at(2)})
        won: list[Run] = []

        def complete(found: Run, waiting: ExternalTask | None) -> Commit:
            if found.status is not RunStatus.WAITING_EXTERNAL or waiting != task:
                raise RunNotWaiting(found.status)
            return replace(taken_by(OTHER)(found), tasks=(settled,))

        async def report() -> None:
            with suppress(RunNotWaiting):
                won.append(await store.complete_task(run.id, "job-1", complete))

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(report)
        assert won == [await store.get_run(run.id)]

    async def test_progress_of_a_task_is_committed(self, store: Store) -> None:
        run = await create_running(store)
        parked = replace(ended(run, RunStatus.WAITING_EXTERNAL), tasks=(task_of(run),))
        await store.commit(parked, owner=OWNER, token=1)
        reported = await store.report_task(run.id, "job-1", lambda found, _: step(found))
        assert reported == await store.get_run(run.id)
        assert reported.event_seq == 2

    async def test_an_unknown_task_is_none(self, store: Store) -> None:
        run = await create_running(store)
        seen: list[ExternalTask | None] = []
        for change in (store.complete_task, store.report_task):
            await change(run.id, "job-9", lambda _, task: seen.append(task))
        assert seen == [None, None]

    async def test_a_cancel_reaches_a_run_in_any_status(self, store: Store) -> None:
        for status in RunStatus:
            run = await create_running(store, status=status)
            cancelled = await store.cancel_run(run.id, lambda r: ended(r, RunStatus.CANCELLED))
            assert cancelled == await store.get_run(run.id)
            assert cancelled.status is RunStatus.CANCELLED
            with pytest.raises(StaleRun):
                await store.commit(step(run), owner=OWNER, token=1)

    async def test_a_decision_of_none_writes_nothing(self, store: Store) -> None:
        run = await create_running(store)
        free = await create_running(store, lease=None)
        for change in every_decision(store, run, lambda _: None):
            assert await change() == run
        assert await store.claim_run(free.id, OTHER, at(1), lambda _: None) == free
        assert await store.get_run(run.id) == run
        assert await store.get_run(free.id) == free

    async def test_a_decision_that_raises_changes_nothing(self, store: Store) -> None:
        run = await create_running(store)
        refusal = RunNotWaiting("running")

        def refuse(_: Run) -> Commit:
            raise refusal

        for change in every_decision(store, run, refuse):
            with pytest.raises(RunNotWaiting) as caught:
                await change()
            assert caught.value is refusal
        assert await store.get_run(run.id) == run

    async def test_ledger_rows_are_listed_by_their_start(self, store: Store) -> None:
        run = await create_running(store)
        claims = tuple(
            started_claim(run, call, started_at=moment)
            for call, moment in (("c", at(2)), ("b", at(1)), ("d", None), ("a", at(2)))
        )
        await store.commit(replace(step(run), claims=claims), owner=OWNER, token=1)
        assert [claim.call_id for claim in await store.list_claims(run.id)] == ["b", "a", "c", "d"]

    async def test_leases_are_renewed_for_their_holder_only(self, store: Store) -> None:
        held = await create_running(store)
        reserved = await create_running(store, status=RunStatus.QUEUED, fencing_token=0)
        lost = await create_running(store, fencing_token=5)
        foreign = await create_running(store, lease=Lease(owner=OTHER, expires_at=at(30)))
        free = await create_running(store, lease=None)
        tokens = {held.id: 1, reserved.id: 0, lost.id: 4, foreign.id: 1, free.id: 1, "run_none": 1}
        assert await store.renew_lease(tokens, OWNER, at(60)) == {held.id, reserved.id}
        lease = Lease(owner=OWNER, expires_at=at(60))
        assert await store.get_run(held.id) == held.model_copy(update={"lease": lease})
        assert (await store.get_run(reserved.id)).lease == lease
        for run in (lost, foreign, free):
            assert await store.get_run(run.id) == run
        assert await store.renew_lease({}, OWNER, at(60)) == set()

    async def test_a_renewal_does_not_make_the_drive_stale(self, store: Store) -> None:
        run = await create_running(store)
        await store.renew_lease({run.id: 1}, OWNER, at(60))
        await store.commit(step(run), owner=OWNER, token=1)

    async def test_a_lease_is_released_by_its_holder_only(self, store: Store) -> None:
        run = await create_running(store)
        assert not await store.release_lease(run.id, OTHER, 1)
        assert not await store.release_lease(run.id, OWNER, 2)
        assert not await store.release_lease("run_none", OWNER, 1)
        assert await store.get_run(run.id) == run
        assert await store.release_lease(run.id, OWNER, 1)
        assert await store.get_run(run.id) == run.model_copy(update={"lease": None})
        assert not await store.release_lease(run.id, OWNER, 1)


def taken_by(owner: str) -> Callable[[Run], Commit]:
    """The decision that makes `owner` the driver, under a new token."""

    def take(run: Run) -> Commit:
        return step(
            run,
            status=RunStatus.RUNNING,
            lease=Lease(owner=owner, expires_at=at(100)),
            fencing_token=run.fencing_token + 1,
        )

    return take


def every_decision(
    store: Store, run: Run, decide: Callable[[Run], Commit | None]
) -> list[Callable[[], Awaitable[Run]]]:
    """The operations that ask for a decision on a run that is being driven."""
    return [
        lambda: store.cancel_run(run.id, decide),
        lambda: store.resolve_interaction(run.id, "x", lambda found, _: decide(found)),
        lambda: store.complete_task(run.id, "x", lambda found, _: decide(found)),
        lambda: store.report_task(run.id, "x", lambda found, _: decide(found)),
    ]
