"""An agent with a tool of every kind, and a model that plays one fixed run with it.

The run reads twice beside each other, writes in every way, has one write approved, asks a
question, continues a tool's own question and waits for the host. Whoever works on it can be lost
anywhere: the model sees from the transcript how far the run is.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Protocol

import trio

from rungent import (
    Agent,
    DeferredRequest,
    InteractionRequest,
    ToolCall,
    ToolContext,
    ToolContinuation,
    ToolResult,
    tool,
)
from rungent.llm.port import (
    ModelChunk,
    ModelCompleted,
    ModelRequest,
    RetryPolicy,
    TextDelta,
)

__all__ = ["AGENT", "ONCE", "REPEATABLE", "Reader", "World"]

TURNS: Sequence[Sequence[ToolCall]] = (
    (
        ToolCall("look", {"n": 1}, "0-look"),
        ToolCall("look", {"n": 2}, "0-look-again"),
        ToolCall("note", {}, "0-note"),
        ToolCall("charge", {}, "0-charge"),
        ToolCall("post", {}, "0-post"),
    ),
    (
        ToolCall("delete", {}, "1-delete"),
        ToolCall("request_input", {"kind": "text", "prompt": "Which day?"}, "1-input"),
        ToolCall("ask", {}, "1-ask"),
    ),
    (ToolCall("render", {}, "2-render"),),
)
ONCE = ("note", "charge", "post", "delete", "accept", "render")
"""The tools with an effect."""
REPEATABLE = {"look", "ask", "charge", "post"}
"""What is executed again after a loss, or found out about."""


class Reader:
    """A model that sees from the transcript alone how far the run is."""

    def __init__(self, pause: float = 0) -> None:
        self._pause = pause
        self.retry_policy = RetryPolicy(0, 0.1, jitter=0)

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelChunk]]:
        asked: list[Any] = [message.get("tool_calls", []) for message in request.messages]
        done = {call["id"].partition("-")[0] for made in asked for call in made}
        turn = sum(str(number) in done for number in range(len(TURNS)))
        async with aclosing(self._chunks(turn)) as chunks:
            yield chunks

    async def _chunks(self, turn: int) -> AsyncGenerator[ModelChunk]:
        await trio.sleep(self._pause)
        if turn == len(TURNS):
            yield TextDelta("Done.")
            yield ModelCompleted("Done.")
            return
        yield TextDelta("Well.")
        # Time to write it, before the reply that would else take it along. In the first moment
        # the task that writes it may not have begun.
        for _ in range(2):
            await trio.sleep(self._pause)
        yield ModelCompleted("Well.", tool_calls=tuple(TURNS[turn]))


class World(Protocol):
    """What tools act on: it outlives every worker. Reached through their dependencies."""

    async def act(self, tool_name: str, key: str) -> None:
        """Take effect; of `charge` only once for each key."""
        ...

    async def find(self, tool_name: str, key: str) -> bool:
        """Whether the tool took effect under this key."""
        ...


async def act(ctx: ToolContext, tool_name: str) -> None:
    world: World = ctx.deps["world"]
    assert ctx.idempotency_key is not None
    await world.act(tool_name, ctx.idempotency_key)


@tool(effect="read", approval="never", parallel=True)
async def look(ctx: ToolContext, n: int) -> int:
    """Read."""
    await trio.lowlevel.checkpoint()
    return n


@tool(effect="write", approval="never")
async def note(ctx: ToolContext) -> None:
    """Write, and tell of it."""
    await ctx.report_progress("Writing.")
    await act(ctx, "note")


@tool(effect="external", approval="never", idempotent=True)
async def charge(ctx: ToolContext) -> None:
    """Write under a key."""
    await act(ctx, "charge")


async def what_became(ctx: ToolContext) -> ToolResult | None:
    world: World = ctx.deps["world"]
    assert ctx.idempotency_key is not None
    found = await world.find("post", ctx.idempotency_key)
    return ToolResult(data="found") if found else None


@tool(effect="external", approval="never", reconcile=what_became)
async def post(ctx: ToolContext) -> None:
    """Write, and be able to tell later."""
    await act(ctx, "post")


@tool(effect="destructive", approval="always", confirmation="Really?")
async def delete(ctx: ToolContext) -> None:
    """Write after approval."""
    await act(ctx, "delete")


@tool(effect="read", approval="never")
async def ask(ctx: ToolContext) -> ToolResult:
    """Ask before the next write."""
    await trio.lowlevel.checkpoint()
    following = ToolContinuation("accept", {})
    return ToolResult(interaction=InteractionRequest("text", "And?", continuation=following))


@tool(effect="write", approval="never", requires_interaction_response=True)
async def accept(ctx: ToolContext) -> None:
    """Write what was answered."""
    assert ctx.interaction_response is not None
    await act(ctx, "accept")


@tool(effect="external", approval="never")
async def render(ctx: ToolContext) -> ToolResult:
    """Give the host something to do."""
    await act(ctx, "render")
    return ToolResult(deferred=DeferredRequest("job", "Rendering."))


AGENT = Agent("helper", "Help.", tools=[look, note, charge, post, delete, ask, accept, render])
