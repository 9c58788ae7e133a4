"""A tool that can find out what an interrupted call did is asked before anything else."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from rungent import Agent, Event, ToolCall, ToolContext, ToolResult, tool
from rungent.interactions import InteractionRequest, ToolContinuation
from rungent.llm.port import ModelCompleted
from rungent.store.memory import MemoryStore
from tests.helpers import OWNER, Stage, asking, of, stage, types

Answer = Callable[[ToolContext, int], Awaitable[Any]]


@dataclass
class Post:
    """An agent whose `post` never returns in the first execution."""

    answer: Answer
    approval: str = "never"
    timeout_seconds: float = 60
    sent: list[str | None] = field(default_factory=list[str | None])
    asked: list[tuple[str | None, str | None, int]] = field(
        default_factory=list[tuple[str | None, str | None, int]]
    )

    def agent(self) -> Agent:
        async def what_became(ctx: ToolContext, n: int) -> Any:
            self.asked.append((ctx.call_id, ctx.idempotency_key, n))
            return await self.answer(ctx, n)

        @tool(
            effect="external",
            approval=cast("Any", self.approval),
            confirmation="Post {n}?" if self.approval == "always" else None,
            reconcile=what_became,
            timeout_seconds=self.timeout_seconds,
        )
        async def post(ctx: ToolContext, n: int = 7) -> str:
            """Post something."""
            self.sent.append(ctx.idempotency_key)
            if len(self.sent) == 1:
                await ctx.report_progress("Half.")
                await trio.sleep_forever()
            return "posted"

        @tool(effect="write", approval="never", requires_interaction_response=True)
        async def accept(ctx: ToolContext) -> str:
            """Accept."""
            return "accepted"

        return Agent("helper", "Help.", tools=[post, accept])


@asynccontextmanager
async def lost(post: Post, *replies: str | ModelCompleted) -> AsyncIterator[tuple[Stage, str]]:
    """A second worker, after the first one was lost in the middle of the call."""
    store, agent = MemoryStore(), post.agent()
    async with stage([asking(ToolCall("post", {}, "id1"))], agent=agent, store=store) as on:
        run_id = await on.start()
        if post.approval == "always":
            asked = (await on.until(run_id, "interaction.requested"))[-1].data
            await on.runtime.submit_response(run_id, asked["id"], True, identity=OWNER)
        await on.until(run_id, "activity.updated")
        await on.runtime.stop(0)
        async with stage(replies, agent=agent, store=store) as other:
            yield other, run_id


async def outcome(post: Post) -> tuple[list[Event], dict[str, Any], str]:
    """The log of the recovered run, what the model was told, and the state of the ledger row."""
    async with lost(post, "Done.") as (other, run_id):
        events = await other.log(run_id)
        told = json.loads(str(other.model.requests[0].messages[-1]["content"]))
        claims = await other.store.list_claims(run_id)
    assert len(claims) == 1
    assert set(post.asked) == {("id1", f"{run_id}:id1", 7)}
    assert set(post.sent) == {f"{run_id}:id1"}
    assert claims[0].attempts == len(post.sent)
    return events, told, claims[0].state


async def found(ctx: ToolContext, n: int) -> ToolResult:
    return ToolResult(data={"posted": n}, message="Was posted.")


async def nothing_done(ctx: ToolContext, n: int) -> None:
    return None


@pytest.mark.parametrize("approval", ["never", "always"])
async def test_what_was_found_settles_the_call(autojump_clock: MockClock, approval: str) -> None:
    post = Post(found, approval)
    events, told, state = await outcome(post)
    assert told == {"tool_status": "success", "data": {"posted": 7}, "message": "Was posted."}
    assert (len(post.sent), len(post.asked), state) == (1, 1, "succeeded")
    assert types(events).count("tool.started") == 1
    assert of(events, "tool.completed")[0]["message"] == "Was posted."
    assert [row["status"] for row in of(events, "activity.updated")] == ["running", "completed"]


async def test_any_other_value_is_taken_as_data(autojump_clock: MockClock) -> None:
    async def plain(ctx: ToolContext, n: int) -> Any:
        return ["posted", n]

    _, told, state = await outcome(Post(plain))
    assert (told["data"], state) == (["posted", 7], "succeeded")


async def test_a_failing_result_settles_the_call_as_failed(autojump_clock: MockClock) -> None:
    async def refused(ctx: ToolContext, n: int) -> ToolResult:
        return ToolResult(data={"ok": False}, message="It was refused.")

    post = Post(refused)
    events, told, state = await outcome(post)
    assert (told["code"], state, len(post.sent)) == ("tool_rejected", "failed", 1)
    assert [row["status"] for row in of(events, "activity.updated")] == ["running", "failed"]


@pytest.mark.parametrize("approval", ["never", "always"])
async def test_without_effect_the_call_is_executed_again(
    autojump_clock: MockClock, approval: str
) -> None:
    post = Post(nothing_done, approval)
    events, told, state = await outcome(post)
    assert (told["data"], state, len(post.sent)) == ("posted", "succeeded", 2)
    assert types(events).count("tool.started") == 2
    assert types(events).count("interaction.requested") == (approval == "always")
    assert [row["status"] for row in of(events, "activity.updated")] == ["running", "completed"]


async def test_an_exception_leaves_the_call_in_doubt(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def breaks(ctx: ToolContext, n: int) -> None:
        raise ZeroDivisionError("private")

    post = Post(breaks)
    with caplog.at_level(logging.ERROR):
        events, told, state = await outcome(post)
    assert (told["code"], state, len(post.sent)) == ("outcome_unknown", "in_doubt", 1)
    assert "private" not in json.dumps([told, *(event.data for event in events)])
    assert [record.exc_info is not None for record in caplog.records] == [True]
    assert [row["status"] for row in of(events, "activity.updated")] == ["running", "failed"]


async def test_a_value_without_json_form_leaves_the_call_in_doubt(
    autojump_clock: MockClock,
) -> None:
    class Broken:
        def __str__(self) -> str:
            raise ValueError("no text")

    async def broken(ctx: ToolContext, n: int) -> Any:
        return Broken()

    assert (await outcome(Post(broken)))[2] == "in_doubt"


async def test_looking_takes_no_longer_than_the_tool_may(autojump_clock: MockClock) -> None:
    async def slow(ctx: ToolContext, n: int) -> None:
        await trio.sleep(10)

    post = Post(slow, timeout_seconds=9.5)
    events, told, state = await outcome(post)
    assert (told["code"], state, len(post.sent)) == ("outcome_unknown", "in_doubt", 1)
    waited = events[-1].created_at - of_type(events, "tool.started").created_at
    assert 9.5 <= waited.total_seconds() < 10


async def test_a_timeout_raised_by_the_host_is_an_exception_like_others(
    autojump_clock: MockClock,
) -> None:
    async def late(ctx: ToolContext, n: int) -> None:
        raise trio.TooSlowError

    assert (await outcome(Post(late)))[2] == "in_doubt"


async def test_progress_cannot_be_reported_while_nobody_executes(
    autojump_clock: MockClock,
) -> None:
    async def reports(ctx: ToolContext, n: int) -> str:
        with pytest.raises(RuntimeError, match="inside a call"):
            await ctx.report_progress("Looking.")
        return "seen"

    assert (await outcome(Post(reports)))[2] == "succeeded"


async def test_what_was_found_may_ask_the_user(autojump_clock: MockClock) -> None:
    async def asks(ctx: ToolContext, n: int) -> ToolResult:
        question = InteractionRequest(
            "text", "Which one?", continuation=ToolContinuation("accept", {})
        )
        return ToolResult(data=1, interaction=question)

    async with lost(Post(asks), "Done.") as (other, run_id):
        asked = (await other.until(run_id, "interaction.requested"))[-1].data
        await other.runtime.submit_response(run_id, asked["id"], "that", identity=OWNER)
        events = await other.log(run_id)
    assert [e["name"] for e in of(events, "tool.completed")] == ["post", "accept"]


async def test_a_worker_that_stops_while_it_looks_leaves_the_question_to_the_next(
    autojump_clock: MockClock,
) -> None:
    looking = trio.Event()

    async def slow(ctx: ToolContext, n: int) -> str:
        if looking.is_set():
            return "found"
        looking.set()
        await trio.sleep_forever()
        raise AssertionError("never returns")

    post = Post(slow)
    async with lost(post) as (other, run_id):
        await looking.wait()
        await other.runtime.stop(0)
        async with stage(["Done."], agent=post.agent(), store=other.store) as third:
            events = await third.log(run_id)
    assert (len(post.sent), len(post.asked)) == (1, 2)
    assert types(events).count("tool.completed") == 1


async def test_a_run_cancelled_while_somebody_looks_ends_at_once(
    autojump_clock: MockClock,
) -> None:
    looking = trio.Event()

    async def slow(ctx: ToolContext, n: int) -> None:
        looking.set()
        await trio.sleep_forever()

    async with lost(Post(slow)) as (other, run_id):
        await looking.wait()
        await other.cancel(run_id)
        assert types(await other.log(run_id))[-1] == "run.cancelled"
        assert [claim.state for claim in await other.store.list_claims(run_id)] == ["in_doubt"]


async def test_without_a_loss_nobody_is_asked(autojump_clock: MockClock) -> None:
    post = Post(found)
    post.sent.append("earlier")
    async with stage([asking(ToolCall("post", {}, "id1")), "Done."], agent=post.agent()) as on:
        await on.play()
    assert post.asked == []


def of_type(events: list[Event], kind: str) -> Event:
    return next(event for event in events if event.type == kind)
