"""Questions of the model and their answers."""

from __future__ import annotations

import random
from typing import Any

import pytest
import trio
from pydantic import JsonValue
from trio.testing import MockClock

from rungent import (
    Agent,
    Identity,
    InteractionAlreadyResolved,
    InteractionMismatch,
    InvalidResponse,
    NotFound,
    RunNotWaiting,
    ShuttingDown,
    ToolCall,
    ToolContext,
)
from rungent.store import Store
from tests.helpers import OWNER, Stage, asking, calls, of, opened, stage, types
from tests.pauses.shop import (
    Shop,
    answer,
    ask,
    asked,
    envelopes,
    finish,
    paused,
    snapshot,
    tool_names,
)

OPTIONS: list[JsonValue] = [
    {"id": "a", "label": "Anna"},
    {"id": "b", "label": "Bert", "recommended": True},
]


async def test_a_question_pauses_the_run_and_its_answer_goes_to_the_model(
    autojump_clock: MockClock, store: Store
) -> None:
    async with stage([asking(ask(" Which day? "), text="Hm."), "Monday it is."], store=store) as on:
        run_id, question = await asked(on)
        run = await on.run(run_id)
        assert (run.lease, run.state.turn[0].id) == (None, question["tool_call_id"])
        assert question == {
            "id": question["id"],
            "kind": "text",
            "prompt": "Which day?",
            "options": [],
            "questions": [],
            "multiple": False,
            "allow_custom": False,
            "allow_skip": False,
            "skip_label": None,
            "tool_call_id": question["tool_call_id"],
        }
        receipt = await answer(on, run_id, question, " Monday ")
        assert (receipt.run_id, receipt.status) == (run_id, "running")
        events = await finish(on, run_id)
        assert types(events)[3:8] == [
            "model.completed",
            "message.reset",
            "run.waiting_input",
            "interaction.requested",
            "interaction.resolved",
        ]
        assert of(events, "interaction.resolved") == [
            {"interaction_id": question["id"], "kind": "text", "outcome": "answered"}
        ]
        assert await envelopes(on) == [
            {"tool_status": "success", "data": {"user_response": "Monday"}}
        ]
        kept = await store.get_interaction(question["id"])
        assert (kept.status, kept.outcome, kept.response) == ("resolved", "answered", "Monday")
        assert (await on.run(run_id)).fencing_token == run.fencing_token + 1


@pytest.mark.parametrize(
    ("question", "value", "outcome", "normalised"),
    [
        (
            ask(kind="choice", options=OPTIONS),
            {"selected": ["b"], "custom": None, "extra": 1},
            "answered",
            {"selected": ["b"]},
        ),
        (
            ask(kind="choice", options=OPTIONS, allow_skip=True, skip_label=" Later "),
            {"skipped": True},
            "skipped",
            {"selected": [], "skipped": True},
        ),
        (
            ask(kind="choice", options=OPTIONS, multiple=True, allow_custom=True),
            {"selected": ["b", "a"], "custom": " Carl "},
            "answered",
            {"selected": ["a", "b"], "custom": "Carl"},
        ),
        (
            ask(
                kind="form",
                questions=[
                    {"id": "q", "prompt": "?", "kind": "text"},
                    {"id": "r", "prompt": "?", "kind": "choice", "options": OPTIONS,
                     "required": False},
                ],
            ),
            {"answers": {"r": {"selected": []}, "q": " yes "}},
            "answered",
            {"answers": {"q": "yes"}},
        ),
    ],
)  # fmt: skip
async def test_answers_of_every_kind_are_stored_in_normal_form(
    autojump_clock: MockClock,
    store: Store,
    question: ToolCall,
    value: JsonValue,
    outcome: str,
    normalised: JsonValue,
) -> None:
    async with stage([asking(question), "Thanks."], store=store) as on:
        run_id, data = await asked(on)
        await answer(on, run_id, data, value)
        events = await finish(on, run_id)
        assert of(events, "interaction.resolved")[0]["outcome"] == outcome
        assert (await envelopes(on))[0]["data"] == {"user_response": normalised}
        assert (await store.get_interaction(data["id"])).response == normalised


