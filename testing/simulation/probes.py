"""Agents and models of a play, watched from inside: what executes, what is asked, what fails.

Source: docs/simulation.md#what-is-checked.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any

import trio

from rungent.agent import Agent
from rungent.llm.port import (
    Model,
    ModelChunk,
    ModelCompleted,
    ModelFailure,
    ModelRequest,
    RetryPolicy,
    TextDelta,
)
from rungent.testing.faulty_store import WorkerGone
from rungent.testing.simulation.plan import Kind
from rungent.testing.simulation.rules import Violation, check_executions
from rungent.testing.simulation.scenario import Execution
from rungent.testing.simulation.stage import Stage
from rungent.tools.context import ToolContext
from rungent.tools.decorator import AnyTool

__all__ = ["ProbedModel", "probed_agents"]

THINKING = (0.0, 0.0, 0.2, 4.0)
"""How long the model is silent at the start of an attempt, in seconds: one is drawn."""
HANG_SECONDS = 1000.0
STOP_SECONDS = 1.0
"""How long a tool may go on after its run was ended, in another process for example."""


class ProbedModel:
    """The scenario's model, with the failures of the plan."""

    def __init__(self, stage: Stage, model: Model) -> None:
        self._stage = stage
        self._model = model

    @property
    def retry_policy(self) -> RetryPolicy:
        """The model's own."""
        return self._model.retry_policy

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelChunk]]:
        """One attempt, perhaps one that fails."""
        stage = self._stage
        stage.attempts += 1
        chances = [c for c in stage.plan.of(Kind.PROVIDER) if c.number == stage.attempts]
        if chances:
            stage.fire(str(chances[0]))
        stage.open_streams += 1
        try:
            await trio.sleep(stage.stream("model").choice(THINKING))
            way = chances[0].way if chances else ""
            if way == "hang":
                await trio.sleep(HANG_SECONDS)
            if way in ("down", "busy"):
                raise ModelFailure("network", retry_after=20 if way == "busy" else None)
            async with self._model.stream(request) as chunks, aclosing(_cut(chunks, way)) as cut:
                yield cut
        finally:
            stage.open_streams -= 1


async def _cut(chunks: AsyncIterator[ModelChunk], way: str) -> AsyncGenerator[ModelChunk]:
    """The chunks, broken off before the end where that is wanted."""
    if way:
        yield TextDelta("Half a")
    async for chunk in chunks:
        if way == "incomplete" and isinstance(chunk, ModelCompleted):
            return
        if way == "cut" and isinstance(chunk, ModelCompleted):
            raise ModelFailure("network")
        yield chunk


def probed_agents(stage: Stage, worker: int, gone: Callable[[], bool]) -> list[Agent]:
    """The scenario's agents for one worker; `gone` says whether it crashed."""
    return [
        replace(agent, tools=tuple(_probed(stage, worker, gone, tool) for tool in agent.tools))
        for agent in stage.scenario.agents()
    ]


def _probed(stage: Stage, worker: int, gone: Callable[[], bool], tool: AnyTool) -> AnyTool:
    if tool.effect == "read":
        return tool

    async def watched(ctx: ToolContext, /, *args: Any, **arguments: Any) -> Any:
        await trio.lowlevel.checkpoint()
        if gone():
            raise WorkerGone("the worker crashed")
        place = await _begin(stage, worker, tool, ctx, arguments)
        try:
            result = await tool(ctx, *args, **arguments)
        finally:
            _check_end(stage, tool, ctx)
        stage.executions[place] = replace(stage.executions[place], ended=True)
        return result

    return replace(tool, function=watched)


async def _begin(
    stage: Stage, worker: int, tool: AnyTool, ctx: ToolContext, arguments: dict[str, Any]
) -> int:
    """Check that the execution is allowed, and note it. Returns its place in the notes."""
    key = str(ctx.idempotency_key)
    claims = await stage.store.list_claims(ctx.run_id)
    claim = next((claim for claim in claims if claim.call_id == ctx.call_id), None)
    stage.begun[key] += 1
    cut_off = claim is not None and claim.state in ("in_doubt", "cancelled")
    try:
        if not cut_off:
            check_executions(stage.begun, tool, key, claim)
    except Violation as broken:
        stage.fail(str(broken))
        raise
    stage.executions.append(Execution(tool.name, key, arguments, worker))
    stage.note(f"   worker {worker} executes {tool.name} {key[-9:]}")
    return len(stage.executions) - 1


def _check_end(stage: Stage, tool: AnyTool, ctx: ToolContext) -> None:
    ended_at = stage.ended_at.get(ctx.run_id)
    if ended_at is None or stage.harms:
        return
    late = trio.current_time() - ended_at
    if late > STOP_SECONDS:
        stage.fail(f"{tool.name} went on for {late:.0f} s after its run had ended")
