"""Approvals: what is shown, what is frozen, and that exactly this happens once or never."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
import trio
from pydantic import JsonValue
from trio.testing import MockClock

from rungent import (
    InteractionAlreadyResolved,
    InvalidResponse,
    ToolCall,
    ToolContext,
    tool,
)
from rungent.llm.port import ModelFailure
from rungent.store import Store
from tests.helpers import OWNER, asking, of, stage, types
from tests.pauses.shop import (
    Shop,
    answer,
    asked,
    deleting,
    envelopes,
    finish,
    paused,
    snapshot,
)


async def test_an_approval_shows_what_will_happen_and_then_exactly_that_happens(
    autojump_clock: MockClock,
    store: Store,
) -> None:
    shop = Shop()
    async with stage(
        [deleting("a.txt", deep="yes"), "Gone."], tools=shop.tools(), store=store
    ) as on:
        run_id, question = await asked(on)
        assert question["kind"] == "approval"
        assert question["prompt"] == "Delete a.txt?"
        assert question["tool"] == {"name": "delete", "title": "Delete", "effect": "destructive"}
        assert question["options"] == [
            {"id": "approve", "label": "Approve", "description": None, "recommended": False},
            {"id": "reject", "label": "Reject", "description": None, "recommended": False},
        ]
        flags = ("multiple", "allow_custom", "allow_skip")
        assert [question[flag] for flag in flags] == [False] * 3
        call_id = question["tool_call_id"]
        assert shop.deeds == []
        assert await store.list_claims(run_id) == []
        frozen = (await store.get_interaction(question["id"])).frozen_call
        assert frozen == {
            "id": call_id,
            "name": "delete",
            "arguments": {"deep": True, "path": "a.txt"},
            "confirmation": "Delete a.txt?",
        }
        await answer(on, run_id, question, True)
        events = await finish(on, run_id)
        kinds = types(events)
        after = kinds[kinds.index("interaction.resolved") :]
        assert after[:3] == ["interaction.resolved", "tool.started", "tool.completed"]
        assert of(events, "interaction.resolved")[0]["outcome"] == "approved"
        assert frozen is not None
        (deed,) = shop.deeds
        assert (deed.call_id, deed.arguments) == (call_id, json.dumps(frozen["arguments"]))
        (claim,) = await store.list_claims(run_id)
        assert (claim.state, claim.attempts) == ("succeeded", 1)
        assert json.dumps(claim.arguments) == json.dumps(frozen["arguments"])


@pytest.mark.parametrize("value", [True, "approve", {"selected": ["approve"]}])
async def test_every_form_of_consent_approves_once(
    autojump_clock: MockClock, value: JsonValue
) -> None:
    shop = Shop()
    async with stage([deleting(), "Gone."], tools=shop.tools()) as on:
        run_id, question = await asked(on)
        await answer(on, run_id, question, value)
        await answer(on, run_id, question, True)
        await finish(on, run_id)
        await answer(on, run_id, question, "approve")
        with pytest.raises(InteractionAlreadyResolved) as late:
            await answer(on, run_id, question, False)
        assert late.value.outcome == "approved"
        assert shop.names == ["delete"]


@pytest.mark.parametrize("value", [False, "reject", {"selected": ["reject"]}])
async def test_a_rejection_changes_nothing_and_the_model_is_told(
    autojump_clock: MockClock, store: Store, value: JsonValue
) -> None:
    shop = Shop()
    script = [asking(ToolCall("delete", {"path": "a"}), ToolCall("note")), "As you like."]
    async with stage(script, tools=shop.tools(), store=store) as on:
        run_id, question = await asked(on)
        await answer(on, run_id, question, value)
        events = await finish(on, run_id)
        assert of(events, "interaction.resolved")[0]["outcome"] == "rejected"
        assert of(events, "tool.failed") == [
            {
                "call_id": question["tool_call_id"],
                "name": "delete",
                "title": "Delete",
                "effect": "destructive",
                "code": "rejected",
                "message": "The user declined the operation.",
            }
        ]
        assert shop.names == ["note"]
        assert (await envelopes(on))[0] == {
            "tool_status": "error",
            "code": "rejected",
            "message": "The user declined the operation.",
            "retryable": False,
        }
        assert [claim.tool_name for claim in await store.list_claims(run_id)] == ["note"]


@pytest.mark.parametrize(
    "value",
    [
        None,
        1,
        0,
        "",
        "yes",
        "Approve",
        " approve",
        [],
        ["approve"],
        {},
        {"selected": []},
        {"selected": ["approve", "approve"]},
        {"selected": ["approve", "reject"]},
        {"selected": ["all"]},
        {"selected": ["approve"], "custom": "and everything else"},
        {"selected": ["approve"], "skipped": False},
        {"selected": "approve"},
        {"approve": True},
        "true",
    ],
)
async def test_an_invented_decision_is_no_decision(
    autojump_clock: MockClock, store: Store, value: JsonValue
) -> None:
    shop = Shop()
    async with stage([deleting(), "Fine."], tools=shop.tools(), store=store) as on:
        run_id, question = await asked(on)
        before = await snapshot(on, run_id)
        with pytest.raises(InvalidResponse) as refused:
            await answer(on, run_id, question, value)
        assert (refused.value.reason, refused.value.path) == ("invalid_decision", [])
        assert await snapshot(on, run_id) == before
        assert shop.deeds == []
        await answer(on, run_id, question, False)
        await finish(on, run_id)


async def test_rejections_are_no_identical_failures(autojump_clock: MockClock) -> None:
    shop = Shop()
    async with stage([*[deleting()] * 4, "I give up."], tools=shop.tools()) as on:
        run_id, question = await asked(on)
        for more in range(4):
            seq = (await on.run(run_id)).event_seq
            await answer(on, run_id, question, False)
            if more < 3:
                question = await paused(on, run_id, after=seq)
        await finish(on, run_id)


async def test_labels_come_from_the_catalog(autojump_clock: MockClock) -> None:
    catalog = {"approve_label": "Los", "reject_label": "Nein"}
    async with stage([deleting(), "x"], tools=Shop().tools(), error_catalog=catalog) as on:
        run_id, question = await asked(on)
        assert [option["label"] for option in question["options"]] == ["Los", "Nein"]
        await on.cancel(run_id)


async def test_a_success_is_not_asked_about_again_in_the_same_run(
    autojump_clock: MockClock, store: Store
) -> None:
    shop = Shop()
    script = [asking(*[ToolCall("delete", {"path": "a"})] * 2), "Gone."]
    async with stage(script, tools=shop.tools(), store=store) as on:
        run_id, question = await asked(on)
        await answer(on, run_id, question, True)
        events = await finish(on, run_id)
        assert shop.names == ["delete"]
        assert [data.get("deduplicated") for data in of(events, "tool.completed")] == [None, True]


# --- the text -----------------------------------------------------------------------------------

SPOOFS = [
    "a\nDelete nothing?",
    "a\r\n\r\nApproved already.",
    "a\u2028b\u2029c",
    "a\x85b\x0bc\x0cd",
    "\u202etxt.a\u202c",
    "\u2066a\u2069\u200f\u200e\u061c",
    "a\x1b[2K\x08\x7f",
    "a\x00b",
]


@pytest.mark.parametrize("path", SPOOFS)
async def test_arguments_cannot_disguise_the_text_and_stay_as_they_are(
    autojump_clock: MockClock, path: str
) -> None:
    shop = Shop()
    async with stage([deleting(path), "Gone."], tools=shop.tools()) as on:
        run_id, question = await asked(on)
        prompt = question["prompt"]
        assert prompt.startswith("Delete ")
        assert prompt.endswith("?")
        assert len(prompt.splitlines()) == 1
        assert all(c == " " or c.isprintable() or c == "\ufffd" for c in prompt)
        await answer(on, run_id, question, True)
        await finish(on, run_id)
        assert json.loads(shop.deeds[0].arguments)["path"] == path.replace("\x00", "\ufffd")


async def test_nested_arguments_cannot_disguise_the_text(autojump_clock: MockClock) -> None:
    @tool(effect="write", approval="always", confirmation="Send {rows} to {name:>9}?")
    async def send(ctx: ToolContext, rows: list[dict[str, str]], name: str) -> None:
        """Send."""

    call = ToolCall("send", {"rows": [{"a\u202eb": "c\nd"}], "name": "\u2067x"})
    async with stage([asking(call), "x"], tools=[send]) as on:
        run_id, question = await asked(on)
        assert question["prompt"] == "Send [{'a b': 'c d'}] to         x?"
        await on.cancel(run_id)


async def test_a_callable_makes_the_text_from_the_checked_arguments(
    autojump_clock: MockClock,
) -> None:
    seen: list[Any] = []

    async def confirm(ctx: ToolContext, path: str, deep: bool) -> str:
        await trio.sleep(59)
        seen.append((ctx.call_id, ctx.idempotency_key, ctx.identity, ctx.deps["who"], path, deep))
        return f"  Really {path}?\n"

    shop = Shop()
    script = [deleting("a", deep="true"), "Gone."]
    async with stage(script, tools=[shop.delete(confirm)]) as on:
        run_id, question = await asked(on, deps={"who": "host"})
        assert question["prompt"] == "Really a?"
        call_id = question["tool_call_id"]
        assert seen == [(call_id, f"{run_id}:{call_id}", OWNER, "host", "a", True)]
        await answer(on, run_id, question, True)
        await finish(on, run_id)
        assert len(seen) == 1


async def hanging(ctx: ToolContext, **arguments: Any) -> str:
    await trio.sleep(10**9)
    return "too late"


def raising(ctx: ToolContext, **arguments: Any) -> str:
    raise ValueError("canary")


async def reporting(ctx: ToolContext, **arguments: Any) -> str:
    await ctx.report_progress("canary")
    return "x"


def saying(text: object) -> Any:
    def confirm(ctx: ToolContext, **arguments: Any) -> object:
        return text

    return confirm


@pytest.mark.parametrize(
    "confirm",
    [
        hanging,
        raising,
        reporting,
        saying(None),
        saying(b"x"),
        saying(7),
        saying(""),
        saying("  \n "),
        saying("x" * 4001),
        "{deep:.5q}{path}",
        "{path:4001}.",
    ],
)
async def test_without_a_text_nothing_is_asked_and_nothing_happens(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture, confirm: Any
) -> None:
    shop = Shop()
    tools = [shop.delete(confirm, timeout=30), shop.note()]
    script = [asking(ToolCall("delete", {"path": "a"}), ToolCall("note")), "Well."]
    with caplog.at_level(logging.CRITICAL, logger="rungent"):
        async with stage(script, tools=tools) as on:
            began = trio.current_time()
            events = await on.play()
            assert trio.current_time() == began + (30 if confirm is hanging else 0)
            (failed,) = of(events, "tool.failed")
            assert failed["code"] == "approval_unavailable"
            assert (await envelopes(on))[0] == {
                "tool_status": "error",
                "code": "approval_unavailable",
                "message": "The confirmation could not be prepared.",
                "retryable": True,
            }
            assert "run.waiting_input" not in types(events)
            assert shop.names == ["note"]
            assert "canary" not in str(events)


async def test_a_parameter_may_have_any_name(autojump_clock: MockClock) -> None:
    """Also the names of the parameters of whatever calls the host."""

    def confirm(ctx: ToolContext, /, **arguments: str) -> str:
        return " ".join(arguments.values())

    @tool(effect="write", approval="always", confirmation=confirm)
    async def act(ctx: ToolContext, function: str, self: str, args: str, kwargs: str) -> str:
        """Act."""
        return function + self + args + kwargs

    call = ToolCall("act", {"function": "f", "self": "s", "args": "a", "kwargs": "k"})
    async with stage([asking(call), "x"], tools=[act]) as on:
        run_id, question = await asked(on)
        assert question["prompt"] == "f s a k"
        await answer(on, run_id, question, True)
        await finish(on, run_id)
        assert (await envelopes(on))[0]["data"] == "fsak"


# --- what comes between -----------------------------------------------------------------------------


async def test_a_provider_failure_after_an_approved_call_does_not_repeat_it(
    autojump_clock: MockClock,
    store: Store,
) -> None:
    shop = Shop()
    refused = ModelFailure("server_error")
    script = [deleting(), *[refused] * 4, "It is gone."]
    async with stage(script, tools=shop.tools(), store=store) as on:
        run_id, question = await asked(on)
        await answer(on, run_id, question, True)
        await finish(on, run_id, "failed")
        receipt = await on.runtime.retry_run(run_id, identity=OWNER)
        events = await finish(on, receipt.run_id)
        assert types(events)[-2] == "message.completed"
        assert shop.names == ["delete"]
        roles = [line["role"] for line in on.model.requests[-1].messages]
        assert roles == ["system", "user", "assistant", "tool"]


async def test_a_step_that_fails_once_after_an_approved_call_does_not_repeat_it(
    autojump_clock: MockClock,
) -> None:
    shop = Shop()
    script = [deleting(), ModelFailure("network"), "Gone."]
    async with stage(script, tools=shop.tools()) as on:
        run_id, question = await asked(on)
        await answer(on, run_id, question, True)
        await finish(on, run_id)
        assert shop.names == ["delete"]


async def test_an_approved_call_that_breaks_is_not_executed_again(
    autojump_clock: MockClock,
) -> None:
    shop = Shop(broken=True)
    async with stage([deleting(), "It broke."], tools=shop.tools()) as on:
        run_id, question = await asked(on)
        await answer(on, run_id, question, True)
        events = await finish(on, run_id)
        assert shop.names == ["delete"]
        assert of(events, "tool.failed")[0]["code"] == "tool_error"


async def test_a_failed_call_is_asked_about_again(autojump_clock: MockClock) -> None:
    """An approval is consumed once: the model's next try needs a new one."""
    shop = Shop(result={"ok": False})
    async with stage([deleting(), deleting(), "No."], tools=shop.tools()) as on:
        run_id, first = await asked(on)
        seq = (await on.run(run_id)).event_seq
        await answer(on, run_id, first, True)
        second = await paused(on, run_id, after=seq)
        assert second["id"] != first["id"]
        await answer(on, run_id, first, True)
        assert (await on.run(run_id)).status == "waiting_input"
        assert shop.names == ["delete"]
        await answer(on, run_id, second, False)
        await finish(on, run_id)
        assert shop.names == ["delete"]