@pytest.mark.parametrize(
    ("value", "reason", "path"),
    [
        (None, "type_mismatch", []),
        ([], "type_mismatch", []),
        ({"selected": "a"}, "type_mismatch", ["selected"]),
        ({"selected": ["a", 1]}, "type_mismatch", ["selected", 1]),
        ({"selected": ["a", "a"]}, "duplicate_option", ["selected", 1]),
        ({"selected": ["z"]}, "unknown_option", ["selected", 0]),
        ({"selected": ["a", "b"]}, "too_many_answers", []),
        ({"custom": "Carl"}, "custom_not_allowed", ["custom"]),
        ({"skipped": True}, "skip_not_allowed", ["skipped"]),
        ({}, "empty_answer", []),
    ],
)
async def test_a_refused_answer_changes_nothing(
    autojump_clock: MockClock, store: Store, value: JsonValue, reason: str, path: list[str | int]
) -> None:
    question = ask(kind="choice", options=OPTIONS)
    async with stage([asking(question), "Thanks."], store=store) as on:
        run_id, data = await asked(on)
        before = await snapshot(on, run_id)
        with pytest.raises(InvalidResponse) as refused:
            await answer(on, run_id, data, value)
        assert (refused.value.reason, refused.value.path) == (reason, path)
        assert await snapshot(on, run_id) == before
        await answer(on, run_id, data, {"selected": ["a"]})
        await finish(on, run_id)


async def test_the_first_answer_wins_and_its_repetition_does_nothing(
    autojump_clock: MockClock, store: Store
) -> None:
    async with stage([asking(ask()), asking(ask("And when?")), "Fine."], store=store) as on:
        run_id, first = await asked(on)
        await answer(on, run_id, first, "Monday")
        second = await paused(on, run_id, after=(await on.so_far(run_id))[-1].seq - 1)
        before = await snapshot(on, run_id)
        again = await answer(on, run_id, first, " Monday\n")
        assert (again.run_id, again.status) == (run_id, "waiting_input")
        others: list[JsonValue] = ["Tuesday", None, {"selected": []}]
        for other in others:
            with pytest.raises(InteractionAlreadyResolved) as refused:
                await answer(on, run_id, first, other)
            assert refused.value.outcome == "answered"
        assert await snapshot(on, run_id) == before
        await answer(on, run_id, second, "Now")
        events = await finish(on, run_id)
        assert (await answer(on, run_id, first, "Monday")).status == "completed"
        with pytest.raises(InteractionAlreadyResolved):
            await answer(on, run_id, first, "Tuesday")
        assert await on.log(run_id) == events
        assert len(on.model.requests) == 3


async def test_a_question_that_was_cancelled_takes_no_answer(
    autojump_clock: MockClock, store: Store
) -> None:
    async with stage([asking(ask(kind="choice", options=OPTIONS))], store=store) as on:
        run_id, question = await asked(on)
        await on.cancel(run_id)
        events = await finish(on, run_id, "cancelled")
        assert types(events)[-2:] == ["interaction.resolved", "run.cancelled"]
        values: list[JsonValue] = [{"selected": ["a"]}, None]
        for value in values:
            with pytest.raises(InteractionAlreadyResolved) as refused:
                await answer(on, run_id, question, value)
            assert refused.value.outcome == "cancelled"
        assert await on.log(run_id) == events


async def race(on: Stage, run_id: str, data: dict[str, Any], values: list[Any], seed: int) -> Any:
    """Answer from many tasks, which get there after a few checkpoints each."""
    mood, verdicts = random.Random(seed), list[tuple[Any, str]]()

    async def one(value: JsonValue, pause: int) -> None:
        for _ in range(pause):
            await trio.lowlevel.checkpoint()
        try:
            await answer(on, run_id, data, value)
        except InteractionAlreadyResolved as refused:
            verdicts.append((value, refused.outcome))
        else:
            verdicts.append((value, "accepted"))

    async with trio.open_nursery() as nursery:
        for value in values:
            nursery.start_soon(one, value, mood.randrange(4))
    return verdicts


@pytest.mark.parametrize("seed", range(5))
async def test_of_answers_at_the_same_instant_one_wins(
    autojump_clock: MockClock, store: Store, seed: int
) -> None:
    shop = Shop()
    script = [asking(ToolCall("delete", {"path": "a"})), "Done."]
    async with stage(script, tools=shop.tools(), store=store) as on:
        run_id, question = await asked(on)
        values = [True, "approve", False, "reject", {"selected": ["approve"]}] * 2
        verdicts = await race(on, run_id, question, values, seed)
        kept = await store.get_interaction(question["id"])
        yes = kept.outcome == "approved"
        for value, verdict in verdicts:
            same = (value not in (False, "reject")) == yes
            assert verdict == ("accepted" if same else kept.outcome)
        events = await finish(on, run_id)
        assert len(of(events, "interaction.resolved")) == 1
        assert shop.names == ["delete"] * yes


