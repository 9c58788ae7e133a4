"""What the tools share: the way to the services, the trip that is meant, and their results.

Which trip is meant comes from the session's resource, never from the model. A host with many
users would check in its service that `ctx.identity` may see that trip; the demo has one trip
and one user.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, JsonValue

from rungent import ToolContext, ToolResult
from rungent.demo.edits import NAME_LIMIT
from rungent.demo.seed import DEMO_TRIP_ID
from rungent.demo.services import Services
from rungent.demo.trip import AmbiguousPlace, Trip, TripError

__all__ = [
    "Choice",
    "DayNumber",
    "DayOrPool",
    "OtherQuestion",
    "PlaceName",
    "changed",
    "chosen",
    "key_of",
    "refused",
    "services",
    "trip_id",
    "where",
]

PlaceName = Annotated[str, Field(max_length=NAME_LIMIT, description="Full name of the place")]
DayNumber = Annotated[int, Field(description="Number of the day, counted from 1")]
DayOrPool = Annotated[
    int | None, Field(description="Number of the day, counted from 1; null for the unplanned pool")
]


class OtherQuestion(TripError):
    """The answer at hand belongs to another question than the tool needs."""

    code = "other_question"

    def __init__(self) -> None:
        super().__init__("That was the answer to another question.")


def services(ctx: ToolContext) -> Services:
    """The services that the host put into the deps."""
    found = ctx.deps["services"]
    if not isinstance(found, Services):
        raise TypeError("deps['services'] must be Services")
    return found


def trip_id(ctx: ToolContext) -> str:
    """The trip that the session is about; the demo trip when the session names none."""
    return str(ctx.resource.get("trip_id", DEMO_TRIP_ID))


def key_of(ctx: ToolContext) -> str:
    """A key for what this call creates: the same when the call is executed again."""
    return hashlib.sha256((ctx.idempotency_key or "").encode()).hexdigest()[:32]


async def changed(change: Awaitable[Trip], message: Callable[[Trip], str]) -> ToolResult:
    """Wait for a change and tell model, user and frontend about it.

    The frontend gets the revision: it knows that its copy of the trip is old, and nothing more.
    """
    try:
        trip = await change
    except TripError as refusal:
        return refused(refusal)
    return ToolResult(
        data={"revision": trip.revision},
        message=message(trip),
        public={"resource": "trip", "revision": trip.revision},
    )


def refused(refusal: TripError) -> ToolResult:
    """A refusal as a failing result: the model learns the reason and can do better."""
    data: dict[str, JsonValue] = {"ok": False, "code": refusal.code}
    if isinstance(refusal, AmbiguousPlace):
        data["candidates"] = list(refusal.candidates)
    return ToolResult(data=data, message=refusal.message)


def where(day_number: int | None) -> str:
    """A day or the pool, as part of a sentence."""
    return "to the unplanned places" if day_number is None else f"to day {day_number}"


@dataclass(frozen=True, slots=True)
class Choice:
    """The trusted answer to a single choice: an option, the traveller's own words, or neither."""

    option: str | None = None
    custom: str | None = None


def chosen(ctx: ToolContext) -> Choice:
    """The answer that this call was made with. Raises OtherQuestion for an answer to a form.

    It comes from the runtime, which checked it against the question; no model had a hand in it.
    """
    response = ctx.interaction_response
    value = None if response is None or response.kind != "choice" else response.value
    if not isinstance(value, dict):
        raise OtherQuestion
    selected, custom = value.get("selected"), value.get("custom")
    option = selected[0] if isinstance(selected, list) and selected else None
    return Choice(None if option is None else str(option), None if custom is None else str(custom))
