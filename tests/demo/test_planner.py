"""The offline planner: which phrases it understands, and what it says about the results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rungent.demo.phrases import EXAMPLES, PlannedCall, parse
from rungent.demo.planner import plan

TOOLS = (
    "report_progress",
    "list_places",
    "get_day",
    "add_place",
    "move_place",
    "swap_places",
    "set_transport",
    "add_day",
    "rename_trip",
    "ask_budget",
    "remove_day",
    "remove_place",
    "request_input",
    "optimise_route",
    "prepare_import",
    "commit_import",
)

ONE_CALL: list[tuple[str, str, dict[str, Any]]] = [
    ("Show my trip", "list_places", {}),
    ("show me the whole trip, please", "list_places", {}),
    ("List all places.", "list_places", {}),
    ("What is on day 2?", "get_day", {"day_number": 2}),
    ("What\u2019s on day two", "get_day", {"day_number": 2}),
    ("show me day 3", "get_day", {"day_number": 3}),
    (
        "Move Asakusa Temple to day 2",
        "move_place",
        {"name": "Asakusa Temple", "day_number": 2},
    ),
    (
        "please  move the museum\nto day 1",
        "move_place",
        {"name": "museum", "day_number": 1},
    ),
    (
        "Move Ueno Park to the unplanned places",
        "move_place",
        {"name": "Ueno Park", "day_number": None},
    ),
    ("Put Odaiba Beach on day 3", "move_place", {"name": "Odaiba Beach", "day_number": 3}),
    (
        "Swap Tokyo Tower and Ueno Park",
        "swap_places",
        {"first": "Tokyo Tower", "second": "Ueno Park"},
    ),
    ("swap A with the B", "swap_places", {"first": "A", "second": "B"}),
    ("Add Meiji Shrine to day 1", "add_place", {"name": "Meiji Shrine", "day_number": 1}),
    ('Add "Meiji Shrine"', "add_place", {"name": "Meiji Shrine", "day_number": None}),
    (
        "Add 浅草寺 to the unplanned pool",
        "add_place",
        {"name": "浅草寺", "day_number": None},
    ),
    ("Add a day", "add_day", {}),
    ("Add another day!", "add_day", {}),
    ("Add a new day to my trip", "add_day", {}),
    ("Add Meiji Shrine to my trip", "add_place", {"name": "Meiji Shrine", "day_number": None}),
    ("Take the train on day 2", "set_transport", {"mode": "train", "day_number": 2}),
    ("Walk on day 1", "set_transport", {"mode": "walk", "day_number": 1}),
    (
        "Set the transport on day 3 to BUS",
        "set_transport",
        {"mode": "bus", "day_number": 3},
    ),
    (
        "Take a taxi to Tokyo Tower",
        "set_transport",
        {"mode": "taxi", "to_place": "Tokyo Tower"},
    ),
    ("Walk to Ueno Park", "set_transport", {"mode": "walk", "to_place": "Ueno Park"}),
    ("Call the trip Spring in Tokyo", "rename_trip", {"title": "Spring in Tokyo"}),
    ("Delete day 3", "remove_day", {"day_number": 3}),
    ("Remove the day two", "remove_day", {"day_number": 2}),
    ("Remove Tokyo Tower", "remove_place", {"name": "Tokyo Tower"}),
    ("Delete the museum from our trip", "remove_place", {"name": "museum"}),
    ("Set a budget", "ask_budget", {}),
    ("Ask me about our budget for this trip", "ask_budget", {}),
    ("Optimise day 1", "optimise_route", {"day_number": 1}),
    ("Optimize the route of day two", "optimise_route", {"day_number": 2}),
    ("Optimise the route", "optimise_route", {"day_number": None}),
    ("Move the museum to day two", "move_place", {"name": "museum", "day_number": 2}),
]


@pytest.mark.parametrize(("text", "tool", "arguments"), ONE_CALL)
def test_a_phrase_becomes_one_call(text: str, tool: str, arguments: dict[str, Any]) -> None:
    parsed = parse(text, TOOLS)
    assert parsed.steps == ((PlannedCall(tool, arguments),),)
    assert parsed.unclear == ()


def names(text: str) -> list[list[str]]:
    return [[call.name for call in step] for step in parse(text, TOOLS).steps]


def test_and_keeps_calls_in_one_step_and_then_begins_the_next() -> None:
    assert names("Show my trip and what is on day 2?") == [["list_places", "get_day"]]
    assert names("Add a day, then move Ueno Park to day 4 and show my trip") == [
        ["add_day"],
        ["move_place", "list_places"],
    ]
    assert names("Add a day. Show day 4") == [["add_day"], ["get_day"]]
    assert names("Swap Tokyo Tower and Ueno Park and then take the bus on day 1") == [
        ["swap_places"],
        ["set_transport"],
    ]
    assert names("Move A to day 1, move B to day 2, and add C") == [
        ["move_place", "move_place", "add_place"]
    ]


def test_every_example_of_the_help_is_understood() -> None:
    assert [example for example in EXAMPLES if not names(example)] == []
    assert [parse(example, TOOLS).unclear for example in EXAMPLES] == [()] * len(EXAMPLES)


def test_a_phrase_whose_tool_is_not_offered_is_not_understood() -> None:
    assert parse("Add a day", ["list_places"]).unclear == ("Add a day",)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def called(call_id: str, name: str) -> dict[str, Any]:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def result(call_id: str, **envelope: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": json.dumps(envelope)}


def test_an_unknown_sentence_gets_help_and_no_call() -> None:
    for text in ("Book me a flight", "", "!?"):
        reply = plan([{"role": "system", "content": "…"}, user(text)], TOOLS)
        assert reply.calls == ()
        assert "offline planner" in reply.text
        assert "Move Asakusa Temple to day 2" in reply.text


def test_a_half_understood_sentence_changes_nothing() -> None:
    reply = plan([user("Add a day, then take me to the moon")], TOOLS)
    assert reply.calls == ()
    assert "> take me to the moon" in reply.text


def test_a_wish_is_not_swallowed_by_the_name_of_a_place() -> None:
    for text in (
        "Add a day and book me a flight",
        "Add Meiji Shrine and book me a flight",
        "Remove Tokyo Tower and book me a flight",
    ):
        assert plan([user(text)], TOOLS).calls == ()


def test_steps_follow_one_another_and_end_in_an_answer() -> None:
    conversation = [user("Add a day, then show day 4")]
    first = plan(conversation, TOOLS)
    assert [call.name for call in first.calls] == ["add_day"]
    conversation += [
        called("a", "add_day"),
        result("a", tool_status="success", message="Added day 4."),
    ]
    second = plan(conversation, TOOLS)
    assert [call.name for call in second.calls] == ["get_day"]
    day: dict[str, Any] = {"number": 4, "transport": "walk", "places": []}
    conversation += [called("b", "get_day"), result("b", tool_status="success", data=day)]
    assert plan(conversation, TOOLS).text == (
        "- Added day 4.\n\n**Day 4**\n\nNothing is planned yet."
    )


def test_a_failed_step_ends_the_plan_and_is_told() -> None:
    reply = plan(
        [
            user("Move the museum to day 2, then add a day"),
            called("a", "move_place"),
            result(
                "a",
                tool_status="error",
                code="tool_rejected",
                message="More than one place fits: X Museum, Y Museum.",
                data={"ok": False, "candidates": ["X Museum", "Y Museum"]},
            ),
        ],
        TOOLS,
    )
    assert reply.calls == ()
    assert reply.text == (
        "- **Not done:** More than one place fits: X Museum, Y Museum. Please say its full name.\n"
        "- The last step was not carried out."
    )


def test_the_whole_trip_is_answered_in_markdown() -> None:
    trip = {
        "title": "Tokyo",
        "days": [
            {
                "number": 1,
                "transport": "walk",
                "places": [
                    {"name": "Asakusa Temple", "transport": "walk"},
                    {"name": "Tokyo Tower", "transport": "taxi"},
                ],
            }
        ],
        "unplanned": ["Odaiba Beach"],
    }
    messages = [
        user("Show my trip"),
        called("a", "list_places"),
        result("a", tool_status="success", data=trip),
    ]
    assert plan(messages, TOOLS).text == (
        "**Tokyo**\n\n**Day 1**\n\n1. Asakusa Temple (walk)\n2. Tokyo Tower (taxi)\n\n"
        "*Unplanned:* Odaiba Beach"
    )


def test_only_the_latest_request_counts() -> None:
    old = [
        user("Add a day"),
        called("a", "add_day"),
        result("a", tool_status="success", message="Added."),
    ]
    done = {"role": "assistant", "content": "- Added."}
    reply = plan([*old, done, user("Show my trip")], TOOLS)
    assert [call.name for call in reply.calls] == ["list_places"]


@pytest.mark.parametrize("content", ["", "no json", "[1]", '{"tool_status": "error"}'])
def test_an_unreadable_tool_message_is_a_failure_and_no_crash(content: str) -> None:
    messages = [user("Add a day"), called("a", "add_day"), {"role": "tool", "content": content}]
    assert plan(messages, TOOLS).text == "- **Not done:** the operation failed."


def test_preferences_are_asked_first_and_saved_with_the_answer() -> None:
    conversation = [user("Ask about my preferences")]
    (asked,) = plan(conversation, TOOLS).calls
    assert asked.name == "request_input"
    assert asked.arguments["kind"] == "form"
    conversation += [
        called("a", "request_input"),
        result("a", tool_status="success", data={"user_response": {"answers": {}}}),
    ]
    # It is offered only while there is an answer.
    (saved,) = plan(conversation, [*TOOLS, "save_preferences"]).calls
    assert (saved.name, saved.arguments) == ("save_preferences", {})


def test_a_title_is_asked_for_and_taken_from_the_answer() -> None:
    conversation = [user("Rename my trip")]
    (asked,) = plan(conversation, TOOLS).calls
    assert (asked.name, asked.arguments["kind"]) == ("request_input", "text")
    conversation += [
        called("a", "request_input"),
        result("a", tool_status="success", data={"user_response": "Spring in Tokyo"}),
    ]
    (renamed,) = plan(conversation, TOOLS).calls
    assert (renamed.name, renamed.arguments) == ("rename_trip", {"title": "Spring in Tokyo"})


def test_a_call_that_the_runtime_made_is_no_step_of_the_plan() -> None:
    conversation = [
        user("Move the museum to day 2, then add a day"),
        called("a", "move_place"),
        result("a", tool_status="success", data={"asked": True}, message="Which one?"),
        called("b", "resolve_place"),
        result("b", tool_status="success", message="Moved X Museum to day 2."),
    ]
    assert [call.name for call in plan(conversation, TOOLS).calls] == ["add_day"]


def test_an_itinerary_is_prepared_by_the_planner_where_no_host_did_it() -> None:
    conversation = [user("Day 1: Ueno Park\nDay 2: Tokyo Tower")]
    (prepared,) = plan(conversation, TOOLS).calls
    assert prepared.name == "prepare_import"
    data: dict[str, Any] = {"draft_id": "d", "revision": 4, "open_questions": 0}
    conversation += [called("a", "prepare_import"), result("a", tool_status="success", data=data)]
    (commit,) = plan(conversation, TOOLS).calls
    assert commit.name == "commit_import"
    assert commit.arguments == {"draft_id": "d", "expected_revision": 4}
    conversation += [
        called("b", "commit_import"),
        result("b", tool_status="success", message="Imported."),
    ]
    assert plan(conversation, TOOLS).text == "- Imported."


def test_an_itinerary_that_could_not_be_prepared_is_told() -> None:
    reply = plan(
        [
            user("Day 1: Ueno Park\nDay 2: Tokyo Tower"),
            called("a", "prepare_import"),
            result("a", tool_status="error", message="The trip is full."),
        ],
        TOOLS,
    )
    assert reply.text == "- **Not done:** The trip is full."
