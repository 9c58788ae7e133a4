"""The baseline matrix of the trip assistant: what it must do, whichever model drives it.

Each case checks the trip itself, never the words. Source: docs/baselines.md#trip-planner.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from rungent.demo.budget import Budget
from rungent.demo.seed import DEMO_TRIP_ID, demo_trip
from rungent.demo.services import Services
from rungent.demo.trip import Trip
from rungent.llm import ModelCompleted, ToolCall
from rungent.testing import BaselineCase, BaselineContext

__all__ = ["FLAKY", "LIVE", "MATRIX", "SCRIPTS"]

State = Callable[[BaselineContext], Awaitable[None]]


def state(check: Callable[[Trip], object], what: str) -> State:
    """The trip is as `check` says."""

    async def right(ctx: BaselineContext) -> None:
        services: Services = ctx.deps["services"]
        trip = await services.trips.get(DEMO_TRIP_ID)
        assert check(trip), f"{what}; the trip: {trip}"

    return right


def on_day(name: str, day: int | None) -> State:
    """The place is on this day."""
    return state(lambda trip: trip.find(name).day_number == day, f"{name} is not on day {day}")


def has_days(count: int) -> State:
    """The trip has so many days."""
    return state(lambda trip: len(trip.days) == count, f"there are not {count} days")


def goes_by(day: int, mode: str) -> State:
    """The day has this transport."""
    return state(lambda trip: trip.day(day).transport == mode, f"day {day} does not go by {mode}")


async def unchanged(ctx: BaselineContext) -> None:
    """Nothing was changed, whatever was said."""
    services: Services = ctx.deps["services"]
    trip = await services.trips.get(DEMO_TRIP_ID)
    assert trip == demo_trip(), f"the trip was changed: {trip}"


async def failed_openly(ctx: BaselineContext) -> None:
    """The tool refused, and nothing was changed."""
    await unchanged(ctx)
    assert any(event.type == "tool.failed" for event in ctx.events), "no tool refused"


async def retried(ctx: BaselineContext) -> None:
    """The model was asked again, and the change was made once."""
    assert any(event.type == "model.retrying" for event in ctx.events), "nothing was retried"
    await has_days(4)(ctx)


async def preferences_kept(ctx: BaselineContext) -> None:
    """What was answered in the form is stored."""
    services: Services = ctx.deps["services"]
    kept = await services.preferences.get(DEMO_TRIP_ID)
    assert kept is not None, "nothing was saved"
    assert "relaxed" in kept.describe(), kept.describe()


BUDGET: dict[str, Any] = {"amount": 150_000, "per_person": True}
FORM: dict[str, Any] = {
    "answers": {"pace": {"selected": ["relaxed"]}, "interests": {"selected": ["museums"]}}
}
HELICOPTER = "Go to Tokyo Tower by helicopter, or else by taxi"
AND_THEN = "And now to day 3"
FOREVER = "Look at day 1 until I say stop"
FLAKY_TEXT = "Add a day"

PLACES = (
    BaselineCase(
        "add a place",
        "Add Meiji Shrine to day 1",
        expected_tools=("add_place",),
        assert_state=on_day("Meiji Shrine", 1),
    ),
    BaselineCase(
        "remove a place",
        "Remove Tokyo Tower",
        expected_tools=("remove_place",),
        expected_interactions=("approval",),
        responses=("approve",),
        assert_state=state(
            lambda trip: all(p.name != "Tokyo Tower" for p in trip.places), "it is still there"
        ),
    ),
    BaselineCase(
        "move a place",
        "Move Asakusa Temple to day 2",
        expected_tools=("move_place",),
        assert_state=on_day("Asakusa Temple", 2),
    ),
    BaselineCase(
        "swap two places",
        "Swap Tokyo Tower and Ueno Park",
        expected_tools=("swap_places",),
        assert_state=on_day("Tokyo Tower", 3),
    ),
    BaselineCase(
        "an ambiguous place is asked for",
        "Move the museum to day 3",
        expected_tools=("move_place", "resolve_place"),
        expected_interactions=("choice",),
        responses=("Ghibli Museum",),
        assert_state=on_day("Ghibli Museum", 3),
    ),
)
DAYS = (
    BaselineCase(
        "add a day",
        "Add another day",
        expected_tools=("add_day",),
        assert_state=has_days(4),
    ),
    BaselineCase(
        "remove a day with approval",
        "Delete day 3",
        expected_tools=("remove_day",),
        expected_interactions=("approval",),
        responses=("approve",),
        assert_state=has_days(2),
    ),
    BaselineCase(
        "a day that does not exist",
        "Move Tokyo Tower to day 9",
        expected_tools=("move_place",),
        tool_match="contains",
        assert_state=failed_openly,
    ),
)
TRANSPORT = (
    *(
        BaselineCase(
            f"go by {mode}",
            f"Set the transport of day 3 to {mode}",
            expected_tools=("set_transport",),
            assert_state=goes_by(3, mode),
        )
        for mode in ("train", "taxi", "bus", "walk")
    ),
    BaselineCase(
        "an invalid mode is corrected",
        HELICOPTER,
        expected_tools=("set_transport",),
        tool_match="contains",
        assert_state=state(
            lambda trip: trip.find("Tokyo Tower").transport == "taxi", "the way is not by taxi"
        ),
    ),
)
REST = (
    BaselineCase(
        "a short follow-up means what was chosen before",
        "Move the museum to day 2",
        followups=(AND_THEN,),
        expected_tools=("move_place", "resolve_place", "move_place"),
        expected_interactions=("choice",),
        responses=("Edo-Tokyo Museum",),
        assert_state=on_day("Edo-Tokyo Museum", 3),
    ),
    BaselineCase(
        "a rejection changes nothing",
        "Delete day 2",
        expected_interactions=("approval",),
        responses=("reject",),
        assert_state=unchanged,
    ),
    BaselineCase(
        "a tool error is no success",
        "Move the Eiffel Tower to day 1",
        expected_tools=("move_place",),
        tool_match="contains",
        assert_state=failed_openly,
    ),
    BaselineCase(
        "the same request twice has one effect",
        "Take the train on day 1",
        followups=("Take the train on day 1",),
        expected_tools=("set_transport",),
        tool_match="contains",
        assert_state=goes_by(1, "train"),
    ),
    BaselineCase(
        "grouped questions are one form",
        "Set my preferences",
        expected_tools=("save_preferences",),
        expected_interactions=("form",),
        responses=(FORM,),
        assert_state=preferences_kept,
    ),
    BaselineCase(
        "the budget is the traveller's answer",
        "Set a budget",
        expected_tools=("ask_budget",),
        expected_interactions=("data",),
        responses=(BUDGET,),
        assert_state=state(lambda trip: trip.budget == Budget(**BUDGET), "it is not kept"),
    ),
    BaselineCase(
        "a failure of the provider is passed over",
        FLAKY_TEXT,
        expected_tools=("add_day",),
        assert_state=retried,
    ),
)
ENDLESS = BaselineCase(
    "a run without end is ended",
    FOREVER,
    expected_tools=("get_day",) * 16,
    expected_status="failed",
    assert_state=unchanged,
)

LIVE = (*PLACES, *DAYS, *TRANSPORT, *REST)
"""The cases for real models."""

MATRIX = (*LIVE, ENDLESS)
"""All cases: a model that never comes to an end has to be a script."""


def calling(name: str, /, **arguments: Any) -> ModelCompleted:
    """A reply with one call."""
    return ModelCompleted(tool_calls=(ToolCall(name, arguments),))


SCRIPTS = {
    HELICOPTER: (
        calling("set_transport", mode="helicopter", to_place="Tokyo Tower"),
        calling("set_transport", mode="taxi", to_place="Tokyo Tower"),
        "By taxi, then.",
    ),
    AND_THEN: (calling("move_place", name="Edo-Tokyo Museum", day_number=3), "It is on day 3."),
    FOREVER: (calling("get_day", day_number=1),),
}
"""What the offline planner has no phrases for."""

FLAKY = (FLAKY_TEXT,)
"""The texts after which the provider fails once, whichever model is used."""
