"""Preferences from a form of the model, and routes that a worker optimises meanwhile."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rungent import DeferredRequest, ToolContext, ToolResult, tool
from rungent.demo.access import key_of, refused, services, trip_id
from rungent.demo.jobs import Job, days_worth_optimising
from rungent.demo.preferences import read_form
from rungent.demo.trip import TripError

__all__ = ["optimise_route", "save_preferences"]


@tool(effect="write", approval="never", requires_interaction_response=True, idempotent=True)
async def save_preferences(ctx: ToolContext) -> ToolResult:
    """Save the traveller's answers to the form about preferences that you asked just before."""
    response = ctx.interaction_response
    try:
        # No arguments: what is saved is what the traveller said, not what a model makes of it.
        preferences = read_form(None if response is None else response.value)
        await services(ctx).preferences.save(trip_id(ctx), preferences)
    except TripError as refusal:
        return refused(refusal)
    said = preferences.describe()
    return ToolResult(data={"preferences": said}, message="Saved your preferences.")


@tool(effect="external", approval="never", idempotent=True)
async def optimise_route(
    ctx: ToolContext,
    day_number: Annotated[
        int | None, Field(description="Number of the day, counted from 1; null for every day")
    ] = None,
) -> ToolResult:
    """Put the places of a day, or of every day, into the order with the shortest way."""
    try:
        trip = await services(ctx).trips.get(trip_id(ctx))
        days = days_worth_optimising(trip, day_number)
    except TripError as refusal:
        return refused(refusal)
    which = "every day" if day_number is None else f"day {day_number}"
    if not days:
        return ToolResult(message=f"There is nothing to optimise: too few places on {which}.")
    task_id = f"route-{key_of(ctx)}"
    await services(ctx).jobs.add(Job(task_id, trip.id, ctx.run_id, ctx.identity, day_number))
    return ToolResult(
        deferred=DeferredRequest(
            task_id, f"Optimising the route of {which}", public={"days": list(days)}
        )
    )
