"""The form about preferences: asked by the model, saved from the trusted answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rungent import InvalidResponse
from rungent.demo.preferences import Preferences, UnreadableForm, read_form
from rungent.demo.seed import DEMO_TRIP_ID
from tests.demo.hosted import hosted, said, tools

ANSWER: dict[str, Any] = {
    "answers": {
        "pace": {"selected": ["relaxed"]},
        "interests": {"selected": ["museums", "food"], "custom": "Jazz bars"},
        "wish": "A quiet\nhotel",
    }
}


@pytest.mark.parametrize("text", ["Set my preferences", "Ask about my preferences"])
async def test_the_form_is_asked_and_its_answer_saved(database: Path | None, text: str) -> None:
    async with hosted(database) as app:
        log = await app.say(text)
        asked = log[-1].data
        assert asked["kind"] == "form"
        assert [question["id"] for question in asked["questions"]] == ["pace", "interests", "wish"]
        assert asked["questions"][1]["multiple"]
        assert asked["questions"][1]["allow_custom"]
        assert not asked["questions"][2]["required"]
        rest = await app.answer(log, ANSWER)
        assert tools(rest) == ["save_preferences"]
        assert "relaxed pace; interests: museums, food, Jazz bars; wish: A quiet hotel" in said(
            rest
        )
        assert await app.services.preferences.get(DEMO_TRIP_ID) == Preferences(
            "relaxed", ("museums", "food", "Jazz bars"), "A quiet hotel"
        )
        # Preferences are no change of the plan.
        assert "(revision 1)" in await app.trip()


async def test_a_later_answer_replaces_the_earlier_one(database: Path | None) -> None:
    async with hosted(database) as app:
        for pace in ("relaxed", "packed"):
            answers = {"pace": {"selected": [pace]}, "interests": {"selected": ["food"]}}
            await app.answer(await app.say("Set my preferences"), {"answers": answers})
        assert await app.services.preferences.get(DEMO_TRIP_ID) == Preferences("packed", ("food",))


async def test_an_incomplete_form_is_refused_with_its_path() -> None:
    async with hosted(None) as app:
        log = await app.say("Set my preferences")
        with pytest.raises(InvalidResponse) as refused:
            await app.answer(log, {"answers": {"pace": {"selected": ["relaxed"]}}})
        assert [*refused.value.path] == ["answers", "interests"]
        assert await app.services.preferences.get(DEMO_TRIP_ID) is None


@pytest.mark.parametrize(
    "value",
    [
        None,
        "relaxed",
        {"selected": ["relaxed"]},
        {"answers": {"pace": {"selected": ["hasty"]}, "interests": {"selected": ["food"]}}},
        {"answers": {"pace": {"selected": ["normal"]}}},
        {"answers": {"pace": {"selected": ["normal"]}, "interests": {"selected": []}}},
    ],
)
def test_the_answer_to_another_question_is_no_preference(value: Any) -> None:
    with pytest.raises(UnreadableForm):
        read_form(value)