async def test_forged_answers_are_refused_and_change_nothing(
    autojump_clock: MockClock, store: Store
) -> None:
    async with stage([asking(ask()), asking(ask()), "One.", "Two."], store=store) as on:
        other = await opened(on.runtime, store, on.model)
        run_id, question = await asked(on)
        other_id, foreign = await asked(other)
        before = await snapshot(on, run_id), await snapshot(other, other_id)
        for forged in (foreign["id"], "int_" + "0" * 32, "", "x" * 5000, run_id):
            with pytest.raises(InteractionMismatch) as refused:
                await answer(on, run_id, {"id": forged}, "Monday")
            assert refused.value.interaction_id == question["id"]
        for stranger in (Identity("bob"), Identity("ada", "t")):
            for aim in (run_id, "run_" + "0" * 32):
                with pytest.raises(NotFound) as unknown:
                    await on.runtime.submit_response(
                        aim, question["id"], "Monday", identity=stranger
                    )
                assert str(unknown.value) == "There is no such run."
        assert (await snapshot(on, run_id), await snapshot(other, other_id)) == before
        await answer(on, run_id, question, "Monday")
        await finish(on, run_id)
        with pytest.raises(RunNotWaiting) as late:
            await answer(on, run_id, foreign, "Monday")
        assert late.value.status == "completed"
        await answer(other, other_id, foreign, "Monday")
        await finish(other, other_id)


BAD_REQUESTS: list[dict[str, Any]] = [
    {},
    {"kind": "text"},
    {"kind": None, "prompt": "Which?"},
    {"kind": "approval", "prompt": "Sure?"},
    {"kind": ["text"], "prompt": "Which?"},
    {"kind": "text", "prompt": 5},
    {"kind": "text", "prompt": "   "},
    {"kind": "text", "prompt": "x" * 4001},
    {"kind": "text", "prompt": "Which?", "options": OPTIONS},
    {"kind": "choice", "prompt": "Which?", "options": None},
    {"kind": "choice", "prompt": "Which?", "options": "ab"},
    {"kind": "choice", "prompt": "Which?", "options": [None]},
    {"kind": "choice", "prompt": "Which?", "options": [{"id": 1, "label": "x"}]},
    {"kind": "choice", "prompt": "Which?", "options": OPTIONS, "multiple": "yes"},
    {"kind": "form", "prompt": "Tell.", "questions": None},
    {"kind": "form", "prompt": "Tell.", "questions": {"id": "q"}},
    {"kind": "form", "prompt": "Tell.", "questions": [[]]},
    {"kind": "form", "prompt": "Tell.", "questions": [{"id": "q", "kind": "form", "prompt": "?"}]},
    {"kind": "text", "prompt": "Which?\n1. this\n2. that"},
    {"kind": "text", "prompt": "Which?\nA) this\nB) that"},
]


@pytest.mark.parametrize("arguments", BAD_REQUESTS)
async def test_a_bad_question_is_a_tool_error_and_never_a_dead_run(
    autojump_clock: MockClock, arguments: dict[str, Any]
) -> None:
    async with stage([asking(ToolCall("request_input", arguments)), "Well."]) as on:
        events = await on.play()
        assert types(events)[-1] == "run.completed"
        (failed,) = of(events, "tool.failed")
        assert (failed["name"], failed["code"]) == ("request_input", "invalid_interaction")
        assert (failed["title"], failed["effect"]) == ("Request input", "read")
        assert failed["message"] == "The question is not valid."
        (told,) = await envelopes(on)
        assert (told["code"], told["retryable"]) == ("invalid_interaction", True)
        assert told["message"] != failed["message"]
        assert "run.waiting_input" not in types(events)


@pytest.mark.parametrize(
    "prompt",
    [
        "09:30 or\n10:30?",
        "1.5 or\n2.5 metres?",
        "Which year?\n1990\n1991",
        "1. only one",
        "2. b\n1. a",
    ],
)
async def test_times_decimals_and_years_are_no_numbered_alternatives(
    autojump_clock: MockClock, prompt: str
) -> None:
    nothing: dict[str, Any] = {"options": None, "questions": None, "skip_label": None}
    async with stage([asking(ask(prompt, **nothing)), "Well."]) as on:
        run_id, question = await asked(on)
        assert question["prompt"] == prompt
        await answer(on, run_id, question, "the first")
        await finish(on, run_id)


# --- the trusted answer -------------------------------------------------------------------------


