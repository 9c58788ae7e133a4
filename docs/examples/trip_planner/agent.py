"""The trip assistant: one agent with its rules, its tools, and what it knows at each step."""

from __future__ import annotations

from pathlib import Path

from rungent import Agent, RunActivity, ToolContext
from rungent.demo.access import services, trip_id
from rungent.demo.import_tools import recognise_itinerary
from rungent.demo.itinerary import looks_like_itinerary
from rungent.demo.tools import TRIP_TOOLS
from rungent.demo.trip import TripError

__all__ = ["AGENT_NAME", "trip_agent"]

AGENT_NAME = "trip_planner"


async def current_trip(ctx: ToolContext) -> str:
    """The trip as it is now, for every model step: the conversation only knows how it was."""
    try:
        trip = await services(ctx).trips.snapshot(trip_id(ctx))
    except TripError as refusal:
        return refusal.message
    preferences = await services(ctx).preferences.get(trip_id(ctx))
    return trip if preferences is None else f"{trip}\nPreferences: {preferences.describe()}"


def describe_run(ctx: ToolContext, content: str) -> RunActivity:
    """What the user sees before the model says anything: facts, and no promise."""
    pasted = looks_like_itinerary(content)
    return RunActivity(
        message="Reading the pasted itinerary" if pasted else "Reading the request and the trip",
        waiting_message="Waiting for the assistant; the trip is unchanged so far",
        long_wait_message="Still waiting for the assistant; the trip is unchanged so far",
        continuation_message="Working out the next step",
        public={"resource": "trip", "trip_id": trip_id(ctx)},
    )


trip_agent = Agent.from_markdown(
    name=AGENT_NAME,
    instructions=Path(__file__).with_name("instructions.md"),
    tools=TRIP_TOOLS,
    context=current_trip,
    run_activity=describe_run,
    run_initializer=recognise_itinerary,
)
