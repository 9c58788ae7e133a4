"""What a runtime writes is never a violation, whatever happens to the run, and at any moment."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from rungent import Agent, RunActivity, ToolCall, ToolContext, ToolResult, tool
from rungent.events import Usage
from rungent.llm.port import ModelCompleted, ModelFailure, TextDelta
from rungent.records import RunStatus
from rungent.testing.scripted import Delay
from tests.helpers import OWNER, asking, failed, of, stage, types
from tests.persistence.stores import sql_store
from tests.verify.databases import recording


@tool(effect="read", approval="never", parallel=True)
async def look(ctx: ToolContext, n: int) -> int:
    """Look, beside others, and say so."""
    await ctx.report_progress(f"Looking at {n}")
    return n


@tool(effect="write", approval="never")
async def save(ctx: ToolContext, n: int) -> ToolResult:
    """Save a number."""
    await ctx.report_progress("Saving", public={"n": n})
    return ToolResult(data={"ok": n > 0}, message="Saved")


@tool(effect="write", approval="never")
async def explode(ctx: ToolContext, n: int) -> int:
    """Fail."""
    raise RuntimeError("private")


@tool(effect="read", approval="never", timeout_seconds=1)
async def dawdle(ctx: ToolContext, n: int) -> None:
    """Take too long."""
    await trio.sleep_forever()


@tool(effect="external", approval="never")
async def hang(ctx: ToolContext, n: int) -> None:
    """Take for ever."""
    await trio.sleep_forever()


USAGE = Usage(input_tokens=1, output_tokens=2, total_tokens=3)
TOOLS = [look, save, explode, dawdle, hang]


def call(name: str, n: int = 1) -> ToolCall:
    return ToolCall(name, {"n": n})


SCRIPTS: dict[str, list[object]] = {
    "answer": ["Hello."],
    "two steps": [asking(call("save"), text="I save."), "Saved."],
    "parallel": [asking(call("look"), call("look", n=2), call("look", n=3)), "Seen."],
    "mixed": [asking(call("look"), call("save"), call("look", n=2), call("dawdle")), "Done."],
    "failing results": [asking(call("save", n=0)), asking(call("explode")), "Sorry."],
    "repetition": [asking(call("save")), asking(call("save")), "Saved once."],
    "refused": [
        asking(ToolCall("save", {"n": "x"}), ToolCall("nothing"), ToolCall("save", {})),
        "I see.",
    ],
    "progress": [
        asking(ToolCall("report_progress", {"message": "Working"}), call("look")),
        asking(ToolCall("report_progress", {"message": ""})),
        "Done.",
    ],
    "retries": [ModelFailure("rate_limit"), [TextDelta("Half"), ModelFailure("network")], "Whole."],
    "waits": [
        [Delay(4), TextDelta("I look"), Delay(6), asking(call("look"), text="I look")],
        [Delay(9), TextDelta("Late"), ModelCompleted("Late", usage=USAGE)],
    ],
    "no model": [ModelFailure("server_error")] * 4,
    "identical failures": [asking(call("explode"))] * 3,
}


@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_run_that_ended_by_itself_is_healthy(
    name: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with recording(tmp_path, SCRIPTS[name], tools=TOOLS) as (on, database):
        log = await on.play()
        assert log[-1].type in {"run.completed", "run.failed"}
        assert database.violations() == [None]


async def test_a_run_with_activity_and_an_initial_call_is_healthy(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    agent = Agent(
        "helper",
        "Help.",
        tools=TOOLS,
        run_activity=lambda ctx, content: RunActivity("On it", "Waiting", "Still waiting", "On"),
        run_initializer=lambda ctx, content: call("look"),
    )
    async with recording(tmp_path, ["Seen."], agent=agent) as (on, database):
        assert types(await on.play())[1] == "activity.updated"
        assert database.violations() == [None]


async def test_a_run_is_healthy_at_every_moment(tmp_path: Path, autojump_clock: MockClock) -> None:
    script = [asking(call("look"), call("save"), text="Both."), "Done."]
    async with recording(tmp_path, script, tools=TOOLS) as (on, database):
        run_id = await on.start()
        stream = on.runtime.stream_events(run_id, identity=OWNER, until="terminal")
        moments = 0
        async for _ in stream:
            assert database.violations() == [None]
            moments += 1
        assert moments > 8


async def test_a_cancelled_run_is_healthy(tmp_path: Path, autojump_clock: MockClock) -> None:
    script = [asking(call("look"), call("hang"), call("save"))]
    async with recording(tmp_path, script, tools=TOOLS) as (on, database):
        run_id = await on.start()
        await on.until(run_id, "tool.started", 2)
        assert database.violations() == [None]
        await on.cancel(run_id)
        assert of(await on.log(run_id), "run.cancelled")
        assert database.violations() == [None]


async def test_queued_and_cancelled_queued_runs_are_healthy(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    script = [asking(call("hang"))]
    async with recording(tmp_path, script, tools=TOOLS, max_concurrent_runs=1) as (on, database):
        first = await on.start()
        await on.until(first, "tool.started")
        other = await on.runtime.create_session(identity=OWNER)
        queued = (await on.runtime.create_run(other.id, "hi", identity=OWNER)).run_id
        assert (await on.run(queued)).status is RunStatus.QUEUED
        assert database.violations() == [None, None]
        await on.cancel(queued)
        assert database.violations() == [None, None]
        await on.cancel(first)


async def test_a_step_limit_is_healthy(tmp_path: Path, autojump_clock: MockClock) -> None:
    script = [asking(call("look", n=n)) for n in range(3)]
    async with recording(tmp_path, script, tools=TOOLS, max_model_steps=3) as (on, database):
        assert failed(await on.play()) == "model_step_limit_exceeded"
        assert database.violations() == [None]


async def test_a_run_that_changed_its_worker_is_healthy(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    script = [asking(call("look"), call("hang"), call("save"))]
    async with recording(tmp_path, script, tools=TOOLS) as (on, database):
        run_id = await on.start()
        await on.until(run_id, "tool.started", 2)
    assert database.violations() == [None]
    store = sql_store("inline", tmp_path)
    async with store.open(), stage(["Done."], tools=TOOLS, store=store) as on:
        log = await on.log(run_id)
        assert [data["code"] for data in of(log, "tool.failed")] == ["outcome_unknown"]
        assert database.violations() == [None]


async def test_a_conversation_of_several_runs_is_healthy(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    script = [asking(call("look")), "One.", *[ModelFailure("server_error")] * 4, "Three."]
    async with recording(tmp_path, script, tools=TOOLS) as (on, database):
        ends = [(await on.play(text))[-1].type for text in ("a", "b", "c")]
        assert ends == ["run.completed", "run.failed", "run.completed"]
        assert database.violations() == [None] * 3
