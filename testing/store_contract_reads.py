"""Contract of a store's sessions, messages and pages. Source: docs/testing.md#stores."""

# ruff: noqa: D102 - the name of a test is its sentence
from __future__ import annotations

from dataclasses import replace
from datetime import timedelta, timezone

import pytest
import trio
import trio.testing

from rungent.errors import NotFound
from rungent.identity import Identity
from rungent.records import Run, RunState, RunStatus, Session, ToolCall
from rungent.store.port import Cursor, Store
from rungent.testing.store_samples import (
    AGENT,
    OTHER,
    OWNER,
    at,
    create_running,
    creation_of,
    ended,
    message_of,
    session_of,
    step,
)

__all__ = ["ReadContract"]

ADA = Identity("ada")


class ReadContract:
    """What goes in comes out, in order and in pages."""

    async def test_a_session_comes_back_as_it_was(self, store: Store) -> None:
        session = session_of(tenant_id="acme", title="Trip", created_at=at(1.000001))
        await store.create_session(session)
        assert await store.get_session(session.id) == session

    async def test_missing_things_are_not_found(self, store: Store) -> None:
        with pytest.raises(NotFound):
            await store.get_session("ses_none")
        with pytest.raises(NotFound):
            await store.set_title("ses_none", "x", at(0))
        with pytest.raises(NotFound):
            await store.get_run("run_none")
        with pytest.raises(NotFound):
            await store.get_interaction("int_none")
        with pytest.raises(NotFound):
            await store.create_run(creation_of(session_of()))
        with pytest.raises(NotFound):
            await store.claim_run("run_none", OWNER, at(0), step)
        with pytest.raises(NotFound):
            await store.cancel_run("run_none", step)
        with pytest.raises(NotFound):
            await store.resolve_interaction("run_none", "x", lambda run, _: step(run))
        for change in (store.complete_task, store.report_task):
            with pytest.raises(NotFound):
                await change("run_none", "x", lambda run, _: step(run))

    async def test_a_list_of_something_missing_is_empty(self, store: Store) -> None:
        assert await store.list_messages("ses_none") == []
        assert await store.list_runs("ses_none", limit=5) == []
        assert await store.list_claims("run_none") == []
        assert await store.list_events("run_none", after=0, limit=5) == []

    async def test_sessions_are_listed_for_their_owner_only(self, store: Store) -> None:
        mine = session_of()
        others = [
            session_of("bob"),
            session_of(tenant_id="acme"),
            session_of(agent_name="other"),
        ]
        for session in (mine, *others):
            await store.create_session(session)
        assert await store.list_sessions(ADA, [AGENT], limit=9) == [mine]
        tenant = Identity("ada", "acme")
        assert await store.list_sessions(tenant, [AGENT], limit=9) == [others[1]]
        assert await store.list_sessions(ADA, [], limit=9) == []

    async def test_pages_of_sessions_run_from_the_newest(self, store: Store) -> None:
        """Sessions with the same time are told apart by their id."""
        sessions = [session_of(updated_at=at(n // 2)) for n in range(7)]
        for session in sessions:
            await store.create_session(session)
        expected = sorted(sessions, key=lambda s: (s.updated_at, s.id), reverse=True)
        found: list[Session] = []
        after: Cursor | None = None
        while page := await store.list_sessions(ADA, [AGENT], limit=3, after=after):
            assert len(page) <= 3
            found += page
            after = (page[-1].updated_at, page[-1].id)
        assert found == expected

    async def test_a_title_is_set_and_cleared(self, store: Store) -> None:
        session = session_of()
        await store.create_session(session)
        changed = await store.set_title(session.id, "Zürich", at(5))
        assert changed == session.model_copy(update={"title": "Zürich", "updated_at": at(5)})
        assert await store.get_session(session.id) == changed
        cleared = await store.set_title(session.id, None, at(6))
        assert cleared.title is None
        assert await store.get_session(session.id) == cleared

    async def test_messages_get_positions_in_the_order_of_commits(self, store: Store) -> None:
        run = await create_running(store)
        call = ToolCall("book", {"seat": "4a", "none": None}, "c1")
        added = (
            message_of(run, "", role="assistant", tool_calls=(call, ToolCall("x")), public=False),
            message_of(run, "{}", role="tool", tool_call_id="c1", name="book", public=False),
        )
        await store.commit(replace(step(run), messages=added), owner=OWNER, token=1)
        found = await store.list_messages(run.session_id)
        assert [m.position for m in found] == [1, 2, 3]
        assert found[0].id == run.input_message_id
        assert [m.model_copy(update={"position": 0}) for m in found[1:]] == list(added)
        session = await store.get_session(run.session_id)
        assert (session.message_count, session.updated_at) == (3, at(1))

    async def test_messages_are_read_behind_a_position(self, store: Store) -> None:
        run = await create_running(store)
        added = tuple(message_of(run, str(n)) for n in range(4))
        await store.commit(replace(step(run), messages=added), owner=OWNER, token=1)
        page = await store.list_messages(run.session_id, after=2, limit=2)
        assert [m.position for m in page] == [3, 4]
        assert await store.list_messages(run.session_id, after=5) == []

    async def test_a_commit_without_messages_leaves_the_session_alone(self, store: Store) -> None:
        run = await create_running(store)
        before = await store.get_session(run.session_id)
        await store.commit(step(run), owner=OWNER, token=1)
        assert await store.get_session(run.session_id) == before

    async def test_a_run_comes_back_as_it_was(self, store: Store) -> None:
        run = await create_running(
            store,
            status=RunStatus.QUEUED,
            idempotency_key="key",
            request_digest="d" * 64,
            model_steps=3,
            state=RunState(initialised=True, done={"f": "c"}, recoveries=2),
            created_at=at(1.000001),
        )
        assert await store.get_run(run.id) == run

    async def test_times_come_back_in_utc_with_microseconds(self, store: Store) -> None:
        """Whatever zone they were given in."""
        tokyo = timezone(timedelta(hours=9))
        moment = at(0.000001)
        run = await create_running(store, created_at=moment.astimezone(tokyo))
        await store.commit(step(run), owner=OWNER, token=1)
        found = await store.get_run(run.id)
        [event] = await store.list_events(run.id, after=0, limit=1)
        assert found.created_at == moment
        assert found.created_at.microsecond == moment.microsecond
        assert found.lease is not None
        for time in (found.updated_at, found.lease.expires_at, event.created_at):
            assert time.utcoffset() == timedelta(0)

    async def test_pages_of_runs_run_from_the_oldest(self, store: Store) -> None:
        session = session_of()
        await store.create_session(session)
        for n in range(5):
            await store.create_run(
                creation_of(session, status=RunStatus.COMPLETED, lease=None, created_at=at(n // 2))
            )
        found: list[Run] = []
        after: Cursor | None = None
        while page := await store.list_runs(session.id, limit=2, after=after):
            found += page
            after = (page[-1].created_at, page[-1].id)
        assert len(found) == 5
        assert found == sorted(found, key=lambda run: (run.created_at, run.id))

    async def test_events_come_back_in_order_and_in_pages(self, store: Store) -> None:
        run = await create_running(store)
        first = step(run, events=3)
        await store.commit(first, owner=OWNER, token=1)
        second = step(first.run, events=2)
        await store.commit(second, owner=OWNER, token=1)
        written = list(first.events + second.events)
        assert await store.list_events(run.id, after=0, limit=100) == written
        assert await store.list_events(run.id, after=1, limit=2) == written[1:3]
        assert await store.list_events(run.id, after=5, limit=2) == []

    async def test_claimable_runs_are_listed_oldest_first(self, store: Store) -> None:
        free = [await create_running(store, lease=None, created_at=at(n)) for n in (2, 0, 1)]
        await create_running(store)
        await create_running(store, agent_name="other", lease=None)
        found = await store.list_claimable([AGENT], OWNER, at(5), limit=2)
        assert [run.id for run in found] == [free[1].id, free[2].id]

    async def test_claimable_are_runs_without_a_valid_lease_and_own_reservations(
        self, store: Store
    ) -> None:
        queued, running = RunStatus.QUEUED, RunStatus.RUNNING
        reserved = await create_running(store, status=queued)
        leased = await create_running(store, status=running)
        waiting = await create_running(store, status=RunStatus.WAITING_EXTERNAL, lease=None)
        over = await create_running(store, status=RunStatus.COMPLETED, lease=None)

        async def claimable(owner: str, seconds: float) -> set[str]:
            found = await store.list_claimable([AGENT], owner, at(seconds), limit=9)
            return {run.id for run in found}

        assert await claimable(OWNER, 1) == {reserved.id}
        assert await claimable(OTHER, 1) == set()
        assert await claimable(OTHER, 30) == {reserved.id, leased.id}
        assert not {waiting.id, over.id} & await claimable(OWNER, 30)

    async def test_a_watcher_hears_of_a_commit(self, store: Store) -> None:
        """Of the run itself or of any run; it may have been called before."""
        run = await create_running(store)
        heard = trio.Event()
        reports: list[str | None] = []

        def wake(run_id: str | None) -> None:
            reports.append(run_id)
            heard.set()

        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(store.watch, wake, 0.01)
                await trio.testing.wait_all_tasks_blocked()
                await store.commit(step(run), owner=OWNER, token=1)
                await heard.wait()
                nursery.cancel_scope.cancel()
        assert set(reports) <= {None, run.id}

    async def test_a_cancelled_caller_reads_and_changes_nothing(self, store: Store) -> None:
        run = await create_running(store)
        session, free = session_of(), session_of()
        await store.create_session(free)
        with trio.CancelScope() as scope:
            scope.cancel()
            with pytest.raises(trio.Cancelled):
                await store.get_run(run.id)
            with pytest.raises(trio.Cancelled):
                await store.create_session(session)
            with pytest.raises(trio.Cancelled):
                await store.commit(step(run), owner=OWNER, token=1)
            with pytest.raises(trio.Cancelled):
                await store.cancel_run(run.id, lambda r: ended(r, RunStatus.CANCELLED))
            with pytest.raises(trio.Cancelled):
                await store.release_lease(run.id, OWNER, 1)
            with pytest.raises(trio.Cancelled):
                await store.create_run(creation_of(free))
        assert await store.get_run(run.id) == run
        assert await store.list_runs(free.id, limit=1) == []
        with pytest.raises(NotFound):
            await store.get_session(session.id)

    async def test_returned_values_are_frozen(self, store: Store) -> None:
        run = await create_running(store)
        with pytest.raises(ValueError, match="frozen"):
            (await store.get_run(run.id)).version = 9
