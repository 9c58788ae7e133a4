"""What a host's listener hears of pauses: every event, in order, also when it is slow."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rungent import Event, ToolResult
from rungent.store import Store
from tests.helpers import OWNER, asking, calls, stage, types
from tests.pauses.shop import Shop, answer, ask, finish


class Slow:
    """A listener that takes its time, and hears one event of a run at a time."""

    def __init__(self, seconds: float = 0.5) -> None:
        self.seconds = seconds
        self.heard: list[Event] = []
        self.busy: set[str] = set()
        self.overlaps = 0

    async def __call__(self, event: Event) -> None:
        self.overlaps += event.run_id in self.busy
        self.busy.add(event.run_id)
        self.heard.append(event)
        try:
            await trio.sleep(self.seconds)
        finally:
            self.busy.discard(event.run_id)

    def check(self, *logs: list[Event]) -> None:
        assert self.overlaps == 0
        for log in logs:
            heard = [event.seq for event in self.heard if event.run_id == log[0].run_id]
            assert heard == [event.seq for event in log]


async def test_a_slow_listener_hears_an_answer_after_the_question(
    autojump_clock: MockClock, store: Store
) -> None:
    slow = Slow()
    async with stage([asking(ask()), "Done."], store=store, event_listener=slow) as on:
        run_id = await on.start()
        events = await on.until(run_id, "interaction.requested")
        await answer(on, run_id, events[-1].data, "x")
        log = await finish(on, run_id)
        await trio.sleep(100)
        slow.check(log)


@pytest.mark.parametrize("answered", [False, True])
async def test_a_slow_listener_hears_a_cancel_last(
    autojump_clock: MockClock, store: Store, answered: bool
) -> None:
    slow = Slow()
    async with stage([asking(ask()), "Done."], store=store, event_listener=slow) as on:
        run_id = await on.start()
        events = await on.until(run_id, "interaction.requested")
        if answered:
            await answer(on, run_id, events[-1].data, "x")
        await on.cancel(run_id)
        log = await finish(on, run_id, "cancelled")
        await trio.sleep(100)
        slow.check(log)


async def test_a_slow_listener_hears_of_a_replaced_run_in_order(
    autojump_clock: MockClock, store: Store
) -> None:
    slow = Slow()
    async with stage([asking(ask()), "Done."], store=store, event_listener=slow) as on:
        run_id = await on.start()
        await on.until(run_id, "interaction.requested")
        second = await on.start("No.", if_active="cancel_waiting")
        logs = [await finish(on, run_id, "cancelled"), await finish(on, second)]
        await trio.sleep(100)
        slow.check(*logs)


async def test_a_slow_listener_hears_of_deferred_work_in_order(
    autojump_clock: MockClock, store: Store
) -> None:
    slow, shop = Slow(), Shop()
    script = [calls("job"), "Done."]
    async with stage(script, tools=shop.tools(), store=store, event_listener=slow) as on:
        run_id = await on.start()
        await on.until(run_id, "run.waiting_external")
        async with trio.open_nursery() as nursery:
            for message in ("One.", "Two.", "Three."):
                nursery.start_soon(report, on, run_id, message)
                await wait_all_tasks_blocked()
        result = ToolResult(data=1, interaction=shop.request())
        await on.runtime.resume_deferred(run_id, "t1", result, identity=OWNER)
        events = await on.until(run_id, "interaction.requested")
        await answer(on, run_id, events[-1].data, "x")
        log = await finish(on, run_id)
        await trio.sleep(100)
        slow.check(log)


async def report(on: Any, run_id: str, message: str) -> None:
    await on.runtime.report_external_progress(run_id, "t1", message, identity=OWNER)


@pytest.mark.parametrize(
    "moment", ["model.started", "run.waiting_input", "interaction.requested", "tool.started"]
)
async def test_a_listener_can_cancel_what_it_hears(
    autojump_clock: MockClock, store: Store, moment: str
) -> None:
    heard: list[str] = []
    statuses: list[str] = []

    async def listen(event: Event) -> None:
        heard.append(event.type)
        if event.type == moment and not statuses:
            run = await on.runtime.cancel_run(event.run_id, identity=OWNER)
            statuses.append(run.status.value)

    script = [calls("job", "note"), "x"] if moment == "tool.started" else [asking(ask()), "x"]
    async with stage(script, tools=Shop().tools(), store=store, event_listener=listen) as on:
        run_id = await on.start()
        log = await finish(on, run_id, "cancelled")
        await trio.sleep(100)
        assert statuses == ["cancelled"]
        assert heard == types(log)
