"""The tools of the trip assistant: typed, each with its effect, over the trip service.

A refusal of the service is a failing result with a public message, never an exception: the
model learns the reason and can do better. Which trip is meant comes from the session's
resource, never from the model. A host with many users would check in its service that
`ctx.identity` may see that trip; the demo has one trip and one user.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from pydantic import Field, JsonValue

from rungent import ToolContext, ToolResult, tool
from rungent.demo.edits import NAME_LIMIT, TITLE_LIMIT
from rungent.demo.seed import DEMO_TRIP_ID
from rungent.demo.service import TripService
from rungent.demo.trip import AmbiguousPlace, Transport, Trip, TripError, day_data, trip_data

__all__ = ["TRIP_TOOLS", "trip_id", "trips"]

PlaceName = Annotated[str, Field(max_length=NAME_LIMIT, description="Full name of the place")]
DayNumber = Annotated[int, Field(description="Number of the day, counted from 1")]
DayOrPool = Annotated[
    int | None, Field(description="Number of the day, counted from 1; null for the unplanned pool")
]


def trips(ctx: ToolContext) -> TripService:
    """The trip service that the host put into the deps."""
    service = ctx.deps["trips"]
    if not isinstance(service, TripService):
        raise TypeError("deps['trips'] must be a TripService")
    return service


def trip_id(ctx: ToolContext) -> str:
    """The trip that the session is about; the demo trip when the session names none."""
    return str(ctx.resource.get("trip_id", DEMO_TRIP_ID))


async def _changed(change: Awaitable[Trip], message: Callable[[Trip], str]) -> ToolResult:
    """Wait for a change and tell model, user and frontend about it.

    The frontend gets the revision: it knows that its copy of the trip is old, and nothing more.
    """
    try:
        trip = await change
    except TripError as refusal:
        return _refused(refusal)
    return ToolResult(
        data={"revision": trip.revision},
        message=message(trip),
        public={"resource": "trip", "revision": trip.revision},
    )


def _refused(refusal: TripError) -> ToolResult:
    data: dict[str, JsonValue] = {"ok": False, "code": refusal.code}
    if isinstance(refusal, AmbiguousPlace):
        data["candidates"] = list(refusal.candidates)
    return ToolResult(data=data, message=refusal.message)


def _to(day_number: int | None) -> str:
    return "to the unplanned places" if day_number is None else f"to day {day_number}"


@tool(effect="read", approval="never", parallel=True)
async def list_places(ctx: ToolContext) -> ToolResult:
    """Show the whole trip: every day with its places in order, and the unplanned places."""
    try:
        return ToolResult(data=trip_data(await trips(ctx).get(trip_id(ctx))))
    except TripError as refusal:
        return _refused(refusal)


@tool(effect="read", approval="never", parallel=True)
async def get_day(ctx: ToolContext, day_number: DayNumber) -> ToolResult:
    """Show one day: its transport and its places in order."""
    try:
        return ToolResult(data=day_data(await trips(ctx).get(trip_id(ctx)), day_number))
    except TripError as refusal:
        return _refused(refusal)


@tool(effect="write", approval="never")
async def add_place(ctx: ToolContext, name: PlaceName, day_number: DayOrPool) -> ToolResult:
    """Add a new place at the end of a day, or to the unplanned pool."""
    change = trips(ctx).add_place(trip_id(ctx), name, day_number)
    return await _changed(change, lambda trip: f"Added {trip.find(name).name} {_to(day_number)}.")


@tool(effect="write", approval="never")
async def move_place(ctx: ToolContext, name: PlaceName, day_number: DayOrPool) -> ToolResult:
    """Move a place of the trip to the end of a day, or to the unplanned pool."""
    change = trips(ctx).move_place(trip_id(ctx), name, day_number)
    return await _changed(change, lambda trip: f"Moved {trip.find(name).name} {_to(day_number)}.")


@tool(effect="write", approval="never")
async def swap_places(ctx: ToolContext, first: PlaceName, second: PlaceName) -> ToolResult:
    """Let two places of the trip change seats: day and order within the day."""
    change = trips(ctx).swap_places(trip_id(ctx), first, second)
    return await _changed(
        change, lambda trip: f"Swapped {trip.find(first).name} and {trip.find(second).name}."
    )


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
    change = trips(ctx).set_transport(trip_id(ctx), mode, day_number=day_number, to_place=to_place)

    def message(trip: Trip) -> str:
        goal = f"day {day_number}" if to_place is None else f"the way to {trip.find(to_place).name}"
        return f"Set the transport of {goal} to {mode}."

    return await _changed(change, message)


@tool(effect="write", approval="never")
async def add_day(ctx: ToolContext) -> ToolResult:
    """Add an empty day at the end of the trip."""
    change = trips(ctx).add_day(trip_id(ctx))
    return await _changed(change, lambda trip: f"Added day {len(trip.days)}.")


@tool(effect="write", approval="never")
async def rename_trip(
    ctx: ToolContext,
    title: Annotated[str, Field(max_length=TITLE_LIMIT, description="The new title")],
) -> ToolResult:
    """Give the trip another title."""
    change = trips(ctx).rename(trip_id(ctx), title)
    return await _changed(change, lambda trip: f"The trip is now called {trip.title}.")


TRIP_TOOLS = (
    list_places,
    get_day,
    add_place,
    move_place,
    swap_places,
    set_transport,
    add_day,
    rename_trip,
)
