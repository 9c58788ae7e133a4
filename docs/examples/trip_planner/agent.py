"""The trip assistant: one agent with its rules, its tools, and what it knows at each step."""

from __future__ import annotations

from pathlib import Path

from rungent import Agent, RunActivity, ToolContext
from rungent.demo.tools import TRIP_TOOLS, trip_id, trips
from rungent.demo.trip import TripError

__all__ = ["AGENT_NAME", "trip_agent"]

AGENT_NAME = "trip_planner"


async def current_trip(ctx: ToolContext) -> str:
    """The trip as it is now, for every model step: the conversation only knows how it was."""
    try:
        return await trips(ctx).snapshot(trip_id(ctx))
    except TripError as refusal:
        return refusal.message


def describe_run(ctx: ToolContext, content: str) -> RunActivity:
    """What the user sees before the model says anything: facts, and no promise."""
    del content
    return RunActivity(
        message="Reading the request and the current trip",
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
)
