"""The tools over a real service: what model, user and frontend get to see."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from rungent import Identity, ToolContext, ToolResult, TrustedInteractionResponse
from rungent.demo import import_tools, journey_tools, place_tools, tools
from rungent.demo.agent import current_trip, describe_run, trip_agent
from rungent.demo.seed import DEMO_TRIP_ID, demo_trip
from rungent.demo.services import Services
from rungent.demo.tables import Database, trip_engine


@asynccontextmanager
async def context(**resource: Any) -> AsyncIterator[ToolContext]:
    engine = trip_engine(None)
    database = Database(engine)
    await database.create_schema()
    services = Services.of(database)
    await services.trips.add_if_missing(demo_trip())
    yield ToolContext.create(
        identity=Identity("demo"),
        session_id="ses_1",
        run_id="run_1",
        resource=resource,
        deps={"services": services},
    )
    engine.dispose()


def changed(message: str) -> ToolResult:
    return ToolResult(
        data={"revision": 2}, message=message, public={"resource": "trip", "revision": 2}
    )


async def test_every_change_tells_model_user_and_frontend() -> None:
    expected: list[tuple[Any, dict[str, Any], str]] = [
        (
            place_tools.move_place,
            {"name": "asakusa", "day_number": 2},
            "Moved Asakusa Temple to day 2.",
        ),
        (
            place_tools.move_place,
            {"name": "Ueno Park", "day_number": None},
            "Moved Ueno Park to the unplanned places.",
        ),
        (
            tools.add_place,
            {"name": " Meiji  Shrine", "day_number": 1},
            "Added Meiji Shrine to day 1.",
        ),
        (
            place_tools.swap_places,
            {"first": "tower", "second": "park"},
            "Swapped Tokyo Tower and Ueno Park.",
        ),
        (
            tools.set_transport,
            {"mode": "bus", "day_number": 1},
            "Set the transport of day 1 to bus.",
        ),
        (
            tools.set_transport,
            {"mode": "taxi", "to_place": "tower"},
            "Set the transport of the way to Tokyo Tower to taxi.",
        ),
        (tools.add_day, {}, "Added day 4."),
        (tools.rename_trip, {"title": "Spring"}, "The trip is now called Spring."),
    ]
    for tool, arguments, message in expected:
        async with context(trip_id=DEMO_TRIP_ID) as ctx:
            assert await tool(ctx, **arguments) == changed(message)


async def test_reads_give_the_trip_and_one_day() -> None:
    async with context() as ctx:
        whole = await tools.list_places(ctx)
        day = await tools.get_day(ctx, 2)
    assert whole.data["title"] == "Tokyo, three days"
    assert day.data == whole.data["days"][1]
    assert whole.succeeded
    assert whole.message is None


async def test_a_refusal_is_a_failing_result_and_names_the_candidates() -> None:
    async with context() as ctx:
        refused = await tools.set_transport(ctx, "bus", to_place="museum")
    assert refused == ToolResult(
        data={
            "ok": False,
            "code": "ambiguous_place",
            "candidates": ["Edo-Tokyo Museum", "Ghibli Museum"],
        },
        message="More than one place fits: Edo-Tokyo Museum, Ghibli Museum.",
    )
    assert not refused.succeeded


async def test_a_name_that_fits_too_many_places_is_refused_and_not_asked() -> None:
    async with context() as ctx:
        for number in range(13):
            await tools.add_place(ctx, f"Shop {number}", 1)
        assert not (await place_tools.move_place(ctx, "shop", 2)).succeeded
        assert (await place_tools.move_place(ctx, "museum", 2)).interaction is not None


async def test_every_tool_refuses_a_trip_that_is_not_there() -> None:
    arguments: dict[str, dict[str, Any]] = {
        "list_places": {},
        "get_day": {"day_number": 1},
        "add_place": {"name": "x", "day_number": 1},
        "move_place": {"name": "x", "day_number": 1},
        "swap_places": {"first": "x", "second": "y"},
        "set_transport": {"mode": "bus", "day_number": 1},
        "add_day": {},
        "rename_trip": {"title": "x"},
        "ask_budget": {},
        "remove_day": {"day_number": 1},
        "remove_place": {"name": "x"},
        "prepare_import": {"text": "Day 1: x"},
        "commit_import": {"draft_id": "x", "expected_revision": 1},
        "optimise_route": {},
        "save_preferences": {},
        "resolve_place": {},
        "answer_import": {"draft_id": "x", "index": 0},
    }
    answers: dict[str, Any] = {
        "pace": {"selected": ["normal"]},
        "interests": {"selected": ["food"]},
    }
    form = TrustedInteractionResponse("int_1", "form", "?", {"answers": answers})
    choice = TrustedInteractionResponse("int_1", "choice", "?", {"selected": ["x"]})
    async with context(trip_id="elsewhere") as plain:
        for tool in tools.TRIP_TOOLS:
            answer = form if tool.name == "save_preferences" else choice
            ctx = replace(plain, interaction_response=answer)
            result = await tool(ctx, **arguments.pop(tool.name))
            assert result.data == {"ok": False, "code": "trip_not_found"}
        assert await current_trip(plain) == "There is no such trip."
    assert arguments == {}


async def test_the_model_sees_the_trip_as_it_is_at_each_step() -> None:
    async with context() as ctx:
        before = await current_trip(ctx)
        await place_tools.move_place(ctx, "Odaiba Beach", 1)
        after = await current_trip(ctx)
    assert before.endswith("Unplanned: Odaiba Beach")
    assert after.endswith("Unplanned: nothing")


async def test_the_activity_states_facts_and_does_not_repeat_the_request() -> None:
    async with context() as ctx:
        activity = describe_run(ctx, "canary-4711")
    assert "canary" not in repr(activity)
    assert activity.public == {"resource": "trip", "trip_id": DEMO_TRIP_ID}


def test_only_reads_run_in_parallel_and_what_cannot_be_undone_needs_approval() -> None:
    effects = {tool.name: str(tool.effect) for tool in trip_agent.tools}
    assert [name for name, effect in effects.items() if effect == "read"] == [
        "list_places",
        "get_day",
    ]
    assert {tool.name for tool in trip_agent.tools if tool.parallel} == {"list_places", "get_day"}
    assert {tool.name for tool in trip_agent.tools if tool.approval == "always"} == {
        "remove_day",
        "remove_place",
        "commit_import",
    }
    hidden = {tool.name for tool in trip_agent.tools if tool.requires_interaction_response}
    assert hidden == {"save_preferences", "resolve_place", "answer_import"}


async def test_the_answer_to_another_question_settles_nothing() -> None:
    answers = TrustedInteractionResponse("int_1", "form", "?", {"answers": {}})
    async with context() as plain:
        ctx = replace(plain, interaction_response=answers)
        before = await current_trip(ctx)
        staged = await import_tools.prepare_import(ctx, "Day 1: museum")
        draft_id = staged.data["draft_id"]
        for result in (
            await place_tools.resolve_place(ctx, 2),
            await journey_tools.save_preferences(ctx),
            await import_tools.answer_import(ctx, draft_id, 0),
        ):
            assert result.data == {"ok": False, "code": "other_question"}
        choice = TrustedInteractionResponse("int_1", "choice", "?", {"selected": ["Ueno Park"]})
        ctx = replace(plain, interaction_response=choice)
        assert not (await import_tools.answer_import(ctx, draft_id, 0)).succeeded
        assert not (await import_tools.answer_import(ctx, draft_id, 5)).succeeded
        assert await current_trip(ctx) == before


async def test_known_preferences_are_part_of_the_context() -> None:
    answers: dict[str, Any] = {
        "pace": {"selected": ["normal"]},
        "interests": {"selected": ["food"]},
    }
    form = TrustedInteractionResponse("int_1", "form", "?", {"answers": answers})
    async with context() as plain:
        ctx = replace(plain, interaction_response=form)
        assert (await journey_tools.save_preferences(ctx)).succeeded
        assert (await current_trip(ctx)).endswith("Preferences: normal pace; interests: food")


def test_schemas_describe_every_argument() -> None:
    for tool in trip_agent.tools:
        for name, schema in tool.schema["properties"].items():
            assert schema.get("description"), (tool.name, name)
    assert tools.set_transport.schema["properties"]["mode"]["enum"] == [
        "walk",
        "train",
        "taxi",
        "bus",
    ]


async def test_a_wrong_service_is_a_mistake_of_the_host() -> None:
    ctx = ToolContext.create(
        identity=Identity("demo"), session_id="s", run_id="r", deps={"services": object()}
    )
    with pytest.raises(TypeError, match="Services"):
        await tools.add_day(ctx)
