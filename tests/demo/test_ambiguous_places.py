"""A name that fits several places: the tool asks, and finishes with the trusted answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from rungent import InvalidResponse
from tests.demo.hosted import hosted, said, tools


async def test_an_ambiguous_move_asks_and_finishes_with_the_answer(database: Path | None) -> None:
    async with hosted(database) as app:
        log = await app.say("Move the museum to day two")
        asked = log[-1].data
        assert asked["kind"] == "choice"
        assert [option["id"] for option in asked["options"]] == [
            "Edo-Tokyo Museum",
            "Ghibli Museum",
        ]
        # The Ghibli Museum is on day 2 already.
        assert [option["recommended"] for option in asked["options"]] == [True, False]
        assert asked["allow_skip"]
        assert "(revision 1)" in await app.trip()
        rest = await app.answer(log, {"selected": ["Edo-Tokyo Museum"]})
        assert tools(log + rest) == ["move_place", "resolve_place"]
        assert said(rest) == "- Moved Edo-Tokyo Museum to day 2."
        assert "Day 2 (train): Shibuya Crossing, Ghibli Museum, Edo-Tokyo" in await app.trip()


async def test_skipping_leaves_the_trip_unchanged(database: Path | None) -> None:
    async with hosted(database) as app:
        before = await app.trip()
        log = await app.say("Move the museum to day 2")
        assert log[-1].data["skip_label"] == "Leave the trip as it is"
        rest = await app.answer(log, {"selected": [], "skipped": True})
        assert rest[0].data["outcome"] == "skipped"
        assert said(rest) == "- Left the trip as it was."
        assert await app.trip() == before


async def test_an_answer_that_is_no_option_is_refused_and_may_be_repeated() -> None:
    async with hosted(None) as app:
        log = await app.say("Move the museum to day 3")
        with pytest.raises(InvalidResponse) as refused:
            await app.answer(log, {"selected": ["Tokyo Tower"]})
        assert refused.value.reason == "unknown_option"
        assert said(await app.answer(log, {"selected": ["Ghibli Museum"]})) == (
            "- Moved Ghibli Museum to day 3."
        )


async def test_a_swap_of_two_ambiguous_names_asks_twice(database: Path | None) -> None:
    async with hosted(database) as app:
        first = await app.say("Swap the museum and Tokyo")
        second = await app.answer(first, {"selected": ["Ghibli Museum"]})
        assert second[-1].data["prompt"] == "Which place is the one to swap with Ghibli Museum?"
        last = await app.answer(second, {"selected": ["Tokyo Tower"]})
        assert tools(first + second + last) == ["swap_places", "resolve_place", "resolve_place"]
        assert said(last) == "- Swapped Tokyo Tower and Ghibli Museum."
        assert "Day 2 (train): Shibuya Crossing, Tokyo Tower" in await app.trip()


async def test_a_name_that_is_clear_without_the_first_choice_is_not_asked_for() -> None:
    async with hosted(None) as app:
        log = await app.say("Swap the museum and the museum")
        rest = await app.answer(log, {"selected": ["Ghibli Museum"]})
        assert said(rest) == "- Swapped Ghibli Museum and Edo-Tokyo Museum."


async def test_a_day_that_is_not_there_is_refused_before_any_question() -> None:
    async with hosted(None) as app:
        log = await app.say("Move the museum to day 9")
        assert "There is no such day" in said(log)


async def test_a_place_removed_before_the_answer_changes_nothing() -> None:
    async with hosted(None) as app:
        log = await app.say("Move the museum to day 3")
        await app.services.trips.remove_place("tokyo", "Ghibli Museum")
        rest = await app.answer(log, {"selected": ["Ghibli Museum"]})
        assert "**Not done:**" in said(rest)
        assert "(revision 2)" in await app.trip()


async def test_the_rest_of_the_request_follows_after_the_answer() -> None:
    async with hosted(None) as app:
        log = await app.say("Move the museum to day 3, then add a day")
        rest = await app.answer(log, {"selected": ["Ghibli Museum"]})
        assert tools(log + rest) == ["move_place", "resolve_place", "add_day"]
        assert said(rest) == "- Moved Ghibli Museum to day 3.\n- Added day 4."
