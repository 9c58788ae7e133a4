"""Approvals that are posted elsewhere, and approvals and questions that expire."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from rungent import (
    Identity,
    InteractionAlreadyResolved,
    NotAllowed,
    ToolCall,
    ToolContinuation,
)
from rungent.store import Store
from tests.asking.channel import Channel, approval_tool, asks_in, click, serving
from tests.helpers import OWNER, asking, of
from tests.pauses.shop import Shop, answer, ask, asked, finish

DELETE = asking(ToolCall("delete", {"path": "a.txt"}, "call_delete"))
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(("button", "reason"), [("Yes", "approved"), ("No", "rejected")])
async def test_a_button_decides_about_an_announced_approval_and_the_message_learns_of_it(
    autojump_clock: MockClock, store: Store, channel: Channel, button: str, reason: str
) -> None:
    async with serving(store, channel, [DELETE, "Done."], approval_tool()) as on:
        run_id, tokens = await asks_in(on, channel)
        assert channel.last.text == "Delete a.txt?"
        assert (await click(on, tokens[button], "ada")).status == "not_allowed"
        assert (await click(on, tokens[button], "bob")).accepted
        events = await finish(on, run_id)
        assert of(events, "interaction.resolved")[0]["outcome"] == reason
        assert len(of(events, "tool.started")) == (reason == "approved")
        await trio.sleep(1)
        assert channel.last.texts[1:] == [f"a.txt: {reason}"]
        assert (await click(on, tokens["Yes"])).status == "already_answered"
        stored = await on.store.get_interaction(of(events, "interaction.requested")[0]["id"])
        assert stored.answered_by == (Identity("bob"),)


async def test_the_owner_cannot_approve_what_the_team_is_to_approve(
    autojump_clock: MockClock, store: Store, channel: Channel
) -> None:
    async with serving(store, channel, [DELETE, "Done."], approval_tool()) as on:
        run_id, question = await asked(on)
        with pytest.raises(NotAllowed):
            await answer(on, run_id, question, True)
        assert (await click(on, channel.last.buttons["No"])).accepted
        await finish(on, run_id)


@pytest.mark.parametrize("fault", ["broken", "nothing returned"])
async def test_an_approval_that_cannot_be_posted_is_not_asked(
    autojump_clock: MockClock, store: Store, channel: Channel, fault: str
) -> None:
    async def announce(ctx: Any, ask: Any, path: str, deep: bool) -> Any:  # noqa: ASYNC124
        if fault == "broken":
            raise ConnectionError("canary")
        return None

    delete = Shop().delete(announce=announce)
    async with serving(store, channel, [DELETE, "Sorry."], delete) as on:
        events = await finish(on, await on.start())
        assert of(events, "tool.failed")[0]["code"] == "approval_unavailable"
        assert of(events, "interaction.requested") == []


async def test_an_approval_expires_and_the_message_learns_of_it(
    autojump_clock: MockClock, store: Store, channel: Channel
) -> None:
    delete = approval_tool(expires_in=MINUTE)
    async with serving(store, channel, [DELETE, "Done."], delete) as on:
        run_id, tokens = await asks_in(on, channel)
        await trio.sleep(70)
        events = await finish(on, run_id)
        assert of(events, "tool.failed")[0]["code"] == "expired"
        assert of(events, "tool.started") == []
        assert (await click(on, tokens["Yes"])).status == "expired"
        assert channel.last.texts[1:] == ["a.txt: expired"]


@pytest.mark.parametrize("asker", ["model", "tool", "tool that says so itself"])
async def test_questions_expire_too(
    autojump_clock: MockClock, store: Store, channel: Channel, asker: str
) -> None:
    shop = Shop(then=ToolContinuation("accept", {"what": "hotel"}))
    seconds: float | None = 60
    if asker == "tool that says so itself":
        shop.question["expires_in"] = MINUTE
        seconds = None
    first = asking(ask() if asker == "model" else ToolCall("offer"), ToolCall("note"))
    async with serving(
        store, channel, [first, "Done."], *shop.tools(), question_expires_seconds=seconds
    ) as on:
        run_id, question = await asked(on)
        assert question["expires_at"].startswith("2026-01-02T03:05:05.")
        await trio.sleep(70)
        events = await finish(on, run_id)
        assert of(events, "interaction.resolved")[0]["outcome"] == "expired"
        assert "accept" not in shop.names
        assert "note" in shop.names
        codes = [one.get("code") for one in await on.answers()]
        assert codes.count("expired") == 1
        failed = of(events, "tool.failed")
        assert [one["name"] for one in failed] == ([] if asker == "model" else ["accept"])
        with pytest.raises(InteractionAlreadyResolved) as late:
            await on.runtime.submit_response(run_id, question["id"], "Monday", identity=OWNER)
        assert late.value.outcome == "expired"
