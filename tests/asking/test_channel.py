"""A tool asks in a channel, and goes on with the click of somebody there."""

from __future__ import annotations

from datetime import timedelta

import pytest
import trio
from pydantic import JsonValue
from trio.testing import MockClock

from rungent import ActionOutcome, Identity, NotAllowed, ToolCall
from rungent.store import Store
from tests.asking.channel import ASK, Channel, ask_channel, asks_in, click, poll_tool, serving
from tests.helpers import OWNER, asking, of, types
from tests.pauses.shop import check_calls, finish

DAY = 86400
SOON = ask_channel(expires_in=timedelta(seconds=60))


async def test_the_click_of_a_team_member_settles_the_call_and_updates_the_message(
    autojump_clock: MockClock, store: Store, channel: Channel
) -> None:
    async with serving(store, channel, [ASK, "Done."]) as on:
        run_id, tokens = await asks_in(on, channel)
        assert [len(token) for token in tokens.values()] == [22, 22]
        outcome = await click(on, tokens["Approve"])
        assert (outcome.status, outcome.run_id) == ("accepted", run_id)
        events = await finish(on, run_id)
        (answer,) = await on.answers()
        assert answer == {"tool_status": "success", "data": {"approved": True, "note": None}}
        assert channel.last.text == "Ship it: approved by bob"
        assert types(events)[3:9] == [
            "tool.started",
            "run.waiting_input",
            "interaction.requested",
            "interaction.resolved",
            "tool.completed",
            "model.started",
        ]


async def test_the_schema_goes_out_and_the_state_and_the_buttons_do_not(
    autojump_clock: MockClock, store: Store, channel: Channel
) -> None:
    async with serving(store, channel, [ASK, "Done."]) as on:
        run_id, tokens = await asks_in(on, channel)
        await click(on, tokens["Reject"])
        events = await finish(on, run_id)
        (asked,) = of(events, "interaction.requested")
        assert asked["kind"] == "data"
        assert asked["tool_call_id"] == "call_ask"
        assert set(asked["schema"]["properties"]) == {"approved", "note"}
        assert asked["expires_at"] == "2026-01-02T11:04:05.000000Z"
        stored = await on.store.get_interaction(asked["id"])
        assert stored.state == {"message_id": "m1"}
        assert stored.answered_by == (Identity("bob"),)
        everything = str([event.to_json() for event in events]) + str(on.model.requests)
        for secret in ("message_id", *tokens.values()):
            assert secret not in everything


@pytest.mark.parametrize("second", ["Approve", "Reject"])
async def test_a_second_click_changes_nothing(
    autojump_clock: MockClock, store: Store, channel: Channel, second: str
) -> None:
    async with serving(store, channel, [ASK, "Done."]) as on:
        run_id, tokens = await asks_in(on, channel)
        outcomes: list[ActionOutcome] = []

        async def press(button: str, who: str) -> None:
            outcomes.append(await click(on, tokens[button], who))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(press, "Approve", "bob")
            nursery.start_soon(press, second, "cleo")
        await finish(on, run_id)
        outcomes.append(await click(on, tokens[second], "dan"))
        statuses = [outcome.status for outcome in outcomes]
        assert sorted(statuses) == ["accepted", "already_answered", "already_answered"]
        winner = next(one for one in outcomes if one.accepted)
        assert {one.answered_by for one in outcomes} == {winner.answered_by}
        assert len(channel.last.texts) == 2


async def test_forged_tokens_and_strangers_get_nowhere(
    autojump_clock: MockClock, store: Store, channel: Channel
) -> None:
    async with serving(store, channel, [ASK, "Done."]) as on:
        run_id, tokens = await asks_in(on, channel)
        for forged in ("", "x" * 22, "\u2028" * 22, tokens["Approve"][:-1], "'; --"):
            outcome = await click(on, forged)
            assert (outcome.status, outcome.run_id) == ("unknown", None)
        stranger = await click(on, tokens["Approve"], "mallory")
        assert (stranger.status, stranger.run_id) == ("not_allowed", None)
        assert (await on.run(run_id)).status == "waiting_input"
        (asked,) = of(await on.so_far(run_id), "interaction.requested")
        with pytest.raises(NotAllowed):
            await on.runtime.submit_response(
                run_id, asked["id"], {"approved": True}, identity=OWNER
            )
        assert (await on.run(run_id)).status == "waiting_input"
        assert (await click(on, tokens["Approve"])).accepted
        await finish(on, run_id)


