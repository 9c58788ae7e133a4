"""Importing a pasted itinerary: stage it, ask about what is unclear, apply it at once.

One staged operation instead of a long row of small changes: the trip is as it was until the
traveller has seen the whole difference and approved it.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, JsonValue

from rungent import InteractionRequest, ToolCall, ToolContext, ToolContinuation, ToolResult, tool
from rungent.demo.access import (
    Choice,
    OtherQuestion,
    changed,
    chosen,
    key_of,
    refused,
    services,
    trip_id,
)
from rungent.demo.drafts import Draft, DraftNotFound, Entry, RevisionConflict, compare
from rungent.demo.edits import NAME_LIMIT
from rungent.demo.itinerary import looks_like_itinerary
from rungent.demo.trip import InvalidName, Trip, TripError

__all__ = ["answer_import", "commit_import", "prepare_import", "recognise_itinerary"]

DraftId = Annotated[str, Field(max_length=64, description="Id of the prepared import")]
ADD = "add"


def recognise_itinerary(ctx: ToolContext, content: str) -> ToolCall | None:
    """The first call of a run whose message is a pasted itinerary: no model has to copy it."""
    del ctx
    return ToolCall("prepare_import", {"text": content}) if looks_like_itinerary(content) else None


@tool(effect="write", approval="never", idempotent=True)
async def prepare_import(
    ctx: ToolContext,
    text: Annotated[str, Field(description="The itinerary, one line “Day 1: …” for each day")],
) -> ToolResult:
    """Stage an itinerary without changing the trip; the traveller is asked what is unclear."""
    try:
        return _staged(*await services(ctx).imports.prepare(trip_id(ctx), key_of(ctx), text))
    except TripError as refusal:
        return refused(refusal)


@tool(effect="write", approval="never", idempotent=True, requires_interaction_response=True)
async def answer_import(
    ctx: ToolContext,
    draft_id: DraftId,
    index: Annotated[int, Field(description="Which line the answer is about")],
) -> ToolResult:
    """Settle a line of a prepared import with the traveller's answer. Never call it yourself."""
    imports = services(ctx).imports
    try:
        draft, _ = await imports.get(trip_id(ctx), draft_id)
        if not 0 <= index < len(draft.entries):
            raise DraftNotFound
        name = _meant(draft.entries[index], chosen(ctx))
        return _staged(*await imports.settle(trip_id(ctx), draft_id, index, name))
    except TripError as refusal:
        return refused(refusal)


async def preview_import(ctx: ToolContext, draft_id: str, expected_revision: int) -> str:
    """The whole difference. Raises TripError."""
    draft, trip = await services(ctx).imports.get(trip_id(ctx), draft_id)
    if not trip.revision == expected_revision == draft.revision:
        raise RevisionConflict
    diff = compare(trip, draft.entries)
    return f"Import the itinerary into {trip.title}? {diff.summary()}:\n{diff.describe()}"


@tool(effect="write", approval="always", confirmation=preview_import, idempotent=True)
async def commit_import(
    ctx: ToolContext,
    draft_id: DraftId,
    expected_revision: Annotated[int, Field(description="The trip's revision of the import")],
) -> ToolResult:
    """Apply a prepared import as a whole, once no question is open. The user is asked.

    It fails when the trip has changed since the import was prepared.
    """
    change = services(ctx).imports.commit(trip_id(ctx), draft_id, expected_revision)
    return await changed(change, lambda trip: f"Imported the itinerary into {trip.title}.")


def _meant(entry: Entry, answer: Choice) -> str | None:
    """The name that an answer gives to an entry, None to leave it out."""
    if answer.custom is not None:
        name = " ".join(answer.custom.split())
        if len(name) > NAME_LIMIT:
            raise InvalidName(NAME_LIMIT)
        return name
    if answer.option is None or answer.option in entry.candidates:
        return answer.option
    if answer.option == ADD and not entry.candidates:
        return entry.text
    raise OtherQuestion


def _staged(draft: Draft, trip: Trip) -> ToolResult:
    """The draft with its difference, and the next question as long as there is one."""
    diff = compare(trip, draft.entries)
    index = draft.next_open()
    unclear = sum(entry.open for entry in draft.entries)
    data: dict[str, JsonValue] = {
        "draft_id": draft.id,
        "revision": draft.revision,
        "open_questions": unclear,
        "diff": diff.data(),
    }
    return ToolResult(
        data=data,
        message=f"Prepared the import, the trip is unchanged: {diff.summary()}"
        + (f"; {unclear} unclear." if unclear else "."),
        public={"resource": "import_draft", "draft_id": draft.id, "diff": diff.data()},
        interaction=None if index is None else _question(draft, index),
    )


def _question(draft: Draft, index: int) -> InteractionRequest:
    entry = draft.entries[index]
    place = f"Day {entry.day_number} of the itinerary says “{entry.text}”."
    if entry.candidates:
        prompt = f"{place} Which place is meant?"
        options = [{"id": name, "label": name} for name in entry.candidates[:50]]
    else:
        prompt = f"{place} The trip has no such place, and the map does not know it. Add it?"
        options = [{"id": ADD, "label": f"Add “{entry.text}” as it is"}]
    return InteractionRequest(
        kind="choice",
        prompt=prompt,
        options=options,
        allow_custom=True,
        allow_skip=True,
        skip_label="Leave it out",
        continuation=ToolContinuation("answer_import", {"draft_id": draft.id, "index": index}),
    )
