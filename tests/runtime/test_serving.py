"""Serving, stopping, losing workers: what other workers find, and what nobody does twice."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rungent import Agent, Runtime, ShuttingDown, ToolContext, tool
from rungent.llm.port import ModelCompleted, TextDelta
from rungent.store.memory import MemoryStore
from rungent.testing.clock import virtual_now
from rungent.testing.scripted import Delay, ScriptedModel
from tests.helpers import OWNER, START, calls, of, opened, stage, types
from tests.runtime.twins import never, runtime_over, serve_in

HELPER = Agent("helper", "Help.")


async def test_a_runtime_is_served_once_at_a_time_and_again_after_a_stop(
    autojump_clock: MockClock,
) -> None:
    async with stage(["one", "two"]) as on:
        with pytest.raises(RuntimeError, match="served already"):
            await on.runtime.serve()
        assert types(await on.play())[-1] == "run.completed"
        await on.runtime.stop()
        assert not on.runtime.serving
        with pytest.raises(ShuttingDown):
            await on.start()
        await on.runtime.stop()
        async with trio.open_nursery() as nursery:
            await nursery.start(on.runtime.serve)
            assert types(await on.play())[-1] == "run.completed"
            await on.runtime.stop()


async def test_the_model_is_entered_for_as_long_as_the_runtime_serves(
    autojump_clock: MockClock,
) -> None:
    states: list[str] = []

    class Connected(ScriptedModel):
        async def __aenter__(self) -> None:
            await trio.lowlevel.checkpoint()
            states.append("in")

        async def __aexit__(self, *_: object) -> None:
            await trio.lowlevel.checkpoint()
            states.append("out")

    async with stage(Connected(["ok"])) as on:
        await on.play()
        assert states == ["in"]
    assert states == ["in", "out"]


async def test_what_the_body_raises_comes_out_as_it_is(autojump_clock: MockClock) -> None:
    runtime = Runtime(agents=[HELPER], model=ScriptedModel([]), store=MemoryStore())
    with pytest.raises(ZeroDivisionError):
        async with runtime:
            raise ZeroDivisionError


async def test_a_stop_lets_runs_end_within_the_grace(autojump_clock: MockClock) -> None:
    async with stage([[Delay(3), ModelCompleted("ok")]]) as on:
        run_id = await on.start()
        await on.runtime.stop()
        assert trio.current_time() == pytest.approx(3, abs=0.01)
        assert (await on.run(run_id)).status == "completed"


async def test_a_stop_refuses_new_work_and_ends_streams_at_once(
    autojump_clock: MockClock,
) -> None:
    async with stage([never()]) as on:
        run_id = await on.start()
        await on.until(run_id, "model.started")
        seen: list[str] = []
        ended: list[float] = []

        async def follow() -> None:
            stream = on.runtime.stream_events(run_id, identity=OWNER)
            async for event in stream:
                seen.append(event.type)  # noqa: PERF401 - seen while it grows
            assert stream.interrupted
            ended.append(trio.current_time())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await wait_all_tasks_blocked()
            nursery.start_soon(on.runtime.stop, 2)
            await wait_all_tasks_blocked()
            assert ended == [0]
            other = await on.runtime.create_session(identity=OWNER)
            with pytest.raises(ShuttingDown):
                await on.runtime.create_run(other.id, "hi", identity=OWNER)
        assert seen == ["run.started", "model.started"]
        run = await on.run(run_id)
        assert (run.status, run.lease) == ("running", None)
        assert trio.current_time() == pytest.approx(2, abs=0.01)


async def test_a_run_goes_on_with_another_worker_after_a_stop(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with stage([[TextDelta("Hal"), Delay(100)]], store=store) as on:
        run_id = await on.start()
        await on.until(run_id, "message.delta")
        await on.runtime.stop(0)
        async with stage([[Delay(1), ModelCompleted("Hello.")]], store=store) as other:
            events = await other.log(run_id)
    assert types(events) == [
        "run.started",
        "model.started",
        "message.delta",
        "message.reset",
        "model.retrying",
        "message.delta",
        "model.completed",
        "message.completed",
        "run.completed",
    ]
    assert of(events, "model.retrying") == [
        {
            "step": 1,
            "retry": 1,
            "max_retries": 5,
            "delay_seconds": 0,
            "reason": "worker_lost",
        }
    ]
    assert of(events, "message.completed") == [{"content": "Hello."}]
    assert "run.cancelled" not in types(events)


async def test_queued_runs_are_given_back_by_a_stop(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with stage([never()], store=store, max_concurrent_runs=1) as on:
        await on.start()
        waiting = await opened(on.runtime, store, on.model)
        queued = await waiting.start()
        await on.runtime.stop(0)
        assert (await on.run(queued)).lease is None
        async with stage(["a", "b"], store=store) as other:
            assert types(await other.log(queued))[-1] == "run.completed"
            assert trio.current_time() < 10


async def test_cancelling_the_nursery_is_a_stop_without_grace(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    runtime = runtime_over(store, [never()], HELPER, now=virtual_now(START))
    async with trio.open_nursery() as nursery:
        scope = await serve_in(nursery, runtime)
        on = await opened(runtime, store, ScriptedModel([]))
        run_id = await on.start()
        await on.until(run_id, "model.started")
        scope.cancel()
    run = await on.run(run_id)
    assert (run.status, run.lease) == ("running", None)
    assert trio.current_time() == 0


@pytest.mark.parametrize("stop", ["drain", "cancel"])
async def test_errors_of_tools_that_are_stopped_break_neither_the_run_nor_the_host(
    autojump_clock: MockClock, stop: str
) -> None:
    @tool(effect="read", approval="never")
    async def look(ctx: ToolContext) -> None:
        """Fail in cleaning up."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError("canary")

    store = MemoryStore()
    agent = Agent("helper", "Help.", tools=[look])
    runtime = runtime_over(store, [calls("look")], agent, now=virtual_now(START))
    async with trio.open_nursery() as nursery:
        scope = await serve_in(nursery, runtime)
        on = await opened(runtime, store, ScriptedModel([]))
        run_id = await on.start()
        await on.until(run_id, "tool.started")
        if stop == "drain":
            await runtime.stop(0)
        else:
            scope.cancel()
    run = await on.run(run_id)
    assert (run.status, run.lease) == ("running", None)


