"""Pauses outlive the process: a second runtime over the same file goes on with the first's runs."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from rungent import Agent, Runtime, Tool, ToolCall, ToolContext, ToolContinuation, ToolResult, tool
from rungent.testing.clock import HoldAutojump, virtual_now
from rungent.testing.scripted import ScriptedModel
from tests.helpers import OWNER, START, Stage, asking, calls, of, opened, types
from tests.pauses.shop import (
    Shop,
    answer,
    ask,
    asked,
    deleting,
    envelopes,
    finish,
    parked,
    paused,
)
from tests.persistence.stores import FILE_KINDS, sql_store
from tests.runtime.twins import serve_in


@dataclass
class House:
    """A database file in which one process after the other lives."""

    kind: str
    folder: Path
    clock: MockClock
    first: Stage | None = None

    @asynccontextmanager
    async def process(
        self, script: list[Any], tools: Sequence[Tool[..., Any]]
    ) -> AsyncGenerator[tuple[Stage, trio.CancelScope]]:
        """The next process; cancelling the scope is its sudden end."""
        store = sql_store(self.kind, self.folder, hold=HoldAutojump(self.clock))
        await store.create_schema()
        model = ScriptedModel(script)
        agent = Agent("helper", "Help.", tools=tools)
        runtime = Runtime(agents=[agent], model=model, store=store, now=virtual_now(START))
        async with trio.open_nursery() as nursery:
            scope = await serve_in(nursery, runtime)
            if self.first is None:
                on = self.first = await opened(runtime, store, model)
            else:
                on = Stage(runtime, store, model, self.first.session)
            yield on, scope
            if not scope.cancel_called:
                await runtime.stop()


@pytest.fixture(params=FILE_KINDS)
def house(request: pytest.FixtureRequest, tmp_path: Path, autojump_clock: MockClock) -> House:
    return House(request.param, tmp_path, autojump_clock)


async def test_a_question_is_answered_in_another_process(
    autojump_clock: MockClock, house: House
) -> None:
    shop = Shop()
    async with house.process([asking(ask(), ToolCall("note"))], shop.tools()) as (on, _):
        run_id, question = await asked(on)
    async with house.process([calls("accept"), "Done."], shop.tools()) as (on, _):
        await answer(on, run_id, question, "Monday")
        events = await finish(on, run_id)
        assert types(events).count("interaction.requested") == 1
        assert [(d.name, d.answer) for d in shop.deeds] == [
            ("note", "Monday"),
            ("accept", "Monday"),
        ]


@pytest.mark.parametrize("end", ["before the answer", "stop", "kill"])
async def test_exactly_the_approved_call_runs_after_a_restart(
    autojump_clock: MockClock, house: House, end: str
) -> None:
    """Also when the process ends between the commit of the answer and the execution."""
    shop = Shop()
    path = 'ä "\\ \u2028\U0001f600\n'
    async with house.process([deleting(path, deep=1)], shop.tools()) as (on, scope):
        run_id, question = await asked(on)
        frozen = (await on.store.get_interaction(question["id"])).frozen_call
        assert frozen is not None
        if end != "before the answer":
            await answer(on, run_id, question, True)
        if end == "stop":
            await on.runtime.stop(0)
        else:
            scope.cancel()
    assert shop.deeds == []
    async with house.process(["Gone."], shop.tools()) as (on, _):
        await answer(on, run_id, question, True)
        events = await finish(on, run_id)
        (deed,) = shop.deeds
        assert (deed.call_id, deed.arguments) == (
            question["tool_call_id"],
            json.dumps(frozen["arguments"]),
        )
        (claim,) = await on.store.list_claims(run_id)
        assert json.dumps(claim.arguments) == json.dumps(frozen["arguments"])
        assert len(of(events, "interaction.resolved")) == len(of(events, "tool.started")) == 1


async def test_a_process_that_ends_inside_an_approved_call_leaves_a_doubt_and_no_second_try(
    autojump_clock: MockClock, house: House
) -> None:
    begun: list[str] = []

    @tool(
        effect="write", approval="always", confirmation="Act?", requires_interaction_response=True
    )
    async def act(ctx: ToolContext) -> None:
        """Act."""
        begun.append("act")
        await trio.sleep(30)

    script = [asking(ask()), calls("act")]
    async with house.process(script, [act]) as (on, scope):
        run_id, question = await asked(on)
        seq = (await on.run(run_id)).event_seq
        await answer(on, run_id, question, "x")
        await answer(on, run_id, await paused(on, run_id, after=seq), True)
        await on.until(run_id, "tool.started")
        scope.cancel()
    async with house.process(["I do not know."], [act]) as (on, _):
        events = await finish(on, run_id)
        assert begun == ["act"]
        assert of(events, "tool.failed")[0]["code"] == "outcome_unknown"
        assert [c.state for c in await on.store.list_claims(run_id)] == ["in_doubt"]
        assert (await envelopes(on))[-1]["code"] == "outcome_unknown"


async def test_an_answer_is_used_up_by_a_call_whose_outcome_is_unknown(
    autojump_clock: MockClock, house: House
) -> None:
    begun: list[str] = []

    @tool(effect="write", approval="never", requires_interaction_response=True)
    async def act(ctx: ToolContext, n: int) -> None:
        """Act."""
        begun.append("act")
        await trio.sleep(30)

    async with house.process([asking(ask()), calls("act", n=1)], [act]) as (on, scope):
        run_id, question = await asked(on)
        await answer(on, run_id, question, "x")
        await on.until(run_id, "tool.started")
        scope.cancel()
    async with house.process([calls("act", n=2), "Well."], [act]) as (on, _):
        await finish(on, run_id)
        assert begun == ["act"]
        codes = [one.get("code") for one in await envelopes(on)]
        assert codes == [None, "outcome_unknown", "interaction_required"]


def deleting_otherwise(**changes: Any) -> list[Tool[..., Any]]:
    @tool(effect="destructive", approval="always", confirmation="Delete?", name="delete")
    async def with_default(
        ctx: ToolContext, path: str, deep: bool = False, force: bool = True
    ) -> None:
        """Delete with force."""
        raise AssertionError("not what was approved")

    @tool(effect="destructive", approval="always", confirmation="Delete?", name="delete")
    async def with_more(ctx: ToolContext, path: str, why: str) -> None:
        """Delete with a reason."""
        raise AssertionError("not what was approved")

    @tool(effect="destructive", approval="always", confirmation="Delete?", name="delete")
    async def with_type(ctx: ToolContext, path: int, deep: bool = False) -> None:
        """Delete by number."""
        raise AssertionError("not what was approved")

    @tool(effect="destructive", approval="always", confirmation="Delete?", name="remove")
    async def renamed(ctx: ToolContext, path: str, deep: bool = False) -> None:
        """Delete under another name."""
        raise AssertionError("not what was approved")

    kinds: dict[str, Tool[..., Any]] = {
        "default": with_default,
        "more": with_more,
        "type": with_type,
        "renamed": renamed,
    }
    return [kinds[changes["kind"]]] if changes["kind"] in kinds else []


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("default", "invalid_arguments"),
        ("more", "invalid_arguments"),
        ("type", "invalid_arguments"),
        ("renamed", "unknown_tool"),
        ("removed", "unknown_tool"),
    ],
)
async def test_a_call_whose_tool_changed_after_it_was_shown_is_refused_clearly(
    autojump_clock: MockClock, house: House, kind: str, code: str
) -> None:
    shop = Shop()
    script = [asking(ToolCall("delete", {"path": "a"}), ToolCall("note"))]
    async with house.process(script, shop.tools()) as (on, _):
        run_id, question = await asked(on)
    tools = [shop.note(), *deleting_otherwise(kind=kind)]
    async with house.process(["So be it."], tools) as (on, _):
        await answer(on, run_id, question, True)
        events = await finish(on, run_id)
        resolved = types(events).index("interaction.resolved")
        failed = events[resolved + 1]
        assert (failed.type, failed.data["code"]) == ("tool.failed", code)
        assert failed.data["call_id"] == question["tool_call_id"]
        assert shop.names == ["note"]
        assert [one.get("code") for one in await envelopes(on)] == [code, None]


async def test_a_question_whose_continuation_is_gone_is_answered_in_vain(
    autojump_clock: MockClock, house: House
) -> None:
    shop = Shop()
    async with house.process([calls("offer", "note")], shop.tools()) as (on, _):
        run_id, question = await asked(on)
    tools = [shop.note(), shop.grant()]
    async with house.process([calls("grant"), "Well."], tools) as (on, _):
        await answer(on, run_id, question, "red")
        await finish(on, run_id)
        assert shop.names == ["offer", "note"]
        codes = [one.get("code") for one in await envelopes(on)]
        # What was answered is not at the model's disposal.
        assert codes == [None, None, "unknown_tool", "interaction_required"]


async def test_a_continuation_runs_in_another_process(
    autojump_clock: MockClock, house: House
) -> None:
    shop = Shop(then=ToolContinuation("accept", {"what": "\U0001f3e8"}))
    async with house.process([calls("offer", "note")], shop.tools()) as (on, scope):
        run_id, question = await asked(on)
        await answer(on, run_id, question, "red")
        scope.cancel()
    async with house.process(["Done."], shop.tools()) as (on, _):
        await finish(on, run_id)
        assert [(d.name, d.answer) for d in shop.deeds] == [
            ("offer", None),
            ("accept", "red"),
            ("note", None),
        ]
        assert json.loads(shop.deeds[1].arguments) == {"what": "\U0001f3e8"}
        assert shop.deeds[1].call_id == question["tool_call_id"]


@pytest.mark.parametrize("end", ["before the completion", "after the completion"])
async def test_deferred_work_is_completed_in_another_process(
    autojump_clock: MockClock, house: House, end: str
) -> None:
    shop = Shop()
    done = ToolResult(data={"rows": 3})
    async with house.process([calls("job", "note")], shop.tools()) as (on, scope):
        run_id = await parked(on)
        if end == "after the completion":
            await on.runtime.resume_deferred(run_id, "t1", done, identity=OWNER)
            scope.cancel()
    async with house.process(["Done."], []) as (on, _):
        if end == "before the completion":
            await on.runtime.resume_deferred(run_id, "t1", done, identity=OWNER)
        events = await finish(on, run_id)
        assert len(of(events, "external_task.completed")) == 1
        told = await envelopes(on)
        assert told[0]["data"] == {"rows": 3}
        assert told[1]["code"] == "unknown_tool"
        assert of(events, "tool.completed")[0]["title"] == "Job"