async def test_tools_that_need_an_answer_have_it_once(
    autojump_clock: MockClock, store: Store
) -> None:
    """Offered from the answer on, until one of them was executed."""
    shop = Shop()
    script = [
        asking(ToolCall("accept"), ask()),
        calls("note"),
        calls("accept", what="bed"),
        calls("accept", what="bath"),
        "Done.",
    ]
    flagged = {"accept", "grant"}
    async with stage(script, tools=shop.tools(), store=store) as on:
        run_id, question = await asked(on)
        assert not flagged & set(tool_names(on))
        await answer(on, run_id, question, "Monday")
        await finish(on, run_id)
        offered = [flagged & set(tool_names(on, at)) for at in range(5)]
        assert offered == [set(), flagged, flagged, set(), set()]
        assert [(deed.name, deed.answer) for deed in shop.deeds] == [
            ("note", "Monday"),
            ("accept", "Monday"),
        ]
        told = await envelopes(on)
        assert [one.get("code") for one in told] == [
            "interaction_required",
            None,
            None,
            None,
            "interaction_required",
        ]


@pytest.mark.parametrize("broken", [False, True])
async def test_an_execution_uses_the_answer_up_whether_it_succeeds_or_not(
    autojump_clock: MockClock, broken: bool
) -> None:
    shop = Shop(broken=broken)
    script = [asking(ask()), calls("accept", "accept"), "Done."]
    async with stage(script, tools=shop.tools()) as on:
        run_id, question = await asked(on)
        await answer(on, run_id, question, "Monday")
        await finish(on, run_id)
        assert shop.names == ["accept"]
        codes = [one.get("code") for one in await envelopes(on)][1:]
        # A repetition of a success is not executed either, but nothing is missing for it.
        assert codes == (["tool_error", "interaction_required"] if broken else [None, codes[1]])


async def test_arguments_that_do_not_fit_leave_the_answer(autojump_clock: MockClock) -> None:
    shop = Shop()
    script = [asking(ask()), asking(ToolCall("accept", {"x": 1}), ToolCall("accept")), "Done."]
    async with stage(script, tools=shop.tools()) as on:
        run_id, question = await asked(on)
        await answer(on, run_id, question, "Monday")
        await finish(on, run_id)
        assert [(d.name, d.answer) for d in shop.deeds] == [("accept", "Monday")]


async def test_a_later_answer_replaces_an_earlier_one_and_an_approval_ends_it(
    autojump_clock: MockClock,
    store: Store,
) -> None:
    shop = Shop()
    script = [
        asking(ask("One?"), ask("Two?"), ToolCall("note", {"n": 1})),
        asking(ToolCall("delete", {"path": "a"}), ToolCall("note", {"n": 2})),
        "Done.",
    ]
    async with stage(script, tools=shop.tools(), store=store) as on:
        run_id, first = await asked(on)
        await answer(on, run_id, first, "1")
        second = await paused(on, run_id, after=(await on.run(run_id)).event_seq - 1)
        await answer(on, run_id, second, "2")
        approval = await paused(on, run_id, after=(await on.run(run_id)).event_seq - 1)
        await answer(on, run_id, approval, True)
        await finish(on, run_id)
        assert [(d.name, d.answer) for d in shop.deeds] == [
            ("note", "2"),
            ("delete", None),
            ("note", None),
        ]


async def test_a_flagged_call_that_is_approved_runs_under_the_answer_it_was_made_under(
    autojump_clock: MockClock,
    store: Store,
) -> None:
    shop = Shop()
    script = [asking(ask()), calls("grant", "grant", what="key"), "Done."]
    async with stage(script, tools=shop.tools(), store=store) as on:
        run_id, question = await asked(on)
        await answer(on, run_id, question, "Monday")
        approval = await paused(on, run_id, after=(await on.run(run_id)).event_seq - 1)
        assert (approval["kind"], approval["prompt"]) == ("approval", "Grant key?")
        await answer(on, run_id, approval, True)
        await finish(on, run_id)
        assert [(d.name, d.answer) for d in shop.deeds] == [("grant", "Monday")]
        assert not {"accept", "grant"} & set(tool_names(on))


# --- the drive after an answer ------------------------------------------------------------------


