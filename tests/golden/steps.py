"""Scenes of model steps, tools and ends: what happens without anybody else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import trio

from rungent import Agent, Event, RunActivity, Tool, ToolCall, ToolContext, ToolResult, tool
from rungent.events import Usage
from rungent.llm.port import Heartbeat, ModelCompleted, ModelFailure, TextDelta
from rungent.testing.scripted import Delay
from tests.helpers import OWNER, asking, stage
from tests.runtime.twins import never

__all__ = [
    "answer_in_pieces",
    "budget_used_up",
    "cancelled_in_the_queue",
    "cancelled_while_writing",
    "cancelled_with_open_rows",
    "failed_again_and_again",
    "initial_call",
    "progress_of_the_model",
    "provider_gone",
    "refused_by_the_provider",
    "reset_before_tools",
    "retried",
    "tools_of_every_outcome",
    "tools_side_by_side",
    "waiting_texts",
]


@tool(effect="read", approval="never", parallel=True)
async def look(ctx: ToolContext, n: int) -> ToolResult:
    """Look, beside others, and say so."""
    await trio.sleep(n)
    await ctx.report_progress(f"Looking at {n}", public={"n": n})
    await trio.sleep(n)
    return ToolResult(data=n, message=f"Seen {n}", public=[n, None, "\u2028"])


@tool(effect="write", approval="never", title="Save it")
async def save(ctx: ToolContext, n: int) -> ToolResult:
    """Save a number, unless it is 0."""
    await ctx.report_progress("Saving")
    return ToolResult(data={"ok": n > 0}, message="Saved" if n else "Not saved", public=None)


@tool(effect="destructive", approval="never")
async def explode(ctx: ToolContext) -> None:
    """Fail."""
    await ctx.report_progress("Near the edge")
    raise RuntimeError("canary")


@tool(effect="external", approval="never", timeout_seconds=1)
async def hang(ctx: ToolContext) -> None:
    """Take for ever."""
    await trio.sleep_forever()


@tool(effect="read", approval="never")
async def wait(ctx: ToolContext) -> None:
    """Say so, and wait for long."""
    await ctx.report_progress("Waiting")
    await trio.sleep(10**6)


TOOLS: list[Tool[..., Any]] = [look, save, explode, hang, wait]
USAGE = Usage(input_tokens=12, output_tokens=7, total_tokens=19)


def spoken(*pieces: str) -> list[TextDelta | Delay | ModelCompleted]:
    """Pieces of a final text, each an event of its own."""
    parts: list[TextDelta | Delay | ModelCompleted] = []
    for piece in pieces:
        parts += [TextDelta(piece), Delay(0.25)]
    done = ModelCompleted("".join(pieces), usage=USAGE, provider_request_id="req_1")
    return [*parts, done]


async def played(*script: object, agent: Agent | None = None, **options: int) -> Sequence[Event]:
    chosen = agent or Agent("helper", "Help.", tools=TOOLS)
    async with stage(script, agent=chosen, **options) as on:  # type: ignore[arg-type]
        return await on.play("Do it")


async def answer_in_pieces() -> Sequence[Event]:
    return await played(spoken("Grüße ", "aus 東京 ", "👩‍👩‍👧", " \u2028 fine\n"))


async def waiting_texts() -> Sequence[Event]:
    def activity(ctx: ToolContext, content: str) -> RunActivity:
        return RunActivity("Planning", waiting_message="Still planning", public={"trip": "t"})

    late = [Delay(4), Heartbeat(), Delay(1), *spoken("Late.")]
    busy = [Delay(9), asking(ToolCall("save", {"n": 1}, "call_1"))]
    agent = Agent("helper", "Help.", tools=TOOLS, run_activity=activity)
    return await played(busy, late, agent=agent)


async def retried() -> Sequence[Event]:
    half = [TextDelta("Half "), Delay(0.25), TextDelta("a text"), Delay(0.25)]
    lost = ModelFailure("network")
    calls = ModelFailure("invalid_tool_arguments", tool_name="save")
    limited = ModelFailure("rate_limit", retry_after=2)
    return await played([*half, lost], calls, limited, spoken("Whole."))


async def provider_gone() -> Sequence[Event]:
    broken = [TextDelta("Half"), Delay(0.25), ModelFailure("server_error")]
    return await played(broken, broken, broken, broken)


async def refused_by_the_provider() -> Sequence[Event]:
    return await played(ModelFailure("model_rejected", terminal=True))


async def budget_used_up() -> Sequence[Event]:
    asked = [asking(ToolCall("look", {"n": n}, f"call_{n}")) for n in (1, 2)]
    return await played(*asked, max_model_steps=2)


async def tools_of_every_outcome() -> Sequence[Event]:
    first = asking(
        ToolCall("save", {"n": 1}, "call_saved"),
        ToolCall("save", {"n": 1}, "call_again"),
        ToolCall("save", {"n": 0}, "call_failing"),
        ToolCall("save", {"n": "x"}, "call_refused"),
        ToolCall("nothing", {}, "call_unknown"),
        ToolCall("explode", {}, "call_broken"),
        ToolCall("hang", {}, "call_late"),
        text="I try.",
    )
    return await played(first, spoken("Mixed."))


async def failed_again_and_again() -> Sequence[Event]:
    tries = [asking(ToolCall("explode", {}, f"call_{n}")) for n in (1, 2, 3)]
    return await played(*tries)


async def tools_side_by_side() -> Sequence[Event]:
    calls = [ToolCall("look", {"n": n}, f"call_{n}") for n in (3, 1, 7)]
    return await played(asking(*calls), spoken("Seen."))


async def reset_before_tools() -> Sequence[Event]:
    first = [TextDelta("Let me "), Delay(1), TextDelta("look."), Delay(1)]
    call = asking(ToolCall("look", {"n": 1}, "call_1"), text="Let me look.")
    return await played([*first, call], spoken("Seen."))


async def progress_of_the_model() -> Sequence[Event]:
    report = ToolCall("report_progress", {"message": "Comparing prices"}, "call_report")
    blank = ToolCall("report_progress", {"message": " "}, "call_blank")
    call = ToolCall("save", {"n": 2}, "call_2")
    return await played(asking(report, blank, call), spoken("Saved."))


async def initial_call() -> Sequence[Event]:
    def initial(ctx: ToolContext, content: str) -> ToolCall:
        return ToolCall("look", {"n": 2})

    agent = Agent("helper", "Help.", tools=TOOLS, run_initializer=initial)
    return await played(spoken("Seen."), agent=agent)


async def cancelled_while_writing() -> Sequence[Event]:
    async with stage([[TextDelta("It be"), *never()]]) as on:
        run_id = await on.start()
        await on.until(run_id, "message.delta")
        await on.cancel(run_id)
        return await on.log(run_id)


async def cancelled_with_open_rows() -> Sequence[Event]:
    agent = Agent("helper", "Help.", tools=TOOLS)
    async with stage([asking(ToolCall("wait", {}, "call_1"))], agent=agent) as on:
        run_id = await on.start()
        await on.until(run_id, "activity.updated")
        await on.cancel(run_id)
        return await on.log(run_id)


async def cancelled_in_the_queue() -> Sequence[Event]:
    async with stage([never()], max_concurrent_runs=1) as on:
        await on.start()
        other = await on.runtime.create_session(identity=OWNER)
        receipt = await on.runtime.create_run(other.id, "later", identity=OWNER)
        await on.cancel(receipt.run_id)
        return await on.log(receipt.run_id)
