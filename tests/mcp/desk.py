"""A host with one tool of each kind, which notes what was done."""

from __future__ import annotations

from typing import Any

import trio

from rungent import (
    Agent,
    DeferredRequest,
    InteractionRequest,
    ToolContext,
    ToolContinuation,
    ToolResult,
    tool,
)

ASKED = "Which one?"
DONE = "booked"


class Desk:
    """What the tools did and where they are."""

    def __init__(self) -> None:
        self.booked: list[str] = []
        self.contexts: list[ToolContext] = []
        self.waiting = trio.Event()
        self.cancelled = trio.Event()


def desk_of(ctx: ToolContext) -> Desk:
    """The desk that the host provided."""
    desk = ctx.deps["desk"]
    assert isinstance(desk, Desk)
    desk.contexts.append(ctx)
    return desk


@tool(effect="read", approval="never")
async def add(ctx: ToolContext, a: int, b: int) -> int:
    """Add two numbers."""
    desk_of(ctx)
    await ctx.report_progress("Adding")
    return a + b


@tool(effect="read", approval="never")
async def fail(ctx: ToolContext) -> None:
    """Fail in a way that nobody may read."""
    raise RuntimeError("canary")


@tool(effect="read", approval="never", timeout_seconds=30)
async def wait(ctx: ToolContext) -> None:
    """Never end."""
    desk = desk_of(ctx)
    desk.waiting.set()
    try:
        await trio.sleep_forever()
    except trio.Cancelled:
        desk.cancelled.set()
        raise


@tool(effect="write", approval="always", confirmation="Book {city}?")
async def book(ctx: ToolContext, city: str) -> str:
    """Book a city."""
    desk_of(ctx).booked.append(city)
    return DONE


@tool(effect="read", approval="never")
async def ask(ctx: ToolContext) -> ToolResult:
    """Ask the user something."""
    options = [{"id": "a", "label": "A"}, {"id": "b", "label": "B"}]
    return ToolResult(
        interaction=InteractionRequest(
            "choice",
            ASKED,
            options=options,
            continuation=ToolContinuation("answered", {"note": "frozen"}),
        )
    )


@tool(effect="read", approval="never", requires_interaction_response=True)
async def answered(ctx: ToolContext, note: str) -> dict[str, Any]:
    """Show the answer."""
    assert ctx.interaction_response is not None
    value: Any = ctx.interaction_response.value
    return {**value, "note": note}


@tool(effect="external", approval="never")
async def ship(ctx: ToolContext) -> ToolResult:
    """Begin work that takes days."""
    return ToolResult(deferred=DeferredRequest("parcel-1", "On its way."))


AGENT = Agent(name="desk", instructions="-", tools=[add, fail, wait, book, ask, answered, ship])
