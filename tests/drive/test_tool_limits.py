"""Executions that are refused, reported on, or cancelled."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rungent import ToolCall, ToolContext, tool
from tests.helpers import PATIENCE_SECONDS, asking, calls, of, stage, types


async def test_a_tool_that_needs_approval_is_never_executed_without_it(
    autojump_clock: MockClock,
) -> None:
    @tool(effect="destructive", approval="always", confirmation="Delete?")
    async def delete(ctx: ToolContext) -> None:
        """Delete."""
        raise NotImplementedError

    async with stage([calls("delete"), "Sorry."], tools=[delete]) as on:
        run_id = await on.start()
        await wait_all_tasks_blocked()
        assert "tool.started" not in types(await on.so_far(run_id))


# --- progress ------------------------------------------------------------------------------------


async def test_progress_is_stored_when_the_report_returns(autojump_clock: MockClock) -> None:
    seen: list[str] = []

    @tool(effect="read", approval="never")
    async def look(ctx: ToolContext) -> str:
        """Look."""
        await ctx.report_progress(" Half. ", public={"at": float("nan")})
        stored = await on.store.list_events(ctx.run_id, after=0, limit=100)
        seen.append(stored[-1].type)
        return "seen"

    async with stage([calls("look"), "Done."], tools=[look]) as on:
        events = await on.play()
    assert seen == ["activity.updated"]
    shown = [(d["message"], d["status"], d["public"]) for d in of(events, "activity.updated")]
    assert shown == [("Half.", "running", {"at": None}), ("Half.", "completed", {"at": None})]


@pytest.mark.parametrize("message", ["", " ", "x" * 281, None, 5])
async def test_bad_progress_is_the_tools_own_error(autojump_clock: MockClock, message: Any) -> None:
    refused: list[bool] = []

    @tool(effect="read", approval="never")
    async def look(ctx: ToolContext) -> str:
        """Look."""
        try:
            await ctx.report_progress(message)
        except ValueError:
            refused.append(True)
        return "seen"

    async with stage([calls("look"), "Done."], tools=[look]) as on:
        events = await on.play()
    assert refused == [True]
    assert of(events, "activity.updated") == []


async def test_progress_after_the_call_settled_is_refused(autojump_clock: MockClock) -> None:
    kept: list[ToolContext] = []

    @tool(effect="read", approval="never", timeout_seconds=5)
    async def look(ctx: ToolContext, hang: bool) -> str:
        """Keep the context for later."""
        kept.append(ctx)
        if hang:
            await trio.sleep_forever()
        return "seen"

    asked = asking(*(ToolCall("look", {"hang": hang}) for hang in (False, True)))
    async with stage([asked, [], "Done."], tools=[look]) as on:
        events = await on.play()
        for ctx in kept:
            with pytest.raises(RuntimeError, match="over"):
                await ctx.report_progress("Too late.")
        assert len(await on.so_far(events[0].run_id)) == len(events)


async def test_progress_after_a_cancel_is_refused_and_holds_nobody(
    autojump_clock: MockClock,
) -> None:
    """A tool that hides from its cancellation gets an error, not a wait without end."""
    refused: list[Exception] = []
    go = trio.Event()

    @tool(effect="read", approval="never")
    async def look(ctx: ToolContext) -> str:
        """Hide from cancellation, then report."""
        with trio.CancelScope(shield=True):
            await go.wait()
            try:
                await ctx.report_progress("Still here.")
            except RuntimeError as error:
                refused.append(error)
        return "seen"

    async with stage([calls("look"), "Next."], tools=[look], max_concurrent_runs=1) as on:
        run_id = await on.start()
        await on.until(run_id, "tool.started")
        await on.cancel(run_id)
        go.set()
        with trio.fail_after(PATIENCE_SECONDS):
            events = await on.log(run_id)
            assert types(events)[-1] == "run.cancelled"
            assert "activity.updated" not in types(events)
            assert types(await on.play("next"))[-1] == "run.completed"
        assert len(refused) == 1


async def test_progress_reported_from_elsewhere_after_a_cancel_holds_nobody(
    autojump_clock: MockClock,
) -> None:
    kept: list[ToolContext] = []

    @tool(effect="read", approval="never")
    async def look(ctx: ToolContext) -> str:
        """Let somebody else report, and hide."""
        kept.append(ctx)
        with trio.CancelScope(shield=True):
            await done.wait()
        return "seen"

    done = trio.Event()
    async with stage([calls("look")], tools=[look]) as on:
        run_id = await on.start()
        await on.until(run_id, "tool.started")
        await on.cancel(run_id)
        with trio.fail_after(5), pytest.raises(RuntimeError):
            await kept[0].report_progress("From elsewhere.")
        done.set()


async def test_a_tool_that_ignores_cancellation_writes_nothing_afterwards(
    autojump_clock: MockClock,
) -> None:
    finished: list[str] = []

    @tool(effect="write", approval="never")
    async def act(ctx: ToolContext) -> str:
        """Ignore being cancelled."""
        with trio.CancelScope(shield=True):
            await trio.sleep(30)
        finished.append("act")
        return "done"

    async with stage([calls("act", "act"), "Next."], tools=[act]) as on:
        run_id = await on.start()
        await on.until(run_id, "tool.started")
        run = await on.cancel(run_id)
        assert run.status == "cancelled"
        # The session is free at once, whatever the old tool still does.
        assert types(await on.play("next"))[-1] == "run.completed"
        before = await on.messages()
        await trio.sleep(60)
        assert finished == ["act"]
        assert await on.messages() == before
        assert types(await on.log(run_id))[-1] == "run.cancelled"
        assert [a["code"] for a in await on.answers()] == ["cancelled", "cancelled"]
