"""Following a log: from any place, by any number of readers, across any end."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked
from typing_extensions import override

from rungent import Event, Identity, InvalidRequest, NotFound
from rungent.llm.port import ModelCompleted, TextDelta
from rungent.store.feed import LINKS
from rungent.store.memory import MemoryStore
from rungent.store.port import Commit
from rungent.testing.scripted import Delay
from tests.drive.stores import FaultyStore, QuietStore
from tests.helpers import OWNER, Stage, stage, types
from tests.runtime.twins import never


def talk(count: int) -> list[Any]:
    """A reply in pieces, a second apart."""
    pieces = [part for n in range(count) for part in (TextDelta(f"{n} "), Delay(1))]
    return [*pieces, ModelCompleted()]


async def read(on: Stage, run_id: str, after: int = 0) -> list[Event]:
    """Follow to the end of the stream."""
    stream = on.runtime.stream_events(run_id, identity=OWNER, after_seq=after)
    with trio.fail_after(1000):
        return [event async for event in stream]


async def test_live_and_replayed_logs_are_the_same(autojump_clock: MockClock) -> None:
    async with stage([talk(5)], store=QuietStore()) as on:
        run_id = await on.start()
        live = await read(on, run_id)
        assert live == await read(on, run_id)
        assert live == await on.runtime.get_run_events(run_id, identity=OWNER)


async def test_a_reader_may_leave_and_come_back_at_any_place(autojump_clock: MockClock) -> None:
    async with stage([talk(6)]) as on:
        run_id = await on.start()
        seen: list[Event] = []
        while not seen or not types(seen[-1:])[0].startswith("run.c"):
            after = seen[-1].seq if seen else 0
            async for event in on.runtime.stream_events(run_id, identity=OWNER, after_seq=after):
                seen.append(event)
                break
        assert seen == await on.log(run_id)


async def test_a_reader_that_is_cancelled_while_waiting_loses_nothing(
    autojump_clock: MockClock,
) -> None:
    async with stage([talk(6)]) as on:
        run_id = await on.start()
        stream = on.runtime.stream_events(run_id, identity=OWNER)
        seen: list[Event] = []
        done = False
        while not done:
            with trio.move_on_after(0.3):
                async for event in stream:
                    seen.append(event)  # noqa: PERF401 - what was seen counts
                done = True
        assert seen == await on.log(run_id)


@pytest.mark.parametrize("late", [False, True])
async def test_a_cursor_beyond_the_end_gives_an_empty_stream(
    autojump_clock: MockClock, late: bool
) -> None:
    async with stage([talk(2)]) as on:
        run_id = await on.start()
        if late:
            await on.log(run_id)
        for after in (999, 8, 7):
            assert await read(on, run_id, after) == []
        assert len(await on.log(run_id)) == 7
        assert len(await read(on, run_id, 6)) == 1


async def test_many_readers_see_the_same(autojump_clock: MockClock) -> None:
    async with stage([talk(5)]) as on:
        run_id = await on.start()
        logs: list[list[Event]] = []

        async def follow(delay: float) -> None:
            await trio.sleep(delay)
            logs.append(await read(on, run_id))

        async with trio.open_nursery() as nursery:
            for number in range(200):
                nursery.start_soon(follow, number / 25)
        assert len(logs) == 200
        assert all(log == logs[0] for log in logs)


async def test_a_stuck_reader_holds_up_nobody(autojump_clock: MockClock) -> None:
    async with stage([talk(3)]) as on:
        run_id = await on.start()
        stuck = on.runtime.stream_events(run_id, identity=OWNER)
        await anext(stuck)
        await on.log(run_id)
        assert trio.current_time() == pytest.approx(3, abs=0.01)
        rest = [event async for event in stuck]
        assert types(rest)[-1] == "run.completed"


async def test_an_idle_reader_asks_the_store_nothing(autojump_clock: MockClock) -> None:
    store = FaultyStore()
    async with stage([never()], store=store) as on:
        run_id = await on.start()

        async def follow() -> None:
            await read(on, run_id)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await wait_all_tasks_blocked()
            await trio.sleep(20)
            before = store.used["list_events"]
            # Ticks of the silent model come every five seconds.
            await trio.sleep(4)
            assert store.used["list_events"] <= before + 2
            await on.cancel(run_id)


async def test_a_reader_who_keeps_up_with_a_run_of_its_worker_hardly_looks(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    async with stage([talk(30)], store=store) as on:
        run_id = await on.start()
        events = await read(on, run_id)
        assert len(events) > 30
        # The first, and one whenever the news have become too many to hold on to.
        assert store.used["list_events"] <= 1 + len(events) / LINKS


async def test_a_reader_at_another_worker_over_one_memory_sees_each_event_at_once(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    async with stage([talk(3)], store=store) as on, stage([], store=store) as other:
        run_id = await on.start()
        with trio.fail_after(100):
            async for event in other.runtime.stream_events(run_id, identity=OWNER):
                if event.type == "message.delta":
                    assert trio.current_time() == pytest.approx(int(event.data["delta"]), abs=0.01)


async def test_what_was_stored_by_a_commit_that_failed_is_seen_at_once(
    autojump_clock: MockClock,
) -> None:
    class LostReply(MemoryStore):
        lost = False

        @override
        async def commit(self, commit: Commit, *, owner: str, token: int) -> None:
            await super().commit(commit, owner=owner, token=token)
            if not self.lost and commit.events[0].type == "message.delta":
                self.lost = True
                raise OSError("the reply was lost")

    async with stage([talk(2), talk(2)], store=LostReply()) as on:
        run_id = await on.start()
        seen = await on.until(run_id, "message.delta")
        assert seen[-1].data == {"delta": "0 "}
        assert trio.current_time() < 0.1
        assert types(await on.log(run_id))[-1] == "run.completed"


async def test_a_cancelled_reader_takes_nothing_that_waits_for_it(
    autojump_clock: MockClock,
) -> None:
    async with stage([talk(5)]) as on:
        run_id = await on.start()
        stream = on.runtime.stream_events(run_id, identity=OWNER)
        await anext(stream)
        await trio.sleep(3)
        seen: list[Event] = []
        while not seen:
            with trio.CancelScope() as scope:
                scope.cancel()
                await stream.batch()
                pytest.fail("a batch was taken")
            seen.extend(await stream.batch())
        rest = [event async for event in stream]
        assert [event.seq for event in seen + rest] == list(range(2, len(seen + rest) + 2))


async def test_a_reader_at_another_worker_sees_events_and_end(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with stage([talk(4)], store=store) as on, stage([], store=store) as other:
        run_id = await on.start()
        assert await read(other, run_id) == await on.log(run_id)
        assert trio.current_time() < 5.1


async def test_a_long_log_is_read_in_pages(autojump_clock: MockClock) -> None:
    parts = [part for n in range(1200) for part in (TextDelta(f"{n} "), Delay(0.1))]
    async with stage([[*parts, ModelCompleted()]], lease_seconds=300) as on:
        events = await read(on, await on.start())
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert len(events) > 1200
        page = await on.runtime.get_run_events(events[0].run_id, identity=OWNER)
        assert page == events[:500]
        one = await on.runtime.get_run_events(
            events[0].run_id, identity=OWNER, after_seq=700, limit=3
        )
        assert one == events[700:703]


async def test_only_the_owner_may_read(autojump_clock: MockClock) -> None:
    async with stage(["ok"]) as on:
        run_id = (await on.play())[0].run_id
        told = set[str]()
        for wanted, identity in ((run_id, Identity("eve")), ("run_unknown", OWNER)):
            stream = on.runtime.stream_events(wanted, identity=identity)
            for _ in range(2):
                with pytest.raises(NotFound) as caught:
                    await anext(stream)
                told.add(str(caught.value))
            with pytest.raises(NotFound):
                await on.runtime.get_run_events(wanted, identity=identity)
            with pytest.raises(NotFound):
                await on.runtime.get_run(wanted, identity=identity)
        assert len(told) == 1


@pytest.mark.parametrize("after", [-1, 1.5, "1", True, None])
async def test_a_cursor_that_is_none_is_refused(autojump_clock: MockClock, after: Any) -> None:
    async with stage(["ok"]) as on:
        run_id = (await on.play())[0].run_id
        with pytest.raises(InvalidRequest):
            on.runtime.stream_events(run_id, identity=OWNER, after_seq=after)
        with pytest.raises(InvalidRequest):
            await on.runtime.get_run_events(run_id, identity=OWNER, after_seq=after)


async def test_a_created_run_is_followed_from_its_first_event(autojump_clock: MockClock) -> None:
    async with stage([talk(2)]) as on:
        stream = on.runtime.stream_run(on.session.id, "hi", identity=OWNER)
        seen = [event async for event in stream]
        assert seen == await on.log(seen[0].run_id)


async def test_leaving_the_stream_of_a_created_run_leaves_the_run_alone(
    autojump_clock: MockClock,
) -> None:
    async with stage([talk(2)]) as on:
        stream = on.runtime.stream_run(on.session.id, "hi", identity=OWNER)
        first: Event = await anext(stream)
        del stream
        assert types(await on.log(first.run_id))[-1] == "run.completed"


async def test_pages_of_sessions_and_runs_hold_everything_once(autojump_clock: MockClock) -> None:
    async with stage(["ok"] * 5) as on:
        for number in range(5):
            await on.play(f"{number}")
            await on.runtime.create_session(identity=OWNER, title=f"{number}")
            await trio.sleep(0.001)
        inputs: list[str] = []
        cursor: str | None = None
        while True:
            page, cursor = await on.runtime.list_session_runs(
                on.session.id, identity=OWNER, limit=2, cursor=cursor
            )
            inputs += [run.input for run in page]
            if cursor is None:
                break
        assert inputs == ["0", "1", "2", "3", "4"]
        ids: list[str] = []
        while True:
            sessions, cursor = await on.runtime.list_sessions(
                identity=OWNER, limit=4, cursor=cursor
            )
            ids += [one.id for one in sessions]
            if cursor is None:
                break
        assert len(ids) == len(set(ids)) == 6
        for bad in ("x", "ä", "W10", "bnVsbA", ""):
            with pytest.raises(InvalidRequest):
                await on.runtime.list_sessions(identity=OWNER, cursor=bad)
        for limit in (0, 501, True, 1.0):
            with pytest.raises(InvalidRequest):
                await on.runtime.list_sessions(identity=OWNER, limit=limit)  # type: ignore[arg-type]