async def test_without_responders_the_owner_alone_answers_by_button_or_by_value(
    autojump_clock: MockClock, store: Store, channel: Channel
) -> None:
    tools = ask_channel(responders=None)
    async with serving(store, channel, [ASK, "Done.", ASK, "Done."], tools) as on:
        run_id, tokens = await asks_in(on, channel)
        assert (await click(on, tokens["Approve"], "bob")).status == "not_allowed"
        assert (await click(on, tokens["Approve"], "ada")).accepted
        await finish(on, run_id)
        run_id, tokens = await asks_in(on, channel)
        (asked,) = of(await on.so_far(run_id), "interaction.requested")
        value: JsonValue = {"approved": False, "note": "no"}
        await on.runtime.submit_response(run_id, asked["id"], value, identity=OWNER)
        await on.runtime.submit_response(run_id, asked["id"], value, identity=OWNER)
        await finish(on, run_id)
        assert (await on.answers())[-1]["data"] == value
        assert (await click(on, tokens["Approve"], "ada")).status == "already_answered"


async def test_nobody_in_time_closes_the_message_and_the_model_goes_on(
    autojump_clock: MockClock, store: Store, channel: Channel
) -> None:
    async with serving(store, channel, [ASK, "Nobody."], SOON) as on:
        run_id, tokens = await asks_in(on, channel)
        await trio.sleep(50)
        assert (await on.run(run_id)).status == "waiting_input"
        await trio.sleep(20)
        events = await finish(on, run_id)
        assert of(events, "interaction.resolved")[0]["outcome"] == "expired"
        assert of(events, "tool.failed")[0]["code"] == "expired"
        (answer,) = await on.answers()
        assert (answer["code"], answer["retryable"]) == ("expired", False)
        assert (await click(on, tokens["Approve"])).status == "expired"
        assert channel.last.texts[1:] == ["Closed: expired"]


async def test_a_click_after_the_time_is_too_late_even_if_nobody_looked_yet(
    autojump_clock: MockClock, store: Store, channel: Channel
) -> None:
    async with serving(store, channel, [ASK, "Nobody."], SOON, recovery_interval_seconds=DAY) as on:
        run_id, tokens = await asks_in(on, channel)
        await trio.sleep(60)
        assert (await click(on, tokens["Approve"])).status == "expired"
        await finish(on, run_id)
        await trio.sleep(1)
        assert channel.last.texts[1:] == ["Closed: expired"]


async def test_a_cancel_updates_the_message(
    autojump_clock: MockClock, store: Store, channel: Channel
) -> None:
    async with serving(store, channel, [ASK]) as on:
        run_id, tokens = await asks_in(on, channel)
        await on.cancel(run_id)
        await finish(on, run_id, "cancelled")
        await trio.sleep(1)
        assert channel.last.texts[1:] == ["Closed: cancelled"]
        assert (await click(on, tokens["Approve"])).status == "closed"
        await trio.sleep(60)
        assert len(channel.last.texts) == 2


async def test_a_cancel_while_the_answer_is_handled_still_closes_the_message(
    autojump_clock: MockClock, store: Store, channel: Channel
) -> None:
    channel.slow = 20
    async with serving(store, channel, [ASK]) as on:
        run_id, tokens = await asks_in(on, channel)
        assert (await click(on, tokens["Approve"])).accepted
        await trio.sleep(10)
        await on.cancel(run_id)
        events = await finish(on, run_id, "cancelled")
        assert of(events, "interaction.resolved")[0]["outcome"] == "answered"
        await trio.sleep(30)
        assert channel.last.texts[1:] == ["Closed: cancelled"]


async def test_a_deploy_that_drops_the_tool_fails_the_call_when_somebody_answers(
    autojump_clock: MockClock, store: Store, channel: Channel
) -> None:
    mine = ask_channel(responders=None)
    async with serving(store, channel, [ASK], mine) as on:
        run_id, tokens = await asks_in(on, channel)
    async with serving(store, channel, ["Sorry."], poll_tool(), session=on.session) as later:
        assert (await click(later, tokens["Approve"], "bob")).status == "not_allowed"
        assert (await click(later, tokens["Approve"], "ada")).accepted
        events = await finish(later, run_id)
        assert of(events, "tool.failed")[0]["code"] == "unknown_tool"


