"""Pasted itineraries: recognised, staged, completed by questions, committed at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from rungent.demo.drafts import DraftNotFound, DraftNotReady, RevisionConflict
from rungent.demo.itinerary import ItineraryDay, looks_like_itinerary, read_itinerary
from rungent.demo.seed import DEMO_TRIP_ID
from tests.demo.hosted import hosted, said, tools, types

CLEAR = "Our plan:\nDay 1: Ueno Park, Meiji Shrine\nDay 4: Tokyo Tower"
UNCLEAR = "Day 1: museum\nDay 2: Sushi Dai, Odaiba Beach"


async def test_a_clear_itinerary_is_staged_without_the_model_and_committed_when_approved(
    database: Path | None,
) -> None:
    async with hosted(database) as app:
        log = await app.say(CLEAR)
        kinds = types(log)
        # The initial call comes before any model step, and nobody had to copy the text.
        assert kinds.index("tool.completed") < kinds.index("model.started")
        prepared = next(event for event in log if event.type == "tool.completed")
        assert prepared.data["public"]["diff"] == {
            "days_added": 1,
            "added": [{"name": "Meiji Shrine", "day_number": 1}],
            "moved": [
                {"name": "Ueno Park", "from_day": 3, "to_day": 1},
                {"name": "Tokyo Tower", "from_day": 1, "to_day": 4},
            ],
            "left_out": [],
        }
        assert "(revision 1)" in await app.trip()
        assert log[-1].data["prompt"] == (
            "Import the itinerary into Tokyo, three days? "
            "2 places moved, 1 place added, 1 day added:\n"
            "+ 1 day\n+ Meiji Shrine (day 1)\n"
            "~ Ueno Park: day 3 → day 1\n~ Tokyo Tower: day 1 → day 4"
        )
        rest = await app.answer(log, True)
        assert tools(log + rest) == ["prepare_import", "commit_import"]
        assert said(rest) == "- Imported the itinerary into Tokyo, three days."
        assert await app.trip() == (
            "Trip: Tokyo, three days (revision 2)\n"
            "Day 1 (walk): Asakusa Temple, Edo-Tokyo Museum, Ueno Park, Meiji Shrine\n"
            "Day 2 (train): Shibuya Crossing, Ghibli Museum\n"
            "Day 3 (walk): Tsukiji Market\n"
            "Day 4 (walk): Tokyo Tower\n"
            "Unplanned: Odaiba Beach"
        )


async def test_unclear_lines_are_asked_one_after_another(database: Path | None) -> None:
    async with hosted(database) as app:
        first = await app.say(UNCLEAR)
        assert first[-1].data["prompt"] == (
            "Day 1 of the itinerary says “museum”. Which place is meant?"
        )
        second = await app.answer(first, {"selected": ["Ghibli Museum"]})
        assert "“Sushi Dai”" in second[-1].data["prompt"]
        # Not one model step between the two questions.
        assert "model.started" not in types(first + second)
        third = await app.answer(second, {"custom": " Sushi  Dai Tsukiji "})
        assert third[-1].data["kind"] == "approval"
        last = await app.answer(third, True)
        assert tools(first + second + third + last) == [
            "prepare_import",
            "answer_import",
            "answer_import",
            "commit_import",
        ]
        trip = await app.trip()
        assert "(revision 2)" in trip
        assert "Day 1 (walk): Asakusa Temple, Tokyo Tower, Edo-Tokyo Museum, Ghibli" in trip
        assert "Day 2 (train): Shibuya Crossing, Sushi Dai Tsukiji, Odaiba Beach" in trip


async def test_a_skipped_line_is_left_out_and_an_unknown_one_may_be_added() -> None:
    async with hosted(None) as app:
        first = await app.say(UNCLEAR)
        second = await app.answer(first, {"skipped": True})
        third = await app.answer(second, {"selected": ["add"]})
        assert "+ Sushi Dai (day 2)" in third[-1].data["prompt"]
        assert "- left out: museum" in third[-1].data["prompt"]


async def test_a_rejected_import_leaves_the_trip_as_it_was(database: Path | None) -> None:
    async with hosted(database) as app:
        before = await app.trip()
        log = await app.say(CLEAR)
        assert "**Not done:**" in said(await app.answer(log, False))
        assert await app.trip() == before


async def test_a_trip_changed_before_the_approval_makes_the_import_fail(
    database: Path | None,
) -> None:
    async with hosted(database) as app:
        log = await app.say(CLEAR)
        await app.services.trips.add_day(DEMO_TRIP_ID)
        before = await app.trip()
        rest = await app.answer(log, True)
        failed = next(event for event in rest if event.type == "tool.failed")
        assert failed.data["code"] == "tool_rejected"
        assert "The trip was changed after the import was prepared" in said(rest)
        assert await app.trip() == before


async def test_a_trip_changed_during_the_questions_is_not_even_asked_about() -> None:
    async with hosted(None) as app:
        first = await app.say(UNCLEAR)
        await app.services.trips.add_day(DEMO_TRIP_ID)
        second = await app.answer(first, {"skipped": True})
        last = await app.answer(second, {"skipped": True})
        failed = next(event for event in last if event.type == "tool.failed")
        assert failed.data["code"] == "approval_unavailable"
        assert "(revision 2)" in await app.trip()


async def test_a_commit_is_checked_and_happens_once(database: Path | None) -> None:
    async with hosted(database) as app:
        imports = app.services.imports
        draft, _ = await imports.prepare(DEMO_TRIP_ID, "d1", UNCLEAR)
        with pytest.raises(DraftNotReady):
            await imports.commit(DEMO_TRIP_ID, "d1", 1)
        for index in (0, 1):
            draft, _ = await imports.settle(DEMO_TRIP_ID, "d1", index, None)
        assert draft.next_open() is None
        with pytest.raises(RevisionConflict):
            await imports.commit(DEMO_TRIP_ID, "d1", 7)
        with pytest.raises(DraftNotFound):
            await imports.commit(DEMO_TRIP_ID, "other", 1)
        assert (await imports.commit(DEMO_TRIP_ID, "d1", 1)).revision == 2
        # A worker that was lost after the commit makes the call again.
        assert (await imports.commit(DEMO_TRIP_ID, "d1", 1)).revision == 2
        with pytest.raises(DraftNotFound):
            await imports.settle(DEMO_TRIP_ID, "d1", 0, "Ueno Park")


async def test_preparing_again_under_the_same_key_gives_the_same_draft() -> None:
    async with hosted(None) as app:
        imports = app.services.imports
        first, _ = await imports.prepare(DEMO_TRIP_ID, "d1", UNCLEAR)
        await imports.settle(DEMO_TRIP_ID, "d1", 0, None)
        again, _ = await imports.prepare(DEMO_TRIP_ID, "d1", UNCLEAR)
        assert (first.next_open(), again.next_open()) == (0, 1)


def test_days_are_read_from_headings_commas_and_bullets() -> None:
    text = (
        "Here is the plan I made:\n\n"
        "## Day 2 (Friday) - 09:30 Ueno Park → the Tokyo Tower\n"
        "**Day 1**:\n- Asakusa Temple\n• 14:00-15:30: Meiji Shrine.\nWear good shoes\n"
    )
    assert read_itinerary(text) == (
        ItineraryDay(1, ("Asakusa Temple", "Meiji Shrine")),
        ItineraryDay(2, ("Ueno Park", "Tokyo Tower")),
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Delete day 3",
        "Day 1: Ueno Park",
        "Day 1:\nDay 2:",
        "What is on day 2?\nAnd what is on day 3?",
        "Move A to day 1\nMove B to day 2",
        "Day 1 was nice\nDay 2 was not",
    ],
)
def test_other_messages_are_no_itinerary(text: str) -> None:
    assert not looks_like_itinerary(text)