async def test_the_drive_has_the_dependencies_of_whoever_answered(
    autojump_clock: MockClock, store: Store
) -> None:
    seen: list[object] = []

    async def context(ctx: ToolContext) -> str:
        seen.append(dict(ctx.deps))
        return ""

    agent = Agent("helper", "Help.", context=context)
    script = [asking(ask()), asking(ask()), "Done."]
    async with stage(
        script, agent=agent, store=store, dependency_provider=lambda session, run: {"of": run.id}
    ) as on:
        run_id, first = await asked(on, deps={"of": "creator"})
        await answer(on, run_id, first, "x", deps={"of": "answerer"})
        second = await paused(on, run_id, after=(await on.run(run_id)).event_seq - 1)
        await answer(on, run_id, second, "y")
        await finish(on, run_id)
        assert seen == [{"of": "creator"}, {"of": "answerer"}, {"of": run_id}]


async def test_a_provider_that_fails_after_an_answer_fails_the_run_retryably(
    autojump_clock: MockClock,
) -> None:
    broken = False

    def provider(session: object, run: object) -> dict[str, Any]:
        return {"n": 1 / (not broken)}

    async with stage([asking(ask()), "Done."], dependency_provider=provider) as on:
        run_id, question = await asked(on)
        broken = True
        await answer(on, run_id, question, "x")
        failed = (await finish(on, run_id, "failed"))[-1].data
        assert (failed["code"], failed["retryable"]) == ("context_failed", True)
        assert (await envelopes(on))[0]["data"] == {"user_response": "x"}


async def test_answers_are_never_refused_for_capacity(autojump_clock: MockClock) -> None:
    async with stage(
        [asking(ask()), asking(ask()), "One.", "Two."], max_concurrent_runs=1, max_queued_runs=1
    ) as on:
        other = await opened(on.runtime, on.store, on.model)
        runs = [(on, *await asked(on)), (other, *await asked(other))]
        for where, run_id, question in runs:
            await answer(where, run_id, question, "x")
        for where, run_id, _ in runs:
            await finish(where, run_id)


async def test_a_stopped_runtime_takes_no_answer_but_knows_a_repetition(
    autojump_clock: MockClock,
) -> None:
    async with stage([asking(ask()), "Done.", asking(ask())]) as on:
        first_id, first = await asked(on)
        await answer(on, first_id, first, "x")
        await finish(on, first_id)
        run_id, question = await asked(on)
        await on.runtime.stop()
        before = await snapshot(on, run_id)
        with pytest.raises(InvalidResponse):
            await answer(on, run_id, question, None)
        with pytest.raises(ShuttingDown):
            await answer(on, run_id, question, "x")
        assert await snapshot(on, run_id) == before
        assert (await answer(on, first_id, first, "x")).status == "completed"


async def test_an_answer_streams_from_the_first_new_event(
    autojump_clock: MockClock, store: Store
) -> None:
    async with stage([asking(ask()), "Done."], store=store) as on:
        run_id, question = await asked(on)
        stream = on.runtime.stream_response(run_id, question["id"], "x", identity=OWNER)
        seen = [event async for event in stream]
        assert types(seen)[0] == "interaction.resolved"
        assert types(seen)[-1] == "run.completed"
        assert seen == (await on.log(run_id))[-len(seen) :]


async def test_a_listener_can_answer_what_it_hears(autojump_clock: MockClock) -> None:
    heard: list[str] = []

    async def listen(event: Any) -> None:
        heard.append(event.type)
        if event.type == "interaction.requested":
            await answer(on, event.run_id, event.data, "x")

    async with stage([asking(ask()), "Done."], event_listener=listen) as on:
        events = await on.play()
        await trio.testing.wait_all_tasks_blocked()
        assert heard == types(events)


# --- a message while a question is pending --------------------------------------------------------


async def test_a_new_message_leaves_no_unanswered_call(
    autojump_clock: MockClock, store: Store
) -> None:
    shop = Shop()
    script = [asking(ToolCall("note"), ask(), ToolCall("peek")), "Hello again."]
    async with stage(script, tools=shop.tools(), store=store) as on:
        run_id, question = await asked(on)
        second = await on.start("Never mind.", if_active="cancel_waiting")
        await finish(on, second)
        events = await finish(on, run_id, "cancelled")
        assert types(events)[-2:] == ["interaction.resolved", "run.cancelled"]
        roles = [line["role"] for line in on.model.requests[-1].messages]
        assert roles == ["system", "user", "assistant", "tool", "tool", "tool", "user"]
        assert [one.get("code") for one in await envelopes(on)] == [None, "cancelled", "cancelled"]
        assert shop.names == ["note"]
        with pytest.raises(InteractionAlreadyResolved) as late:
            await answer(on, run_id, question, "x")
        assert late.value.outcome == "cancelled"
