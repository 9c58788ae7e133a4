"""Our own scenarios: every kind of pause and of tool, to be played with every kind of fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import trio
from typing_extensions import override

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
from rungent.llm import Model, ModelCompleted
from rungent.options import RuntimeOptions
from rungent.testing.simulation import Seen, SimScenario, TranscriptModel

__all__ = ["SCENARIOS", "Pauses", "Sessions", "Writes"]


class World:
    """What tools change: how often, by key, and the answers that were used."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.sent: set[str] = set()
        self.answers: Counter[str] = Counter()


def world(ctx: ToolContext) -> World:
    found: World = ctx.deps["world"]
    return found


async def act(ctx: ToolContext) -> None:
    await trio.sleep(0.01)
    world(ctx).done[str(ctx.idempotency_key)] += 1
    await trio.sleep(0.01)


@tool(effect="read", approval="never", parallel=True)
async def look(ctx: ToolContext, n: int) -> int:
    """Read."""
    await trio.sleep(0.1 * n)
    return n


@tool(effect="write", approval="never")
async def note(ctx: ToolContext, n: int = 0) -> None:
    """Write, and tell of it."""
    await ctx.report_progress("Writing.")
    await act(ctx)


@tool(effect="write", approval="never", timeout_seconds=100)
async def slow(ctx: ToolContext) -> None:
    """Write for longer than a lease lasts."""
    await act(ctx)
    await trio.sleep(45)


@tool(effect="external", approval="never", idempotent=True)
async def charge(ctx: ToolContext) -> None:
    """Write under a key."""
    await trio.sleep(0.01)
    world(ctx).done[str(ctx.idempotency_key)] = 1


async def what_became(ctx: ToolContext) -> ToolResult | None:
    await trio.sleep(0.01)
    return ToolResult(data="found") if world(ctx).done[str(ctx.idempotency_key)] else None


@tool(effect="external", approval="never", reconcile=what_became)
async def post(ctx: ToolContext) -> None:
    """Write, and be able to tell later."""
    await act(ctx)


@tool(effect="destructive", approval="always", confirmation="Delete {name}?")
async def delete(ctx: ToolContext, name: str) -> None:
    """Write after approval."""
    await act(ctx)


@tool(effect="read", approval="never")
async def ask(ctx: ToolContext) -> ToolResult:
    """Ask before the next write."""
    await trio.sleep(0.01)
    following = ToolContinuation("accept", {})
    return ToolResult(interaction=InteractionRequest("text", "And?", continuation=following))


@tool(effect="write", approval="never", requires_interaction_response=True)
async def accept(ctx: ToolContext, n: int = 1) -> None:
    """Write what was answered."""
    assert ctx.interaction_response is not None
    world(ctx).answers[ctx.interaction_response.interaction_id] += 1
    await act(ctx)


@tool(effect="external", approval="never")
async def render(ctx: ToolContext, n: int = 0) -> ToolResult:
    """Give the host something to do."""
    await act(ctx)
    return ToolResult(deferred=DeferredRequest(f"job-{n}", "Rendering."))


TOOLS = (look, note, slow, charge, post, delete, ask, accept, render)


def asks(**question: Any) -> ToolCall:
    return ToolCall("request_input", {"prompt": "Which?", **question})


def turn(*calls: ToolCall, text: str = "") -> ModelCompleted:
    return ModelCompleted(text, tool_calls=calls)


OPTIONS = [{"id": name, "label": name.title()} for name in ("a", "b", "c")]
FORM = asks(
    kind="form",
    questions=[
        {"id": "day", "prompt": "Which day?", "kind": "text"},
        {"id": "pace", "prompt": "How?", "kind": "choice", "options": OPTIONS},
    ],
)


class Ours(SimScenario):
    """A world that outlives workers, the tools above, and one script for the model."""

    turns: Sequence[str | ModelCompleted] = ("Done.",)

    def __init__(self) -> None:
        self.world = World()

    @override
    def agents(self) -> Sequence[Agent]:
        return [Agent("helper", "Help.", tools=TOOLS)]

    @override
    def model(self) -> Model:
        return TranscriptModel(self.turns)

    @override
    def deps(self) -> Mapping[str, Any]:
        return {"world": self.world}

    @override
    def check(self, seen: Seen) -> None:
        for key, count in self.world.done.items():
            assert count == 1, f"{key} took effect {count} times"
        for answer, count in self.world.answers.items():
            assert count == 1, f"the answer to {answer} was used {count} times"


class Pauses(Ours):
    """Every kind of pause in one run, some of them in one turn."""

    turns = (
        turn(ToolCall("delete", {"name": "x"}), ToolCall("ask"), text="Well."),
        turn(asks(kind="choice", options=OPTIONS, allow_skip=True), ToolCall("render")),
        turn(FORM, ToolCall("accept", {"n": 2}), ToolCall("accept", {"n": 3}), ToolCall("ask")),
        "Done with all of it.",
    )


class Writes(Ours):
    """Every kind of execution, repetitions among them."""

    turns = (
        turn(ToolCall("look", {"n": 1}), ToolCall("look", {"n": 2}), ToolCall("note", {"n": 1})),
        turn(ToolCall("charge"), ToolCall("post"), ToolCall("note", {"n": 1})),
        turn(ToolCall("note", {"n": 2}), ToolCall("slow")),
        "Done with all of it.",
    )

    @override
    def check_end(self, seen: Seen) -> None:
        """Without a loss, each of both notes was written once: dedup looks at the arguments."""
        for run_id, log in seen.logs.items():
            doubts = [e for e in log if e.type == "tool.failed"]
            if seen.runs[run_id].status != "completed" or doubts:
                continue
            noted = [e for e in seen.executions if e.tool == "note" and run_id in e.key]
            assert len(noted) == 2, f"{len(noted)} notes instead of 2"


class Sessions(Ours):
    """Three users at once, two of them with a second run; few slots, so runs queue."""

    conversations = (("One", "Two"), ("One", "Two"), ("One",))
    turns = (
        turn(ToolCall("note"), asks(kind="text")),
        turn(ToolCall("render")),
        "Done with all of it.",
    )

    @override
    def options(self) -> RuntimeOptions:
        return {"max_concurrent_runs": 1}


SCENARIOS = (Pauses, Writes, Sessions)
