"""Moving and swapping places. A name that fits several places is settled by the traveller.

The tool asks, not the model: the question, and what follows from each answer, are fixed here.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rungent import InteractionRequest, ToolContext, ToolContinuation, ToolResult, tool
from rungent.demo.access import (
    DayOrPool,
    OtherQuestion,
    PlaceName,
    changed,
    chosen,
    refused,
    services,
    trip_id,
    where,
)
from rungent.demo.edits import NAME_LIMIT
from rungent.demo.trip import AmbiguousPlace, Place, Trip, TripError

__all__ = ["move_place", "resolve_place", "swap_places"]

# A longer list is no help; a better name is.
_CANDIDATES_LIMIT = 12


@tool(effect="write", approval="never")
async def move_place(ctx: ToolContext, name: PlaceName, day_number: DayOrPool) -> ToolResult:
    """Move a place of the trip to the end of a day, or to the unplanned pool.

    When the name fits several places, the traveller is asked which one is meant.
    """
    try:
        trip = await services(ctx).trips.get(trip_id(ctx))
        if day_number is not None:
            # Before any question: an answer would be asked for in vain.
            trip.day(day_number)
    except TripError as refusal:
        return refused(refusal)
    try:
        trip.find(name)
    except AmbiguousPlace as several:
        return _which(trip, several, f"to move {where(day_number)}", {"day_number": day_number})
    except TripError as refusal:
        return refused(refusal)
    return await _move(ctx, name, day_number)


@tool(effect="write", approval="never")
async def swap_places(ctx: ToolContext, first: PlaceName, second: PlaceName) -> ToolResult:
    """Let two places of the trip change seats: day and order within the day.

    When a name fits several places, the traveller is asked which one is meant.
    """
    try:
        trip = await services(ctx).trips.get(trip_id(ctx))
    except TripError as refusal:
        return refused(refusal)
    try:
        one = trip.find(first).name
    except AmbiguousPlace as several:
        return _which(trip, several, "to swap", {"swap_with": second})
    except TripError as refusal:
        return refused(refusal)
    return await _swap(ctx, trip, one, second)


@tool(effect="write", approval="never", requires_interaction_response=True)
async def resolve_place(
    ctx: ToolContext,
    day_number: DayOrPool = None,
    swap_with: Annotated[
        str | None, Field(max_length=NAME_LIMIT, description="Swap with this place instead")
    ] = None,
) -> ToolResult:
    """Finish a move or a swap with the place that the traveller chose. Never call it yourself."""
    try:
        answer = chosen(ctx)
        trip = await services(ctx).trips.get(trip_id(ctx))
        if answer.option is None and answer.custom is None:
            return ToolResult(data={"skipped": True}, message="Left the trip as it was.")
        place = _exactly(trip, answer.option)
    except TripError as refusal:
        return refused(refusal)
    if swap_with is None:
        return await _move(ctx, place.name, day_number)
    return await _swap(ctx, trip, place.name, swap_with)


async def _move(ctx: ToolContext, name: str, day_number: int | None) -> ToolResult:
    change = services(ctx).trips.move_place(trip_id(ctx), name, day_number)
    return await changed(change, lambda trip: f"Moved {trip.find(name).name} {where(day_number)}.")


async def _swap(ctx: ToolContext, trip: Trip, one: str, other: str) -> ToolResult:
    """Swap a full name with a name that may still be ambiguous."""
    try:
        other = trip.find(other).name
    except AmbiguousPlace as several:
        left = tuple(name for name in several.candidates if name != one)
        if len(left) != 1:
            why = f"to swap with {one}"
            return _which(trip, AmbiguousPlace(left), why, {"swap_with": one})
        other = left[0]
    except TripError as refusal:
        return refused(refusal)
    change = services(ctx).trips.swap_places(trip_id(ctx), one, other)
    return await changed(change, lambda _: f"Swapped {one} and {other}.")


def _which(
    trip: Trip, several: AmbiguousPlace, why: str, arguments: dict[str, object]
) -> ToolResult:
    """Ask which of several places is meant; `resolve_place` goes on with these arguments."""
    if len(several.candidates) > _CANDIDATES_LIMIT:
        return refused(several)
    places = [_exactly(trip, name) for name in several.candidates]
    # A place that is there already is hardly the one to move there.
    elsewhere = [place for place in places if place.day_number != arguments.get("day_number")]
    hint = elsewhere[0] if "day_number" in arguments and len(elsewhere) == 1 else None
    return ToolResult(
        data={"asked": True, "candidates": list(several.candidates)},
        message="More than one place fits; asking which one is meant.",
        interaction=InteractionRequest(
            kind="choice",
            prompt=f"Which place is the one {why}?",
            options=[
                {
                    "id": place.name,
                    "label": place.name,
                    "description": _seat(place),
                    "recommended": place is hint,
                }
                for place in places
            ],
            allow_skip=True,
            skip_label="Leave the trip as it is",
            continuation=ToolContinuation("resolve_place", arguments),
        ),
    )


def _seat(place: Place) -> str:
    return "unplanned" if place.day_number is None else f"on day {place.day_number}"


def _exactly(trip: Trip, name: str | None) -> Place:
    """The place of this full name. Raises OtherQuestion when the trip has none."""
    for place in trip.places:
        if place.name == name:
            return place
    raise OtherQuestion