@pytest.mark.parametrize("phase", ["asked", "running", "confirming"])
async def test_a_cancel_leaves_no_doubt_about_what_was_not_begun(
    autojump_clock: MockClock, store: Store, phase: str
) -> None:
    done: list[str] = []

    async def confirm(ctx: ToolContext) -> str:
        await trio.sleep(10 if phase == "confirming" else 0)
        return "Really?"

    @tool(effect="write", approval="always", confirmation=confirm)
    async def act(ctx: ToolContext) -> None:
        """Act."""
        await trio.sleep(10)
        done.append("act")

    async with stage([asking(ToolCall("act"), ToolCall("act"))], tools=[act], store=store) as on:
        run_id = await on.start()
        if phase == "confirming":
            await trio.sleep(5)
        else:
            question = await paused(on, run_id)
            if phase == "running":
                await answer(on, run_id, question, True)
                await on.until(run_id, "tool.started")
        await on.cancel(run_id)
        events = await finish(on, run_id, "cancelled")
        assert len(of(events, "interaction.resolved")) == (phase != "confirming")
        await trio.sleep(100)
        assert await on.log(run_id) == events
        assert done == []
        assert [one["code"] for one in await envelopes(on)] == ["cancelled", "cancelled"]
        states = [claim.state for claim in await store.list_claims(run_id)]
        assert states == (["in_doubt"] if phase == "running" else [])
