"""Questions for data: a control for each field, an editor for the rest, one answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.page.conftest import Visit
from tests.page.data_tools import asking_for_data
from tests.page.models import asking
from tests.page.served import Site, served
from tests.page.test_access import findings, too_wide
from tests.page.visitor import Visitor


@pytest.fixture(scope="module")
def data_site() -> Iterator[Site]:
    """An application whose tools ask for data."""
    with served(asking, asking_for_data) as site:
        yield site


@pytest.fixture
def asked(visit: Visit, data_site: Site) -> Visitor:
    """A tab of it."""
    return visit(data_site)


def noted(visitor: Visitor) -> object:
    """The checked answer as the tool got it."""
    visitor.sees_status("Done")
    return json.loads(visitor.answer.locator("pre").inner_text())["data"]


def field(visitor: Visitor, label: str) -> Locator:
    """The control with this label."""
    return visitor.card.get_by_label(label)


def refused(visitor: Visitor, label: str, *words: str) -> None:
    """The field says why it is wrong, and has the focus."""
    expect(field(visitor, label)).to_have_attribute("aria-invalid", "true")
    expect(field(visitor, label)).to_be_focused()
    shown = visitor.card.get_by_role("alert").filter(has_text=words[0])
    for word in words:
        expect(shown).to_contain_text(word)
    expect(visitor.card.locator('[aria-invalid="true"]')).to_have_count(1)


def test_a_budget_is_corrected_and_then_kept_once(visit: Visit, site: Site) -> None:
    visitor = visit(site)
    sent = visitor.posts("responses")
    visitor.page.get_by_role("button", name="Set a budget").click()
    expect(visitor.card).to_contain_text("What may the trip cost?")
    visitor.press("Answer")
    refused(visitor, "Amount", "A required field is missing.", "missing_answer")
    field(visitor, "Amount").fill("much")
    visitor.press("Answer")
    refused(visitor, "Amount", "a whole number", "type_mismatch")
    field(visitor, "Amount").fill("0")
    field(visitor, "Currency").select_option("EUR")
    visitor.press("Answer")
    refused(visitor, "Amount", "The value is not valid.", "invalid_value")
    assert sent == []
    field(visitor, "Amount").fill("1500")
    field(visitor, "For each person").check()
    field(visitor, "Book by").fill("2030-04-01")
    visitor.press_twice("Answer")
    visitor.sees_status("Done")
    told = "1,500 EUR for each person, to be booked by 2030-04-01"
    visitor.sees_step("Set budget", "write", told)
    expect(visitor.trip).to_contain_text(f"Budget: {told}")
    assert len(sent) == 1
    assert site.trip()["revision"] == 2
    visitor.page.reload()
    expect(visitor.trip).to_contain_text(f"Budget: {told}")


def test_every_type_of_field_has_its_control(asked: Visitor) -> None:
    asked.say("ask for a stay")
    field(asked, "Hotel").fill("Ryokan")
    field(asked, "Stars").select_option("4")
    field(asked, "Breakfast").select_option("No")
    expect(field(asked, "After midnight")).to_be_checked()
    field(asked, "After midnight").uncheck()
    field(asked, "Price").fill("80.5")
    expect(field(asked, "Nights")).to_have_value("2")
    field(asked, "Arrival").fill("2030-04-01")
    asked.press("Answer")
    assert noted(asked) == {
        "hotel": "Ryokan",
        "stars": 4,
        "breakfast": False,
        "late": False,
        "price": 80.5,
        "nights": 2,
        "arrival": "2030-04-01",
        "note": None,
    }


def test_a_form_is_filled_in_by_keyboard_alone(asked: Visitor) -> None:
    keyboard = asked.page.keyboard
    asked.say("ask for a stay")
    expect(asked.card).to_be_focused()
    # Typing selects in lists; a date has three parts.
    for keys in ("Inn", "5", "Yes", " ", "70", "3", "04012030"):
        keyboard.press("Tab")
        keyboard.type(keys)
    keyboard.press("Enter")
    answer: Any = noted(asked)
    assert (answer["hotel"], answer["stars"], answer["breakfast"]) == ("Inn", 5, True)
    assert (answer["late"], answer["price"], answer["nights"]) == (False, 70, 3)
    assert answer["arrival"] == "2030-04-01"
    expect(asked.message).to_be_focused()


def test_each_mistake_is_shown_at_its_field(asked: Visitor) -> None:
    asked.say("ask for a stay")
    expect(field(asked, "Hotel")).to_have_accessible_description(
        "Its short name; from 2 to 12 characters"
    )
    field(asked, "Hotel").fill("A much too long name")
    asked.press("Answer")
    refused(asked, "Hotel", "too_long")
    field(asked, "Hotel").fill("Full")
    asked.press("Answer")
    refused(asked, "Stars", "missing_answer")
    field(asked, "Stars").select_option("3")
    asked.press("Answer")
    refused(asked, "Breakfast", "missing_answer")
    field(asked, "Breakfast").select_option("Yes")
    field(asked, "Price").fill("cheap")
    asked.press("Answer")
    refused(asked, "Price", "a number", "type_mismatch")
    field(asked, "Price").fill("1e2")
    field(asked, "Nights").fill("9007199254740993")
    asked.press("Answer")
    refused(asked, "Nights", "a whole number", "type_mismatch")
    field(asked, "Nights").fill("1")
    field(asked, "Arrival").press_sequentially("04")
    asked.press("Answer")
    refused(asked, "Arrival", "a whole date", "type_mismatch")
    field(asked, "Arrival").fill("2030-04-01")
    assert findings(asked.page) == []
    asked.press("Stop")
    asked.sees_status("Stopped")


def test_a_refusal_of_the_server_is_shown_at_its_field(
    asked: Visitor, complaints: list[str]
) -> None:
    asked.say("ask for a stay")
    field(asked, "Hotel").fill("Full")
    field(asked, "Stars").select_option("3")
    field(asked, "Breakfast").select_option("Yes")
    field(asked, "Price").fill("60")
    field(asked, "Arrival").fill("2030-04-01")
    asked.press("Answer")
    refused(asked, "Hotel", "The value is not valid.", "invalid_value")
    assert "canary" not in asked.page.content()
    expect(field(asked, "Price")).to_have_value("60")
    field(asked, "Hotel").fill("Free")
    asked.press("Answer")
    answer: Any = noted(asked)
    assert answer["hotel"] == "Free"
    forgive_refusals(complaints)


def test_what_no_form_can_ask_is_written_as_json(asked: Visitor, complaints: list[str]) -> None:
    asked.say("ask for stops")
    editor = "Your answer, as JSON"
    assert findings(asked.page) == []
    asked.press("Answer")
    refused(asked, editor, "This is no JSON")
    field(asked, editor).fill('{"stops": [')
    asked.press("Answer")
    refused(asked, editor, "This is no JSON")
    assert findings(asked.page) == []
    field(asked, editor).fill('{"stops": [{"place": "Ueno Park", "minutes": 0}]}')
    asked.press("Answer")
    refused(asked, editor, "At stops → 0 → minutes:", "invalid_value")
    asked.card.get_by_text("What fits").click()
    expect(asked.card.locator("pre")).to_contain_text('"minimum": 1')
    asked.page.set_viewport_size({"width": 320, "height": 720})
    assert too_wide(asked.page) == []
    field(asked, editor).fill('{"stops": [{"place": "Ueno Park", "minutes": 30}]}')
    asked.press("Answer")
    assert noted(asked) == {"stops": [{"place": "Ueno Park", "minutes": 30}]}
    forgive_refusals(complaints)


def forgive_refusals(complaints: list[str]) -> None:
    """Takes out what Chromium itself says about a request that was refused."""
    complaints[:] = [text for text in complaints if "status of 422" not in text]