async def test_a_stop_that_is_cut_short_still_stops(autojump_clock: MockClock) -> None:
    async with stage([never()]) as on:
        run_id = await on.start()
        await on.until(run_id, "model.started")
        with trio.move_on_after(1):
            await on.runtime.stop(100)
        await wait_all_tasks_blocked()
        assert (await on.run(run_id)).lease is None
        assert not on.runtime.serving


async def test_a_run_that_is_created_while_the_runtime_stops_is_given_back(
    autojump_clock: MockClock,
) -> None:
    """Its drive comes when the others are cancelled already, but one of them takes its time."""

    class Slow(MemoryStore):
        delay = 0.0

        async def create_run(self, creation: Any) -> Any:
            await trio.sleep(self.delay)
            return await super().create_run(creation)

    @tool(effect="read", approval="never")
    async def look(ctx: ToolContext) -> None:
        """Ignore being cancelled for a while."""
        with trio.CancelScope(shield=True):
            await trio.sleep(20)

    store = Slow()
    async with stage([calls("look"), never()], store=store, tools=[look]) as on:
        await on.until(await on.start(), "tool.started")
        second = await opened(on.runtime, on.store, on.model)
        made: list[str] = []

        async def create() -> None:
            made.append(await second.start())

        async with trio.open_nursery() as nursery:
            store.delay = 10
            nursery.start_soon(create)
            await trio.sleep(5)
            with trio.fail_after(60):
                await on.runtime.stop(0.5)
        assert trio.current_time() == pytest.approx(20, abs=0.1)
        run = await on.run(made[0])
        assert (run.status, run.lease) == ("running", None)
        assert "model.started" not in types(await on.so_far(made[0]))


async def test_a_stop_waits_for_all_drives_however_they_began(autojump_clock: MockClock) -> None:
    """A drive that starts while the others drain does not hide their end."""

    class Slow(MemoryStore):
        delay = 0.0

        async def create_run(self, creation: Any) -> Any:
            await trio.sleep(self.delay)
            return await super().create_run(creation)

    store = Slow()
    script: list[Any] = [[Delay(3), ModelCompleted("a")], [Delay(1), ModelCompleted("b")]]
    async with stage(script, store=store) as on:
        await on.start()
        store.delay = 1
        second = await opened(on.runtime, on.store, on.model)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(second.start)
            await trio.sleep(0.5)
            with trio.fail_after(60):
                await on.runtime.stop()
            assert trio.current_time() == pytest.approx(3, abs=0.1)
