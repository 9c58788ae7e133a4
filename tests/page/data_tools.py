"""Tools that ask for data: every type of field, and a shape that no simple form can ask for."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, Field, field_validator

from rungent import Agent, Runtime, ToolContext, ToolResult, tool
from rungent.demo.services import Services
from rungent.llm import Model
from rungent.store import Store

__all__ = ["asking_for_data"]


class Stay(BaseModel):
    """A night somewhere."""

    hotel: Annotated[str, Field(min_length=2, max_length=12, description="Its short name")]
    stars: Literal[3, 4, 5]
    breakfast: bool
    late: Annotated[bool, Field(title="After midnight")] = True
    price: Annotated[float, Field(ge=0.5)]
    nights: Annotated[int, Field(ge=1, le=9)] = 2
    arrival: date
    note: str | None = None

    @field_validator("hotel")
    @classmethod
    def is_free(cls, hotel: str) -> str:
        """A rule that no schema tells."""
        if hotel == "Full":
            raise ValueError("canary-4711")
        return hotel


class Stop(BaseModel):
    """One place and its minutes."""

    place: str
    minutes: Annotated[int, Field(ge=1)]


class Stops(BaseModel):
    """All stops, in order."""

    stops: Annotated[list[Stop], Field(min_length=1)]


@tool(effect="write", approval="never")
async def ask_stay(ctx: ToolContext) -> ToolResult:
    """Ask for a stay."""
    return ToolResult(interaction=ctx.ask(Stay, prompt="Where will you stay?").keep())


@ask_stay.answered
async def ask_stay_answered(ctx: ToolContext, answer: Stay) -> ToolResult:
    """Tell what was said."""
    del ctx
    return ToolResult(data=answer.model_dump(mode="json"))


@tool(effect="write", approval="never")
async def ask_stops(ctx: ToolContext) -> ToolResult:
    """Ask for stops."""
    return ToolResult(interaction=ctx.ask(Stops, prompt="Which stops?").keep())


@ask_stops.answered
async def ask_stops_answered(ctx: ToolContext, answer: Stops) -> ToolResult:
    """Tell what was said."""
    del ctx
    return ToolResult(data=answer.model_dump(mode="json"))


def asking_for_data(store: Store, model: Model, services: Services) -> Runtime:
    """A runtime whose only agent has these tools."""
    agent = Agent(name="asker", instructions="Ask.", tools=[ask_stay, ask_stops])
    return Runtime(
        agents=[agent],
        model=model,
        store=store,
        dependency_provider=lambda session, run: {"services": services},
    )
