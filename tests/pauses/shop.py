"""Tools that note what they did, and the few moves that tests of pauses share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import trio

from rungent import (
    Agent,
    DeferredRequest,
    Event,
    InteractionRequest,
    Run,
    RunReceipt,
    Tool,
    ToolCall,
    ToolContext,
    ToolContinuation,
    ToolResult,
    tool,
)
from rungent.llm import ModelCompleted
from rungent.store import Store
from tests.grammar import check_log
from tests.helpers import OWNER, PATIENCE_SECONDS, Stage, asking

__all__ = [
    "Deed",
    "Shop",
    "answer",
    "ask",
    "asked",
    "check_calls",
    "envelopes",
    "finish",
    "parked",
    "paused",
    "snapshot",
    "tool_names",
]


@dataclass(frozen=True, slots=True)
class Deed:
    """One execution: the tool, its arguments as JSON, its call and the answer it saw."""

    name: str
    arguments: str
    call_id: str | None = None
    answer: Any = None


@dataclass
class Shop:
    """Tools of every kind that pauses. `then` is what `offer` asks its question for."""

    deeds: list[Deed] = field(default_factory=list[Deed])
    then: Any = field(default_factory=lambda: ToolContinuation("accept", {"what": "hotel"}))
    question: dict[str, Any] = field(
        default_factory=lambda: dict[str, Any](kind="text", prompt="Which one?")
    )
    result: Any = "done"
    broken: bool = False

    def did(self, ctx: ToolContext, name: str, **arguments: Any) -> Any:
        answer = None if ctx.interaction_response is None else ctx.interaction_response.value
        text = json.dumps(arguments, sort_keys=True)
        self.deeds.append(Deed(name, text, ctx.call_id, answer))
        if self.broken:
            raise ZeroDivisionError("canary")
        return self.result

    @property
    def names(self) -> list[str]:
        return [deed.name for deed in self.deeds]

    def request(self) -> InteractionRequest:
        return InteractionRequest(**self.question, continuation=self.then)

    def tools(self) -> list[Tool[..., Any]]:
        return [
            self.peek(),
            self.note(),
            self.delete(),
            self.accept(),
            self.grant(),
            self.offer(),
            self.job(),
        ]

    def agent(self, **options: Any) -> Agent:
        return Agent("helper", "Help.", tools=self.tools(), **options)

    def peek(self) -> Tool[..., Any]:
        @tool(effect="read", approval="never", parallel=True)
        async def peek(ctx: ToolContext, n: int = 0) -> Any:
            """Read."""
            await trio.sleep(1)
            return self.did(ctx, "peek", n=n)

        return peek

    def note(self) -> Tool[..., Any]:
        @tool(effect="write", approval="never")
        async def note(ctx: ToolContext, n: int = 0) -> Any:
            """Write."""
            return self.did(ctx, "note", n=n)

        return note

    def delete(
        self, confirmation: Any = "Delete {path}?", *, timeout: float = 60, **options: Any
    ) -> Tool[..., Any]:
        @tool(
            effect="destructive",
            approval="always",
            confirmation=confirmation,
            timeout_seconds=timeout,
            **options,
        )
        async def delete(ctx: ToolContext, path: str, deep: bool = False) -> Any:
            """Delete."""
            return self.did(ctx, "delete", path=path, deep=deep)

        return delete

    def accept(self) -> Tool[..., Any]:
        @tool(effect="write", approval="never", requires_interaction_response=True)
        async def accept(ctx: ToolContext, what: str = "it") -> Any:
            """Write what was answered."""
            return self.did(ctx, "accept", what=what)

        return accept

    def grant(self) -> Tool[..., Any]:
        @tool(
            effect="write",
            approval="always",
            confirmation="Grant {what}?",
            requires_interaction_response=True,
        )
        async def grant(ctx: ToolContext, what: str = "it") -> Any:
            """Write what was answered and approved."""
            return self.did(ctx, "grant", what=what)

        return grant

    def offer(self) -> Tool[..., Any]:
        @tool(effect="read", approval="never")
        async def offer(ctx: ToolContext) -> Any:
            """Ask the user what to take."""
            self.did(ctx, "offer")
            return ToolResult(data={"asked": True}, interaction=self.request())

        return offer

    def job(self) -> Tool[..., Any]:
        @tool(effect="external", approval="never", deduplicate=False)
        async def job(ctx: ToolContext, task: str = "t1") -> Any:
            """Leave work to the host."""
            await ctx.report_progress("Handing over.", public={"p": 1})
            self.did(ctx, "job", task=task)
            return ToolResult(deferred=DeferredRequest(task, "At work.", {"at": 0}))

        return job


def ask(prompt: str = "Which day?", kind: str = "text", **more: Any) -> ToolCall:
    """A question of the model."""
    return ToolCall("request_input", {"kind": kind, "prompt": prompt, **more})


def deleting(path: str = "a.txt", **more: Any) -> ModelCompleted:
    """A reply that wants something deleted."""
    return asking(ToolCall("delete", {"path": path, **more}))


async def paused(on: Stage, run_id: str, after: int = 0) -> dict[str, Any]:
    """Follow the run to its pending question; the payload that announced it."""
    seen: list[Event] = []
    with trio.fail_after(PATIENCE_SECONDS):
        stream = on.runtime.stream_events(run_id, identity=OWNER, after_seq=after)
        seen = [event async for event in stream]
    assert seen, "the run waits for nothing new"
    assert seen[-1].type == "interaction.requested", [event.type for event in seen]
    assert (await on.run(run_id)).status == "waiting_input"
    return seen[-1].data


async def asked(on: Stage, content: str = "hi", **options: Any) -> tuple[str, dict[str, Any]]:
    """Start a run and follow it to its first question."""
    run_id = await on.start(content, **options)
    return run_id, await paused(on, run_id)


async def parked(on: Stage, content: str = "hi") -> str:
    """Start a run and follow it until it waits for the host."""
    run_id = await on.start(content)
    await on.until(run_id, "run.waiting_external")
    return run_id


async def answer(
    on: Stage, run_id: str, interaction: Mapping[str, Any], value: Any, **options: Any
) -> RunReceipt:
    """Answer a question."""
    return await on.runtime.submit_response(
        run_id, interaction["id"], value, identity=OWNER, **options
    )


async def finish(
    on: Stage, run_id: str, status: Literal["completed", "failed", "cancelled"] = "completed"
) -> list[Event]:
    """Follow the run to its end, which must be this one, and check all that it left behind."""
    events = await on.log(run_id)
    assert events[-1].type == f"run.{status}", events[-1]
    run = await on.run(run_id)
    assert (run.status, run.lease, run.state.turn) == (status, None, ())
    await check_calls(on)
    return events


async def check_calls(on: Stage) -> None:
    """Every call of the session has its one answer before the next other message."""
    wanted: list[str | None] = []
    for message in await on.messages():
        if message.role == "tool":
            assert wanted
            assert message.tool_call_id == wanted.pop(0)
            continue
        assert wanted == []
        wanted = [call.id for call in message.tool_calls]
    assert wanted == []
    for request in on.model.requests:
        asked: list[Any] = []
        for line in request.messages:
            if line["role"] == "tool":
                assert line["tool_call_id"] == asked.pop(0)
                continue
            assert asked == [], "the model was asked with a call unanswered"
            made: Any = line.get("tool_calls", [])
            asked = [call["id"] for call in made]
        assert asked == []


async def envelopes(on: Stage) -> list[dict[str, Any]]:
    """The tool messages of the session, oldest first."""
    return [json.loads(m.content) for m in await on.messages() if m.role == "tool"]


async def snapshot(on: Stage, run_id: str) -> tuple[Run, list[Event], int, Any]:
    """All that a refused request could have changed."""
    store: Store = on.store
    run = await store.get_run(run_id)
    events = await store.list_events(run_id, after=0, limit=500)
    check_log(events, complete=False)
    pending = run.state.interaction
    kept = None if pending is None else await store.get_interaction(pending.id)
    return run, events, len(await on.messages()), kept


def tool_names(on: Stage, request: int = -1) -> list[str]:
    """What a request offered, the last one by default, without the built-in tools."""
    specs: list[Any] = list(on.model.requests[request].tools[2:])
    return [spec["function"]["name"] for spec in specs]
