"""Whole stacks in virtual time: hours pass in milliseconds, over any store and over HTTP."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from rungent import Runtime, ToolCall, ToolContext, tool
from rungent.llm import ModelCompleted
from rungent.testing import Delay
from rungent.testing.pytest_plugin import rungent_stage as rungent_stage
from rungent.testing.sse import SseReader
from rungent.testing.staged import START, USER, staged
from rungent.testing.stores import fresh_store

ROOT = Path(__file__).resolve().parent.parent.parent
ASK = ModelCompleted(tool_calls=(ToolCall("request_input", {"kind": "text", "prompt": "Day?"}),))
HOURLY: dict[str, Any] = {
    "recovery_interval_seconds": 3600,
    "follow_poll_seconds": 3600,
    "lease_seconds": 7200,
    "lease_renew_seconds": 3600,
}
STORES = pytest.mark.parametrize("store", ["memory", "sqlite"])


@STORES
async def test_ticks_come_at_three_eight_and_thirteen_seconds(
    autojump_clock: MockClock, rungent_stage: Any, store: str
) -> None:
    stage = await rungent_stage([[Delay(14), ModelCompleted("Late.")]], store=store)
    events = await stage.say()
    assert stage.seconds(events, "activity.updated") == [3, 8, 13, 14]
    assert stage.recorded == events


@STORES
async def test_an_attempt_is_over_after_sixty_seconds(
    autojump_clock: MockClock, rungent_stage: Any, store: str
) -> None:
    script = [[Delay(1000)], "In time."]
    stage = await rungent_stage(script, store=store, model_step_timeout_seconds=60)
    events = await stage.say()
    assert stage.seconds(events, "model.retrying") == [60]
    assert events[-1].type == "run.completed"


@STORES
async def test_a_question_is_answered_after_a_day(
    autojump_clock: MockClock, rungent_stage: Any, store: str
) -> None:
    stage = await rungent_stage([ASK, "Done."], store=store, **HOURLY)
    asked = await stage.say()
    await trio.sleep(24 * 3600)
    events = await stage.answer(asked, "Monday")
    assert stage.seconds(events, "interaction.resolved") == [86_400]
    assert events[-1].type == "run.completed"


@STORES
async def test_a_week_passes_over_http_and_sse(
    autojump_clock: MockClock, rungent_stage: Any, store: str
) -> None:
    week = 7 * 24 * 3600.0
    options: dict[str, Any] = {
        "recovery_interval_seconds": 12 * 3600,
        "lease_seconds": 4 * week,
        "lease_renew_seconds": 2 * week,
        "model_wait_progress_after_seconds": week,
        "follow_poll_seconds": 12 * 3600,
        "keepalive_seconds": 12 * 3600,
    }
    stage = await rungent_stage(
        [[Delay(week - 1), ModelCompleted("At last.")]], store=store, http=True, **options
    )
    path = f"/sessions/{stage.session.id}/runs"
    run = (await stage.client.request("POST", path, json={"input": "Hi"})).json()
    stream = f"/runs/{run['run_id']}/events/stream"
    async with stage.client.stream("GET", stream) as body:
        frames = await SseReader().frames(body)
    events = [frame.event for frame in frames if frame.event is not None]
    assert events[-1]["type"] == "run.completed"
    assert trio.current_time() >= week - 1


async def test_a_client_that_does_not_read_holds_up_no_run(
    autojump_clock: MockClock, rungent_stage: Any
) -> None:
    words = [ModelCompleted("word " * 500)]
    stage = await rungent_stage(words, http=True)
    path = f"/sessions/{stage.session.id}/runs"
    run = (await stage.client.request("POST", path, json={"input": "Hi"})).json()
    async with stage.client.stream("GET", f"/runs/{run['run_id']}/events/stream") as body:
        # Nobody reads `body`; the run is over all the same.
        stream = stage.runtime.stream_events(run["run_id"], identity=USER)
        with trio.fail_after(10):
            events = [event async for event in stream]
        assert events[-1].type == "run.completed"
        body.disconnect()


async def test_without_http_there_is_no_client(autojump_clock: MockClock) -> None:
    async with staged(["Hi."]) as stage:
        with pytest.raises(RuntimeError, match="http=True"):
            _ = stage.client
        with pytest.raises(AssertionError, match="nothing is asked"):
            await stage.answer(await stage.say(), "x")


async def test_a_stage_goes_on_with_another_worker_over_the_same_store(
    autojump_clock: MockClock,
) -> None:
    @tool(effect="read", approval="never")
    async def look(ctx: ToolContext) -> str:
        """Look."""
        return "seen"

    async with fresh_store("sqlite") as store:
        async with staged([ASK], store=store, tools=[look]) as first:
            asked = await first.say()
        call = ModelCompleted(tool_calls=(ToolCall("look"),))
        async with staged([call, "Done."], store=store, tools=[look]) as second:
            events = await second.answer(asked, "Monday")
    assert [e.data["name"] for e in events if e.type == "tool.completed"] == ["look"]


async def test_a_connection_that_is_not_given_back_is_noticed(autojump_clock: MockClock) -> None:
    kept: list[Any] = []

    async def leak() -> None:
        async with fresh_store("sqlite") as store:
            kept_engine: Any = store
            kept.append(kept_engine._executor._engine.connect())

    with pytest.raises(AssertionError, match="1 database connections are still in use"):
        await leak()
    kept[0].close()


def test_times_begin_at_the_start(tmp_path: Path) -> None:
    async def main() -> None:
        async with staged(["Hi."]) as stage:
            events = await stage.say()
            assert events[0].created_at == START
            assert stage.session.subject_id == USER.subject_id
            assert isinstance(stage.runtime, Runtime)

    trio.run(main, clock=MockClock(autojump_threshold=0))


CONFTEST = 'pytest_plugins = ["rungent.testing.pytest_plugin"]\n'
TEST = """
from rungent.llm import ModelCompleted
from rungent.testing import Delay


async def test_waiting_is_shown(autojump_clock, rungent_stage):
    stage = await rungent_stage([[Delay(4), ModelCompleted("Hi.")]])
    events = await stage.say("Hello")
    assert stage.seconds(events, "activity.updated") == [3, 4]
"""


def test_the_plugin_works_in_a_project_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntrio_mode = true\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


TEST_WITHOUT_CLOCK = """
async def test_it(rungent_stage):
    pass
"""


def test_a_test_without_the_clock_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TEST_WITHOUT_CLOCK)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntrio_mode = true\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "add autojump_clock to the arguments" in done.stdout
