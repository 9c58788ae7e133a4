"""Scenes with a user or a host: questions, approvals, deferred work, and a lost worker."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio

from rungent import Agent, Event, ToolCall, ToolContext, ToolContinuation, ToolResult, tool
from rungent.llm.port import TextDelta
from rungent.store.memory import MemoryStore
from rungent.testing.clock import virtual_now
from tests.helpers import OWNER, START, Stage, asking, stage
from tests.pauses.shop import Shop, answer, ask, asked, parked, paused
from tests.runtime.twins import never

__all__ = [
    "approved",
    "approved_in_vain",
    "asked_by_a_tool",
    "cancelled_at_a_question",
    "cancelled_at_host_work",
    "choice_answered",
    "choice_skipped",
    "form_answered",
    "host_work_asks",
    "host_work_completed",
    "host_work_failed",
    "interrupted_for_good",
    "interrupted_in_a_step",
    "interrupted_read",
    "interrupted_write",
    "rejected",
    "text_answered",
]

OPTIONS = [
    {"id": "rome", "label": "Rome", "description": "By train", "recommended": True},
    {"id": "oslo", "label": "Oslo"},
]
ENTRY = {"prompt": "Which city?", "options": OPTIONS}
DELETE = asking(ToolCall("delete", {"path": "a.txt"}, "call_delete"))


def question(kind: str, **more: Any) -> Any:
    """A reply that asks the user."""
    asked = ask(kind=kind, **more)
    return asking(ToolCall(asked.name, asked.arguments, "call_ask"))


async def answered(first: Any, value: Any, shop: Shop | None = None) -> Sequence[Event]:
    """A run that asks once and goes on."""
    async with stage([first, "Done."], agent=(shop or Shop()).agent()) as on:
        run_id, asked_for = await asked(on)
        await trio.sleep(60)
        await answer(on, run_id, asked_for, value)
        return await on.log(run_id)


async def text_answered() -> Sequence[Event]:
    return await answered(question("text"), "Tuesday")


async def choice_answered() -> Sequence[Event]:
    several = question("choice", **ENTRY, multiple=True, allow_custom=True)
    return await answered(several, {"selected": ["oslo"], "custom": "Kyōto"})


async def choice_skipped() -> Sequence[Event]:
    skippable = question("choice", **ENTRY, allow_skip=True, skip_label="Later")
    return await answered(skippable, {"skipped": True})


async def form_answered() -> Sequence[Event]:
    questions = [
        {"id": "city", "kind": "choice", **ENTRY},
        {"id": "why", "kind": "text", "prompt": "Why?", "required": False},
    ]
    form = question("form", prompt="Your trip", questions=questions)
    return await answered(form, {"answers": {"city": {"selected": ["rome"]}}})


async def approved() -> Sequence[Event]:
    return await answered(DELETE, "approve")


async def rejected() -> Sequence[Event]:
    return await answered(DELETE, False)


async def approved_in_vain() -> Sequence[Event]:
    """The tool is gone when the approval comes."""
    store, now = MemoryStore(), virtual_now(START)
    async with stage([DELETE], agent=Shop().agent(), store=store, now=now) as on:
        run_id, asked_for = await asked(on)
        await on.runtime.stop(0)
        async with stage(["Sorry."], agent=Agent("helper", "Help."), store=store, now=now) as other:
            await answer(other, run_id, asked_for, True)
            return await other.log(run_id)


async def asked_by_a_tool() -> Sequence[Event]:
    """The continuation needs an approval of its own."""
    shop = Shop(then=ToolContinuation("grant", {"what": "hotel"}))
    shop.question = {"kind": "choice", **ENTRY}
    offer = asking(ToolCall("offer", {}, "call_offer"), ToolCall("note", {"n": 1}, "call_note"))
    async with stage([offer, "Done."], agent=shop.agent()) as on:
        run_id, first = await asked(on)
        await answer(on, run_id, first, {"selected": ["rome"]})
        await on.until(run_id, "interaction.requested", 2)
        after = (await on.run(run_id)).event_seq - 1
        await answer(on, run_id, await paused(on, run_id, after), True)
        return await on.log(run_id)


async def cancelled_at_a_question() -> Sequence[Event]:
    async with stage([question("text")], agent=Shop().agent()) as on:
        run_id, _ = await asked(on)
        await on.cancel(run_id)
        return await on.log(run_id)


@asynccontextmanager
async def working() -> AsyncGenerator[tuple[Stage, str]]:
    """A run that waits for the host, which has reported twice."""
    job = asking(ToolCall("job", {"task": "job-7"}, "call_job"))
    async with stage([job, "Done."], agent=Shop().agent()) as on:
        run_id = await parked(on)
        for message, public in (("Half", {"at": 50}), ("Nearly", None)):
            await trio.sleep(30)
            await on.runtime.report_external_progress(
                run_id, "job-7", message, identity=OWNER, public=public
            )
        yield on, run_id


async def host_work_completed() -> Sequence[Event]:
    async with working() as (on, run_id):
        result = ToolResult(data={"n": 3}, message="Three imported", public={"n": 3})
        await on.runtime.resume_deferred(run_id, "job-7", result, identity=OWNER)
        return await on.log(run_id)


async def host_work_failed() -> Sequence[Event]:
    async with working() as (on, run_id):
        result = ToolResult(data={"ok": False})
        await on.runtime.resume_deferred(run_id, "job-7", result, identity=OWNER)
        return await on.log(run_id)


async def host_work_asks() -> Sequence[Event]:
    """The result of the work asks the user something."""
    shop = Shop(question={"kind": "choice", **ENTRY})
    async with working() as (on, run_id):
        result = ToolResult(data={"n": 2}, message="Two fit", interaction=shop.request())
        await on.runtime.resume_deferred(run_id, "job-7", result, identity=OWNER)
        await on.until(run_id, "interaction.requested")
        after = (await on.run(run_id)).event_seq - 1
        await answer(on, run_id, await paused(on, run_id, after), {"selected": ["rome"]})
        return await on.log(run_id)


async def cancelled_at_host_work() -> Sequence[Event]:
    async with working() as (on, run_id):
        await on.cancel(run_id)
        return await on.log(run_id)


# --- lost workers ---------------------------------------------------------------------------------


async def interrupted(first: Any, *second: Any, agent: Agent, seen: str) -> Sequence[Event]:
    """A worker stops once it wrote an event of this type, and another takes over."""
    store, now = MemoryStore(), virtual_now(START)
    async with stage([first], agent=agent, store=store, now=now) as on:
        run_id = await on.start()
        await on.until(run_id, seen)
        await on.runtime.stop(0)
        async with stage(second, agent=agent, store=store, now=now) as other:
            return await other.log(run_id)


def halting(effect: Any) -> Agent:
    """An agent with a tool that does not come back the first time."""
    tries: list[None] = []

    @tool(effect=effect, approval="never")
    async def act(ctx: ToolContext) -> str:
        """Act."""
        tries.append(None)
        await ctx.report_progress("Half way")
        if len(tries) == 1:
            await trio.sleep_forever()
        return "done"

    return Agent("helper", "Help.", tools=[act])


async def interrupted_in_a_step() -> Sequence[Event]:
    half = [TextDelta("Half a "), *never()]
    agent = Agent("helper", "Help.")
    return await interrupted(half, "A whole text.", agent=agent, seen="message.delta")


async def interrupted_read() -> Sequence[Event]:
    act = asking(ToolCall("act", {}, "call_act"))
    return await interrupted(act, "Done.", agent=halting("read"), seen="activity.updated")


async def interrupted_write() -> Sequence[Event]:
    act = asking(ToolCall("act", {}, "call_act"))
    return await interrupted(act, "I do not know.", agent=halting("write"), seen="activity.updated")


async def interrupted_for_good() -> Sequence[Event]:
    store, now = MemoryStore(), virtual_now(START)
    async with stage([never()], store=store, now=now, max_recoveries=1) as on:
        run_id = await on.start()
        await on.until(run_id, "model.started")
        await on.runtime.stop(0)
        async with stage([never()], store=store, now=now, max_recoveries=1) as second:
            await second.until(run_id, "model.retrying")
            await second.runtime.stop(0)
            async with stage([], store=store, now=now, max_recoveries=1) as third:
                return await third.log(run_id)
