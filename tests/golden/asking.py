"""Scenes with tools that write their own question, and with questions nobody answers in time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import trio

from rungent import Event, ToolCall
from rungent.store.memory import MemoryStore
from tests.asking.channel import (
    ASK,
    Channel,
    approval_tool,
    ask_channel,
    asks_in,
    click,
    poll_tool,
    serving,
)
from tests.helpers import asking

__all__ = [
    "approval_expired",
    "asked_in_a_channel",
    "cancelled_in_a_channel",
    "channel_expired",
    "voted",
]

MINUTE = timedelta(minutes=1)


async def asked_in_a_channel() -> Sequence[Event]:
    channel = Channel()
    async with serving(MemoryStore(), channel, [ASK, "Shipped."]) as on:
        run_id, tokens = await asks_in(on, channel)
        await trio.sleep(600)
        await click(on, tokens["Approve"])
        return await on.log(run_id)


async def voted() -> Sequence[Event]:
    """Two rounds of one question, each with a progress report."""
    channel = Channel()
    poll = asking(ToolCall("poll", {}, "call_poll"))
    async with serving(MemoryStore(), channel, [poll, "Passed."], poll_tool()) as on:
        run_id, tokens = await asks_in(on, channel)
        await click(on, tokens["Yes"], "bob")
        await on.until(run_id, "interaction.requested", 2)
        await click(on, tokens["Yes"], "cleo")
        return await on.log(run_id)


async def channel_expired() -> Sequence[Event]:
    channel, tool = Channel(), ask_channel(expires_in=MINUTE)
    async with serving(MemoryStore(), channel, [ASK, "Nobody answered."], tool) as on:
        run_id, _ = await asks_in(on, channel)
        return await on.log(run_id)


async def cancelled_in_a_channel() -> Sequence[Event]:
    channel = Channel()
    async with serving(MemoryStore(), channel, [ASK]) as on:
        run_id, _ = await asks_in(on, channel)
        await on.cancel(run_id)
        return await on.log(run_id)


async def approval_expired() -> Sequence[Event]:
    channel, tool = Channel(), approval_tool(expires_in=MINUTE)
    delete = asking(ToolCall("delete", {"path": "a.txt"}, "call_delete"))
    async with serving(MemoryStore(), channel, [delete, "Not deleted."], tool) as on:
        run_id, _ = await asks_in(on, channel)
        return await on.log(run_id)
