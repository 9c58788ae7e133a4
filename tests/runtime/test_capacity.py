"""Capacity: what runs, what waits, and in which order."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rungent import (
    ActiveRunConflict,
    Agent,
    RuntimeBusy,
    ToolContext,
)
from rungent.llm.port import ModelCompleted
from rungent.store.memory import MemoryStore
from rungent.testing.scripted import Delay
from tests.helpers import OWNER, Stage, of, stage, types
from tests.runtime.twins import never


async def crowd(on: Stage, count: int) -> list[Stage]:
    """More sessions on the same runtime."""
    return [
        Stage(on.runtime, on.store, on.model, await on.runtime.create_session(identity=OWNER))
        for _ in range(count)
    ]


async def test_runs_beyond_capacity_are_queued_without_event_and_served_oldest_first(
    autojump_clock: MockClock,
) -> None:
    slow = [[Delay(10), ModelCompleted("ok")] for _ in range(4)]
    async with stage(slow, max_concurrent_runs=1) as on:
        places = [on, *await crowd(on, 3)]
        made: list[str] = []
        for number, place in enumerate(places):
            made.append(await place.start(f"{number}"))
            await trio.sleep(0.001)
        for run_id in made[1:]:
            run = await on.run(run_id)
            assert (run.status, run.event_seq) == ("queued", 0)
            assert run.lease is not None
        for place, run_id in zip(places, made, strict=True):
            events = await place.log(run_id)
            assert types(events)[0] == "run.started"
        asked = [request.messages[-1]["content"] for request in on.model.requests]
        assert asked == ["0", "1", "2", "3"]
        # The next one starts as soon as the one before ends.
        assert trio.current_time() == pytest.approx(40, abs=0.01)


async def test_creations_at_the_same_instant_keep_to_the_capacity(
    autojump_clock: MockClock,
) -> None:
    busy: list[int] = []
    running = 0

    def reply(request: object) -> list[Any]:
        nonlocal running
        running += 1
        busy.append(running)
        return [Delay(5), ModelCompleted("ok")]

    async with stage([reply] * 6, max_concurrent_runs=2) as on:
        places = [on, *await crowd(on, 5)]
        made: dict[int, str] = {}

        async def create(number: int) -> None:
            made[number] = await places[number].start()

        async with trio.open_nursery() as nursery:
            for number in range(6):
                nursery.start_soon(create, number)
        states = [(await on.run(run_id)).status for run_id in made.values()]
        assert sorted(states) == ["queued"] * 4 + ["running"] * 2
        for number in range(6):
            await places[number].log(made[number])
    assert len(busy) == 6


async def test_beyond_the_queue_creation_is_refused_and_later_works_again(
    autojump_clock: MockClock,
) -> None:
    slow = [[Delay(10), ModelCompleted("ok")] for _ in range(4)]
    async with stage(slow, max_concurrent_runs=1, max_queued_runs=1) as on:
        places = [on, *await crowd(on, 3)]
        first = await places[0].start(idempotency_key="k")
        second = await places[1].start()
        with pytest.raises(RuntimeBusy):
            await places[2].start()
        assert await places[2].messages() == []
        # A repeated request and a conflict outrank the refusal.
        assert await places[0].start(idempotency_key="k") == first
        with pytest.raises(ActiveRunConflict):
            await places[1].start()
        await places[0].log(first)
        await wait_all_tasks_blocked()
        third = await places[2].start()
        await places[1].cancel(second)
        await places[2].log(third)
        assert types(await places[3].play())[-1] == "run.completed"


async def test_a_queue_at_the_same_instant_keeps_to_its_bound(autojump_clock: MockClock) -> None:
    async with stage([never()] * 3, max_concurrent_runs=1, max_queued_runs=2) as on:
        places = [on, *await crowd(on, 7)]
        made: list[tuple[Stage, str]] = []
        refused: list[int] = []

        async def create(place: Stage) -> None:
            try:
                made.append((place, await place.start()))
            except RuntimeBusy:
                refused.append(1)

        async with trio.open_nursery() as nursery:
            for place in places:
                nursery.start_soon(create, place)
        assert (len(made), len(refused)) == (3, 5)
        for place, run_id in made:
            await place.cancel(run_id)


async def test_a_queued_run_that_another_worker_cancelled_frees_its_place(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    options: Any = {"store": store, "max_concurrent_runs": 1, "max_queued_runs": 1}
    async with stage([never(), never()], **options) as on, stage([], **options) as other:
        places = [on, *await crowd(on, 2)]
        await places[0].start()
        queued = await places[1].start()
        await other.cancel(queued)
        await trio.sleep(11)
        again = await places[2].start()
        assert (await on.run(again)).status == "queued"


async def test_the_creators_dependencies_wait_with_a_queued_run(
    autojump_clock: MockClock,
) -> None:
    seen: list[object] = []

    def context(ctx: ToolContext) -> str:
        seen.append(ctx.deps.get("n"))
        return ""

    slow = [[Delay(10), ModelCompleted("ok")] for _ in range(2)]
    agent = Agent("helper", "Help.", context=context)
    async with stage(slow, agent=agent, max_concurrent_runs=1) as on:
        other = (await crowd(on, 1))[0]
        await on.start(deps={"n": 1})
        await other.log(await other.start(deps={"n": 2}))
        # Long waiting does not lose them either.
    assert seen == [1, 2]


async def test_a_reservation_outlives_its_lease_time_while_the_worker_lives(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    slow = [[Delay(300), ModelCompleted("ok")], "ok"]
    async with (
        stage(slow, store=store, max_concurrent_runs=1) as on,
        stage([], store=store) as idle,
    ):
        other = (await crowd(on, 1))[0]
        first = await on.start()
        queued = await other.start()
        await trio.sleep(200)
        assert (await on.run(queued)).status == "queued"
        assert types(await other.log(queued))[-1] == "run.completed"
        await on.log(first)
        assert idle.model.requests == []


async def test_usage_of_a_run_is_told_at_its_end(autojump_clock: MockClock) -> None:
    used: Any = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    async with stage([ModelCompleted("ok", usage=used)]) as on:
        assert of(await on.play(), "run.completed")[0]["usage"] == used
