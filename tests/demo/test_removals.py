"""Removing days and places: the preview counts, approval acts, rejection does nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.demo.hosted import hosted, said, tools


async def test_an_approved_day_is_deleted_after_its_impact_was_shown(
    database: Path | None,
) -> None:
    async with hosted(database) as app:
        log = await app.say("Delete day 2")
        asked = log[-1].data
        assert asked["kind"] == "approval"
        assert asked["tool"] == {
            "name": "remove_day",
            "title": "Delete day",
            "effect": "destructive",
        }
        assert asked["prompt"] == (
            "Delete day 2? 2 places become unplanned: Shibuya Crossing, Ghibli Museum. "
            "1 later day moves up."
        )
        assert tools(log) == []
        rest = await app.answer(log, True)
        assert said(rest) == "- Deleted day 2; its places are unplanned."
        assert "Day 2 (walk): Ueno Park, Tsukiji Market\nUnplanned: Shibuya" in await app.trip()


@pytest.mark.parametrize("text", ["Delete day 3", "Remove Tokyo Tower"])
async def test_rejecting_changes_nothing(database: Path | None, text: str) -> None:
    async with hosted(database) as app:
        before = await app.trip()
        log = await app.say(text)
        rest = await app.answer(log, "reject")
        assert rest[0].data["outcome"] == "rejected"
        assert tools(log + rest) == []
        assert said(rest) == "- **Not done:** The user declined the operation."
        assert await app.trip() == before


async def test_the_preview_is_read_from_the_trip_as_it_is() -> None:
    async with hosted(None) as app:
        await app.services.trips.move_place("tokyo", "Ueno Park", None)
        await app.services.trips.add_day("tokyo")
        assert (await app.say("Delete day 3"))[-1].data["prompt"] == (
            "Delete day 3? 1 place becomes unplanned: Tsukiji Market. 1 later day moves up."
        )
        assert (await app.say("Delete day 4"))[-1].data["prompt"] == (
            "Delete day 4? No place is planned on it."
        )


async def test_an_approved_place_is_removed(database: Path | None) -> None:
    async with hosted(database) as app:
        log = await app.say("Remove Tokyo Tower from my trip")
        assert log[-1].data["prompt"] == (
            "Remove Tokyo Tower from the trip? It is planned for day 1, and cannot be brought back."
        )
        assert said(await app.answer(log, True)) == "- Removed Tokyo Tower."
        assert "Tokyo Tower" not in await app.trip()


@pytest.mark.parametrize("text", ["Delete day 9", "Remove the museum", "Remove Atlantis"])
async def test_what_cannot_be_previewed_is_not_asked(text: str) -> None:
    async with hosted(None) as app:
        log = await app.say(text)
        failed = next(event for event in log if event.type == "tool.failed")
        assert failed.data["code"] == "approval_unavailable"
        assert "(revision 1)" in await app.trip()


async def test_a_day_gone_since_the_question_fails_and_changes_nothing_else() -> None:
    async with hosted(None) as app:
        log = await app.say("Delete day 3")
        await app.services.trips.remove_day("tokyo", 1)
        rest = await app.answer(log, True)
        assert "There is no such day: the trip has 2 days." in said(rest)
        assert "(revision 2)" in await app.trip()