async def test_a_message_that_cannot_be_closed_changes_nothing_else(
    autojump_clock: MockClock, store: Store, channel: Channel
) -> None:
    async with serving(store, channel, [ASK, "Nobody."], SOON) as on:
        run_id, _ = await asks_in(on, channel)
        channel.broken = True
        await trio.sleep(70)
        await finish(on, run_id)
        channel.broken = False
        await trio.sleep(60)
        assert len(channel.last.texts) == 1


async def test_two_of_three_votes_settle_the_call_and_each_person_has_one(
    autojump_clock: MockClock, store: Store, channel: Channel
) -> None:
    poll = asking(ToolCall("poll", {}, "call_poll"))
    async with serving(store, channel, [poll, "Done."], poll_tool()) as on:
        run_id, tokens = await asks_in(on, channel)
        assert (await click(on, tokens["Yes"], "bob")).accepted
        await on.until(run_id, "interaction.requested", 2)
        assert (await click(on, tokens["No"], "bob")).status == "already_answered"
        assert (await click(on, tokens["Yes"], "ada")).status == "not_allowed"
        assert (await click(on, tokens["No"], "cleo")).accepted
        await on.until(run_id, "interaction.requested", 3)
        assert (await click(on, tokens["Yes"], "dan")).accepted
        events = await finish(on, run_id)
        assert (await on.answers())[-1]["data"] == {"votes": 2}
        ids = {asked["id"] for asked in of(events, "interaction.requested")}
        assert len(ids) == 1
        stored = await on.store.get_interaction(ids.pop())
        assert [one.subject_id for one in stored.answered_by] == ["bob", "cleo", "dan"]
        assert len(of(events, "tool.started")) == len(of(events, "tool.completed")) == 1


@pytest.mark.parametrize(("slow", "second"), [(1, "accepted"), (60, "busy")])
async def test_two_votes_at_once_both_count_or_the_second_is_told_to_try_again(
    autojump_clock: MockClock, store: Store, channel: Channel, slow: float, second: str
) -> None:
    channel.slow = slow
    poll = asking(ToolCall("poll", {}, "call_poll"))
    async with serving(store, channel, [poll, "Done."], poll_tool(timeout_seconds=200)) as on:
        run_id, tokens = await asks_in(on, channel)
        assert (await click(on, tokens["Yes"], "bob")).accepted
        assert (await click(on, tokens["Yes"], "cleo")).status == second
        if second == "busy":
            await on.until(run_id, "interaction.requested", 2)
            assert (await click(on, tokens["Yes"], "cleo")).accepted
        await finish(on, run_id)
        assert (await on.answers())[-1]["data"] == {"votes": 2}


async def test_no_round_is_left_after_the_last(
    autojump_clock: MockClock, store: Store, channel: Channel
) -> None:
    poll = asking(ToolCall("poll", {}, "call_poll"))
    async with serving(store, channel, [poll, "Sorry."], poll_tool(1)) as on:
        run_id, tokens = await asks_in(on, channel)
        assert (await click(on, tokens["Yes"])).accepted
        events = await finish(on, run_id)
        assert of(events, "tool.failed")[0]["code"] == "tool_error"


async def test_the_question_outlives_its_worker(
    autojump_clock: MockClock, store: Store, channel: Channel
) -> None:
    """The new worker has new objects for the tool, its model and its functions."""
    async with serving(store, channel, [ASK]) as on:
        run_id, tokens = await asks_in(on, channel)
    async with serving(store, channel, ["Done."], session=on.session) as later:
        assert (await click(later, tokens["Approve"])).accepted
        await finish(later, run_id)
        assert channel.last.text == "Ship it: approved by bob"
        await check_calls(later)


async def test_a_run_that_fails_while_the_answer_is_handled_closes_the_message(
    autojump_clock: MockClock, store: Store, channel: Channel
) -> None:
    tools = ask_channel(idempotent=True)
    async with serving(store, channel, [ASK], tools) as on:
        run_id, tokens = await asks_in(on, channel)
        channel.slow = DAY
        assert (await click(on, tokens["Approve"])).accepted
    async with serving(store, channel, [], tools, session=on.session, max_recoveries=1):
        await trio.sleep(10)
    channel.slow = 0
    async with serving(store, channel, [], tools, session=on.session, max_recoveries=1) as last:
        events = await finish(last, run_id, "failed")
        assert of(events, "run.failed")[0]["code"] == "recovery_exhausted"
        await trio.sleep(10)
        assert channel.last.texts[1:] == ["Closed: failed"]
