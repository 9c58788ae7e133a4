"""Turns in which everything happens at once."""

from __future__ import annotations

from typing import Any

from trio.testing import MockClock

from rungent import ToolCall, ToolContext, ToolResult, tool
from rungent.store import Store
from tests.helpers import OWNER, asking, of, stage, types
from tests.pauses.shop import Shop, answer, ask, asked, envelopes, finish, paused


async def test_in_one_batch_every_call_gets_its_one_answer(
    autojump_clock: MockClock, store: Store
) -> None:
    """Pause, failure, rejection, unknown, duplicate, deferral, progress, parallel reads."""
    shop = Shop()

    @tool(effect="write", approval="never")
    async def breaks(ctx: ToolContext) -> None:
        """Break."""
        raise ZeroDivisionError

    batch = [
        ToolCall("note", {"n": 1}),
        ToolCall("peek", {"n": 1}),
        ToolCall("peek", {"n": 2}),
        ask(),
        ToolCall("note", {"n": "1"}),
        ToolCall("nothing_like_that"),
        ToolCall("delete", {"path": "a"}),
        ToolCall("breaks"),
        ToolCall("report_progress", {"message": "Nearly."}),
        ToolCall("offer"),
        ToolCall("job"),
        ToolCall("delete", {"path": 5}),
        ToolCall("delete", {"path": "b"}),
        ToolCall("accept"),
        ToolCall("peek", {"n": 3}),
    ]
    tools = [*shop.tools(), breaks]
    async with stage([asking(*batch), "Done."], tools=tools, store=store) as on:
        run_id, question = await asked(on)
        values: list[Any] = ["Monday", False, "red"]
        for value in values[:2]:
            seq = (await on.run(run_id)).event_seq
            await answer(on, run_id, question, value)
            question = await paused(on, run_id, after=seq)
        await answer(on, run_id, question, values[2])
        await on.until(run_id, "run.waiting_external")
        seq = (await on.run(run_id)).event_seq
        await on.runtime.resume_deferred(run_id, "t1", ToolResult(data=1), identity=OWNER)
        await answer(on, run_id, await paused(on, run_id, after=seq), True)
        events = await finish(on, run_id)
        assert types(events).count("run.waiting_input") == 4
        asked_ids = [call.id for m in await on.messages() for call in m.tool_calls]
        answered = [m.tool_call_id for m in await on.messages() if m.role == "tool"]
        assert answered == asked_ids
        assert len(set(answered)) == len(batch) + 1
        told = await envelopes(on)
        assert [one.get("code") for one in told] == [
            None,
            None,
            None,
            None,
            None,
            "unknown_tool",
            "rejected",
            "tool_error",
            None,
            None,
            None,
            "invalid_arguments",
            None,
            "interaction_required",
            None,
            None,
        ]
        assert told[4]["deduplicated"] is True
        assert shop.names == [
            "note",
            "peek",
            "peek",
            "offer",
            "accept",
            "job",
            "delete",
            "peek",
        ]
        assert len(on.model.requests) == 2
        assert len(of(events, "tool.started")) == len(shop.deeds) + 1
