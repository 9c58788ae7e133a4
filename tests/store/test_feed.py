"""What followers cost: nothing while there is no news, one look for all when there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rungent.events import Event
from rungent.records import Run, RunStatus
from rungent.store import MemoryStore
from rungent.store.feed import FIRST_PAGE, LINKS, EventFeed, EventStream
from rungent.store.port import Commit
from rungent.testing.store_samples import OWNER, create_running, step


class CountingStore(MemoryStore):
    """Counts its reads, which take a second."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0
        self.lost = False

    async def list_events(self, run_id: str, *, after: int, limit: int) -> list[Event]:
        self.looks += 1
        found = await super().list_events(run_id, after=after, limit=limit)
        await trio.sleep(1)
        if self.lost:
            raise OSError
        return found

    async def get_run(self, run_id: str) -> Run:
        self.looks += 1
        return await super().get_run(run_id)


async def append(store: MemoryStore, run: Run, count: int = 1, **changes: Any) -> Run:
    commit: Commit = step(run, events=count, **changes)
    await store.commit(commit, owner=OWNER, token=1)
    return commit.run


async def collect(stream: EventStream, into: list[int]) -> None:
    async for event in stream:
        into.append(event.seq)  # noqa: PERF401 - what came before a cancellation counts


@pytest.mark.parametrize("after", [0, 3])
async def test_waiting_again_and_again_costs_no_look(autojump_clock: MockClock, after: int) -> None:
    store = CountingStore()
    run = await append(store, await create_running(store), 3)
    feed = EventFeed(store)
    stream = feed.follow(run.id, after)
    if after == 0:
        assert len(await stream.batch()) == 3
    with trio.move_on_after(10):
        await stream.batch()
    before = store.looks
    for _ in range(20):
        with trio.move_on_after(15) as waiting:
            await stream.batch()
        assert waiting.cancelled_caught
    assert store.looks == before
    run = await append(store, run)
    feed.notify(run.id)
    assert [event.seq for event in await stream.batch()] == [4]
    assert store.looks == before + 1


async def test_followers_at_one_place_share_a_look(autojump_clock: MockClock) -> None:
    store = CountingStore()
    run = await append(store, await create_running(store))
    feed = EventFeed(store)
    seen: list[list[int]] = [[] for _ in range(50)]
    async with trio.open_nursery() as nursery:
        for one in seen:
            nursery.start_soon(collect, feed.follow(run.id, 0), one)
        await trio.sleep(10)
        before = store.looks
        run = await append(store, run)
        feed.notify(run.id)
        await trio.sleep(10)
        assert store.looks == before + 1
        assert seen == [[1, 2]] * 50
        feed.close()


async def test_a_look_that_began_before_a_commit_is_not_shared_with_those_who_came_after_it(
    autojump_clock: MockClock,
) -> None:
    store = CountingStore()
    run = await append(store, await create_running(store))
    feed = EventFeed(store)
    early: list[int] = []
    late: list[int] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(collect, feed.follow(run.id, 0), early)
        await wait_all_tasks_blocked()
        run = await append(store, run)
        feed.notify(run.id)
        nursery.start_soon(collect, feed.follow(run.id, 0), late)
        await trio.sleep(1.5)
        assert late == [1, 2]
        await trio.sleep(1)
        assert early == [1, 2]
        feed.close()


@pytest.mark.parametrize("fails", [False, True])
async def test_others_look_themselves_when_the_shared_look_comes_to_nothing(
    autojump_clock: MockClock, fails: bool
) -> None:
    store = CountingStore()
    run = await append(store, await create_running(store))
    feed = EventFeed(store)
    seen: list[int] = []

    async def begin(scope: trio.CancelScope) -> None:
        with scope:
            try:
                await feed.follow(run.id, 0).batch()
            except OSError:
                store.lost = False

    scope = trio.CancelScope()
    store.lost = fails
    async with trio.open_nursery() as nursery:
        nursery.start_soon(begin, scope)
        await wait_all_tasks_blocked()
        nursery.start_soon(collect, feed.follow(run.id, 0), seen)
        await wait_all_tasks_blocked()
        if not fails:
            scope.cancel()
        await trio.sleep(5)
        assert seen == [1]
        feed.close()


