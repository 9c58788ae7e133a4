"""A chat channel that remembers what was posted, and tools that ask there."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import trio
from pydantic import BaseModel

from rungent import (
    ActionOutcome,
    Agent,
    Ask,
    Identity,
    Runtime,
    Tool,
    ToolCall,
    ToolContext,
    ToolResult,
    tool,
)
from rungent.options import DependencyProvider
from rungent.store import Store
from rungent.testing.clock import virtual_now
from rungent.testing.scripted import ScriptedModel
from rungent.tools.asking import KeptAsk
from tests.helpers import START, Stage, asking, opened

__all__ = [
    "ASK",
    "TEAM",
    "Channel",
    "Decision",
    "Message",
    "approval_tool",
    "ask_channel",
    "asks_in",
    "click",
    "poll_tool",
    "provider",
    "serving",
]

TEAM = (Identity("bob"), Identity("cleo"), Identity("dan"))
ASK = asking(ToolCall("ask_channel", {"message": "Ship it"}, "call_ask"))


class Decision(BaseModel):
    """The answer of the example."""

    approved: bool
    note: str | None = None


@dataclass
class Message:
    """A posted message: its text as it is now, and its buttons."""

    id: str
    text: str
    buttons: dict[str, str]
    texts: list[str] = field(default_factory=list[str])


@dataclass
class Channel:
    """A chat service in the same process. `slow` is how long an update takes, in seconds."""

    messages: list[Message] = field(default_factory=list[Message])
    slow: float = 0
    broken: bool = False

    @property
    def last(self) -> Message:
        return self.messages[-1]

    async def post(self, text: str, buttons: Mapping[str, str]) -> Message:
        await trio.lowlevel.checkpoint()
        message = Message(f"m{len(self.messages) + 1}", text, dict(buttons), [text])
        self.messages.append(message)
        return message

    async def update(self, message_id: str, text: str) -> None:
        await trio.sleep(self.slow)
        if self.broken:
            raise ConnectionError("canary")
        message = next(m for m in self.messages if m.id == message_id)
        message.text = text
        message.texts.append(text)
        message.buttons = {}


def provider(channel: Channel) -> DependencyProvider:
    """Gives every drive the channel."""
    return lambda session, run: {"chat": channel}


def is_team_member(ctx: ToolContext, responder: Identity) -> bool:
    """Whoever the host counts to the team."""
    return responder in ctx.deps.get("team", TEAM)


def ask_channel(**options: Any) -> Tool[..., Any]:
    """The tool of the document: asks a team to approve a message."""
    expires_in = options.pop("expires_in", timedelta(hours=8))
    options.setdefault("responders", is_team_member)

    @tool(effect="external", approval="never", title="Ask the channel", **options)
    async def ask_channel(ctx: ToolContext, message: str) -> ToolResult:
        """Ask the team to approve a message."""
        ask = ctx.ask(Decision, prompt=f"Approve: {message}?", expires_in=expires_in)
        buttons = {"Approve": ask.action(approved=True), "Reject": ask.action(approved=False)}
        post = await ctx.deps["chat"].post(ask.prompt, buttons)
        return ToolResult(interaction=ask.keep(message_id=post.id))

    @ask_channel.answered
    async def ask_channel_answered(
        ctx: ToolContext, answer: Decision, *, message: str, message_id: str
    ) -> ToolResult:
        assert ctx.answered_by is not None
        verdict = "approved" if answer.approved else "rejected"
        text = f"{message}: {verdict} by {ctx.answered_by.subject_id}"
        await ctx.deps["chat"].update(message_id, text)
        return ToolResult(data={"approved": answer.approved, "note": answer.note})

    @ask_channel.closed
    async def ask_channel_closed(ctx: ToolContext, reason: str, *, message_id: str) -> None:
        await ctx.deps["chat"].update(message_id, f"Closed: {reason}")

    return ask_channel


def poll_tool(max_answers: int = 3, needed: int = 2, **options: Any) -> Tool[..., Any]:
    """Asks until enough people said yes."""

    @tool(effect="external", approval="never", **options)
    async def poll(ctx: ToolContext) -> ToolResult:
        """Let the team vote."""
        ask = ctx.ask(Decision, prompt="Yes?", responders=TEAM, max_answers=max_answers)
        buttons = {"Yes": ask.action(approved=True), "No": ask.action(approved=False)}
        post = await ctx.deps["chat"].post(ask.prompt, buttons)
        return ToolResult(interaction=ask.keep(message_id=post.id, votes=0))

    @poll.answered
    async def poll_answered(
        ctx: ToolContext, answer: Decision, *, message_id: str, votes: int
    ) -> ToolResult:
        votes += answer.approved
        await ctx.report_progress(f"{votes} of {needed}")
        await trio.sleep(ctx.deps["chat"].slow)
        if votes < needed:
            return ToolResult(interaction=ctx.again(message_id=message_id, votes=votes))
        await ctx.deps["chat"].update(message_id, f"{votes} votes")
        return ToolResult(data={"votes": votes})

    return poll


def approval_tool(**options: Any) -> Tool[..., Any]:
    """Deletes something once a team member approved it in the channel."""

    async def announce(ctx: ToolContext, ask: Ask, path: str) -> KeptAsk:
        buttons = {"Yes": ask.action(approved=True), "No": ask.action(approved=False)}
        post = await ctx.deps["chat"].post(ask.prompt, buttons)
        return ask.keep(message_id=post.id)

    @tool(
        effect="destructive",
        approval="always",
        confirmation="Delete {path}?",
        announce=announce,
        responders=is_team_member,
        **options,
    )
    async def delete(ctx: ToolContext, path: str) -> str:  # noqa: ASYNC124 - a tool
        """Delete a file."""
        return f"{path} is gone"

    @delete.closed
    async def delete_closed(ctx: ToolContext, reason: str, *, path: str, message_id: str) -> None:
        await ctx.deps["chat"].update(message_id, f"{path}: {reason}")

    return delete


@asynccontextmanager
async def serving(
    store: Store,
    channel: Channel,
    script: list[Any],
    *tools: Tool[..., Any],
    session: Any = None,
    **options: Any,
) -> AsyncGenerator[Stage]:
    """A worker whose tools post to the channel; `session` is that of an earlier worker."""
    model = ScriptedModel(script)
    options.setdefault("now", virtual_now(START))
    runtime = Runtime(
        agents=[Agent("helper", "Help.", tools=tools or (ask_channel(),))],
        model=model,
        store=store,
        dependency_provider=provider(channel),
        **options,
    )
    async with runtime:
        if session is None:
            yield await opened(runtime, store, model)
        else:
            yield Stage(runtime, store, model, session)


async def asks_in(on: Stage, channel: Channel) -> tuple[str, dict[str, str]]:
    """Start a run and follow it to its question; the run, and the tokens by their button."""
    run_id = await on.start()
    await on.until(run_id, "interaction.requested")
    return run_id, dict(channel.last.buttons)


async def click(on: Stage, token: str, who: str = "bob") -> ActionOutcome:
    """Somebody clicks a button."""
    return await on.runtime.act(token, identity=Identity(who))
