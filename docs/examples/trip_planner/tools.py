"""The tools of the trip assistant: reads and plain changes here, the rest by what they show.

A refusal of a service is a failing result with a public message, never an exception: the model
learns the reason and can do better.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rungent import ToolContext, ToolResult, tool
from rungent.demo.access import (
    DayNumber,
    DayOrPool,
    PlaceName,
    changed,
    refused,
    services,
    trip_id,
    where,
)
from rungent.demo.budget_tools import ask_budget
from rungent.demo.edits import NAME_LIMIT, TITLE_LIMIT
from rungent.demo.import_tools import answer_import, commit_import, prepare_import
from rungent.demo.journey_tools import optimise_route, save_preferences
from rungent.demo.place_tools import move_place, resolve_place, swap_places
from rungent.demo.removal_tools import remove_day, remove_place
from rungent.demo.trip import Transport, Trip, TripError, day_data, trip_data

__all__ = ["TRIP_TOOLS"]


@tool(effect="read", approval="never", parallel=True)
async def list_places(ctx: ToolContext) -> ToolResult:
    """Show the whole trip: every day with its places in order, and the unplanned places."""
    try:
        return ToolResult(data=trip_data(await services(ctx).trips.get(trip_id(ctx))))
    except TripError as refusal:
        return refused(refusal)


@tool(effect="read", approval="never", parallel=True)
async def get_day(ctx: ToolContext, day_number: DayNumber) -> ToolResult:
    """Show one day: its transport and its places in order."""
    try:
        return ToolResult(data=day_data(await services(ctx).trips.get(trip_id(ctx)), day_number))
    except TripError as refusal:
        return refused(refusal)


@tool(effect="write", approval="never")
async def add_place(ctx: ToolContext, name: PlaceName, day_number: DayOrPool) -> ToolResult:
    """Add a new place at the end of a day, or to the unplanned pool."""
    change = services(ctx).trips.add_place(trip_id(ctx), name, day_number)
    return await changed(change, lambda trip: f"Added {trip.find(name).name} {where(day_number)}.")


@tool(effect="write", approval="never")
async def set_transport(
    ctx: ToolContext,
    mode: Annotated[Transport, Field(description="How to get around")],
    day_number: Annotated[int | None, Field(description="A whole day, counted from 1")] = None,
    to_place: Annotated[
        str | None, Field(max_length=NAME_LIMIT, description="Only the way to this place")
    ] = None,
) -> ToolResult:
    """Set the transport of a whole day, or of the way to one place. Give exactly one of both."""
    change = services(ctx).trips.set_transport(
        trip_id(ctx), mode, day_number=day_number, to_place=to_place
    )

    def message(trip: Trip) -> str:
        goal = f"day {day_number}" if to_place is None else f"the way to {trip.find(to_place).name}"
        return f"Set the transport of {goal} to {mode}."

    return await changed(change, message)


@tool(effect="write", approval="never")
async def add_day(ctx: ToolContext) -> ToolResult:
    """Add an empty day at the end of the trip."""
    change = services(ctx).trips.add_day(trip_id(ctx))
    return await changed(change, lambda trip: f"Added day {len(trip.days)}.")


@tool(effect="write", approval="never")
async def rename_trip(
    ctx: ToolContext,
    title: Annotated[str, Field(max_length=TITLE_LIMIT, description="The new title")],
) -> ToolResult:
    """Give the trip another title."""
    change = services(ctx).trips.rename(trip_id(ctx), title)
    return await changed(change, lambda trip: f"The trip is now called {trip.title}.")


TRIP_TOOLS = (
    list_places,
    get_day,
    add_place,
    move_place,
    swap_places,
    set_transport,
    add_day,
    rename_trip,
    ask_budget,
    remove_day,
    remove_place,
    prepare_import,
    commit_import,
    optimise_route,
    save_preferences,
    # Only made by the runtime, with the answer to a question of another tool.
    resolve_place,
    answer_import,
)
