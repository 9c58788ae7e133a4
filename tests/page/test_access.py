"""The page for everybody: by keyboard alone, for screen readers, in the dark, on a phone."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.page.conftest import Visit
from tests.page.served import Site
from tests.page.sources import AXE
from tests.page.visitor import Visitor

WIDTHS = (320, 390, 760, 1280)


def findings(page: Page) -> list[str]:
    """What the accessibility check finds, each with the first element that it is about."""
    page.evaluate(f"{AXE.read_text(encoding='utf-8')}; undefined")
    result: dict[str, Any] = page.evaluate("axe.run()")
    return [
        f"{found['impact']} {found['id']}: {found['nodes'][0]['html'][:200]}"
        for found in result["violations"]
    ]


def all_parts(visitor: Visitor) -> None:
    """Fill the page with what it can show, and end at a question."""
    visitor.say("Move Asakusa Temple to day 2, then show my trip")
    visitor.sees_status("Done")
    visitor.say("Move Atlantis to day 2")
    visitor.sees_status("Done")
    visitor.say("Set my preferences")
    visitor.sees_status("Waiting for your answer")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_accessibility_check_finds_nothing(visit: Visit, site: Site, scheme: Any) -> None:
    visitor = visit(site)
    visitor.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    expect(visitor.day(1)).to_be_visible()
    assert findings(visitor.page) == []
    all_parts(visitor)
    assert findings(visitor.page) == []
    visitor.press("Send answers")
    expect(visitor.card.get_by_role("alert").first).to_have_text("A required answer is missing.")
    assert findings(visitor.page) == []
    visitor.say("Set a budget")
    # The run before waited for an answer, too.
    expect(visitor.page.get_by_label("Amount")).to_be_visible()
    visitor.sees_status("Waiting for your answer")
    assert findings(visitor.page) == []
    visitor.press("Answer")
    expect(visitor.page.get_by_label("Amount")).to_have_attribute("aria-invalid", "true")
    assert findings(visitor.page) == []
    visitor.say("Delete day 3")
    visitor.sees_status("Waiting for your approval")
    assert findings(visitor.page) == []


def test_everything_is_done_by_keyboard_alone(visit: Visit, site: Site) -> None:
    visitor = visit(site)
    keyboard = visitor.page.keyboard
    idea = visitor.page.get_by_role("button", name="Move the museum to day 2")
    press_tab_until(visitor.page, "Move the museum to day 2")
    expect(idea).to_be_focused()
    keyboard.press("Enter")
    expect(visitor.card).to_be_focused()
    keyboard.press("Tab")
    keyboard.press("Space")
    expect(visitor.card.get_by_label("Edo-Tokyo Museum")).to_be_checked()
    keyboard.press("ArrowDown")
    expect(visitor.card.get_by_label("Ghibli Museum")).to_be_checked()
    keyboard.press("ArrowUp")
    keyboard.press("Enter")
    visitor.sees_status("Done")
    expect(visitor.message).to_be_focused()
    keyboard.type("Delete day 3")
    keyboard.press("Enter")
    expect(visitor.card).to_be_focused()
    keyboard.press("Tab")
    expect(visitor.button("Reject")).to_be_focused()
    keyboard.press("Tab")
    keyboard.press("Enter")
    visitor.sees_status("Done")
    expect(visitor.message).to_be_focused()
    assert len(site.trip()["days"]) == 2
    assert site.day_of("Edo-Tokyo Museum") == 2


def press_tab_until(page: Page, text: str) -> None:
    """Go on with Tab until the focused element holds the text."""
    for _ in range(40):
        page.keyboard.press("Tab")
        focused = page.locator("button:focus, a:focus")
        if focused.count() == 1 and text in focused.inner_text():
            return
    raise AssertionError(f"Tab never reaches {text!r}")


def test_an_unfinished_message_keeps_the_focus_when_a_question_comes(
    visit: Visit, site: Site
) -> None:
    visitor = visit(site)
    other = visit(site)
    visitor.say("Show my trip")
    visitor.sees_status("Done")
    other.page.goto(visitor.page.url)
    other.sees_answer("Asakusa Temple")
    other.message.fill("I am still wri")
    visitor.say("Delete day 3")
    other.sees_status("Waiting for your approval")
    expect(other.message).to_be_focused()


def test_nothing_scrolls_sideways_on_narrow_screens(visit: Visit, site: Site) -> None:
    visitor = visit(site)
    visitor.say(f"Add {'Llanfairpwllgwyngyll' * 3} to day 1")
    visitor.sees_status("Done")
    all_parts(visitor)
    fits_all_widths(visitor)
    visitor.say("Set a budget")
    expect(visitor.page.get_by_label("Amount")).to_be_visible()
    visitor.sees_status("Waiting for your answer")
    fits_all_widths(visitor)


def fits_all_widths(visitor: Visitor) -> None:
    """Nothing is wider than the screen, whichever part is shown."""
    for width in WIDTHS:
        visitor.page.set_viewport_size({"width": width, "height": 720})
        assert too_wide(visitor.page) == [], width
        for part in visitor.page.locator(".parts button:visible").all():
            part.click()
            assert too_wide(visitor.page) == [], width


def too_wide(page: Page) -> list[str]:
    """The parts of the page whose content is wider than they are."""
    parts: list[str] = page.evaluate(
        "[...document.querySelectorAll('html, .log, .trip, .sessions, .top, .composer')]"
        ".filter((part) => part.scrollWidth > part.clientWidth)"
        ".map((part) => part.className || part.tagName)"
    )
    return parts


def test_a_phone_shows_one_part_at_a_time(visit: Visit, site: Site) -> None:
    visitor = visit(site)
    visitor.page.set_viewport_size({"width": 390, "height": 780})
    expect(visitor.trip).to_be_hidden()
    visitor.say("Add a day")
    visitor.sees_status("Done")
    visitor.press("Trip, changed")
    expect(visitor.day(4)).to_be_visible()
    expect(visitor.button("Trip")).to_have_attribute("aria-pressed", "true")
    expect(visitor.message).to_be_hidden()
    visitor.press("Conversations")
    visitor.sessions.get_by_role("link", name="Add a day").click()
    visitor.sees_answer("Added day 4.")