async def test_a_long_log_begins_with_a_short_page(autojump_clock: MockClock) -> None:
    store = CountingStore()
    run = await append(store, await create_running(store), 1200)
    pages: list[Sequence[Event]] = []
    stream = EventFeed(store).follow(run.id, 0)
    while sum(map(len, pages)) < 1200:
        pages.append(await stream.batch())
    assert [len(page) for page in pages] == [FIRST_PAGE, 500, 500, 100]
    assert [event.seq for page in pages for event in page] == list(range(1, 1201))


async def test_a_question_that_was_answered_meanwhile_does_not_end_the_stream(
    autojump_clock: MockClock,
) -> None:
    store = CountingStore()
    run = await create_running(store)
    paused = step(run, status=RunStatus.WAITING_INPUT, lease=None)
    asked = paused.events[0].model_copy(update={"type": "interaction.requested"})
    await store.commit(Commit(paused.run, events=(asked,)), owner=OWNER, token=1)
    stream = EventFeed(store).follow(run.id, 0)
    assert [event.type for event in await stream.batch()] == ["interaction.requested"]
    # In another process: nobody here is told.
    resumed = step(paused.run, status=RunStatus.RUNNING)
    await store.cancel_run(run.id, lambda _: resumed)
    assert [event.seq for event in await stream.batch()] == [2]


async def brought(store: MemoryStore, feed: EventFeed, run: Run, count: int = 1) -> Run:
    """Append, and tell of it together with the events, as the process that commits does."""
    commit = step(run, events=count)
    await store.commit(commit, owner=OWNER, token=1)
    feed.notify(run.id, commit.events)
    return commit.run


async def test_followers_who_keep_up_with_commits_of_their_process_never_look(
    autojump_clock: MockClock,
) -> None:
    store = CountingStore()
    run = await append(store, await create_running(store))
    feed = EventFeed(store)
    seen: list[list[int]] = [[] for _ in range(20)]
    async with trio.open_nursery() as nursery:
        for one in seen:
            nursery.start_soon(collect, feed.follow(run.id, 0), one)
        await trio.sleep(10)
        before = store.looks
        for _ in range(3):
            run = await brought(store, feed, run, 2)
        await wait_all_tasks_blocked()
        assert seen == [[*range(1, 8)]] * 20
        assert store.looks == before
        feed.close()


async def test_a_reader_who_falls_behind_holds_few_commits_and_then_looks(
    autojump_clock: MockClock,
) -> None:
    store = CountingStore()
    run = await append(store, await create_running(store))
    feed = EventFeed(store)
    stream = feed.follow(run.id, 0)
    assert [event.seq for event in await stream.batch()] == [1]
    before = store.looks
    for _ in range(10 * LINKS):
        run = await brought(store, feed, run)
    taken = [len(await stream.batch()) for _ in range(LINKS)]
    assert (taken, store.looks) == ([1] * LINKS, before)
    assert len(await stream.batch()) == 9 * LINKS
    assert store.looks == before + 1


async def test_events_that_arrive_out_of_order_or_behind_a_gap_are_looked_up(
    autojump_clock: MockClock,
) -> None:
    store = CountingStore()
    run = await append(store, await create_running(store))
    feed = EventFeed(store)
    seen: list[int] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(collect, feed.follow(run.id, 0), seen)
        await trio.sleep(10)
        # Another process stored the second; we hear of our third first, then of an older commit.
        second = step(run)
        await store.commit(second, owner=OWNER, token=1)
        run = await brought(store, feed, second.run)
        feed.notify(run.id, second.events)
        await trio.sleep(10)
        run = await brought(store, feed, run)
        await trio.sleep(10)
        feed.close()
    assert seen == [1, 2, 3, 4]
