"""Every kind of question: how it is asked, answered once, and refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Route, expect

from tests.page.conftest import Visit
from tests.page.models import asking
from tests.page.served import Site, served
from tests.page.visitor import Visitor


@pytest.fixture(scope="module")
def asking_site() -> Iterator[Site]:
    """An application whose model asks what it is told to ask."""
    with served(asking) as site:
        yield site


@pytest.fixture
def asked(visit: Visit, asking_site: Site) -> Visitor:
    """A tab of it."""
    return visit(asking_site)


def said(visitor: Visitor) -> object:
    """The answer as the model got it."""
    visitor.sees_status("Done")
    envelope = json.loads(visitor.answer.locator("pre").inner_text())
    return envelope["data"]["user_response"]


def test_a_text_is_answered_in_words(asked: Visitor) -> None:
    asked.say("ask for a text")
    expect(asked.card).to_contain_text("What shall the trip be called?")
    asked.press("Answer")
    expect(asked.card.get_by_role("alert")).to_have_text("The answer is empty.")
    expect(asked.page.get_by_label("Your answer")).to_be_focused()
    asked.page.get_by_label("Your answer").fill("  Spring in Tokyo ")
    asked.press("Answer")
    assert said(asked) == "Spring in Tokyo"
    asked.sees_step("Question", "answered")


def test_one_option_is_sent_only_by_the_button(asked: Visitor) -> None:
    sent = asked.posts("responses")
    asked.say("ask for one")
    asked.card.get_by_label("Shibuya").check()
    asked.card.get_by_label("Asakusa").check()
    expect(asked.card.get_by_label("Shibuya")).not_to_be_checked()
    expect(asked.card).to_contain_text("recommended")
    assert sent == []
    asked.press("Answer")
    assert said(asked) == {"selected": ["asakusa"]}


def test_an_own_answer_takes_the_place_of_an_option(asked: Visitor) -> None:
    asked.say("ask for one of your own")
    asked.card.get_by_label("Ueno").check()
    asked.card.get_by_label("Other, in your own words").fill("Kichijoji")
    expect(asked.card.get_by_label("Ueno")).not_to_be_checked()
    asked.press("Answer")
    assert said(asked) == {"selected": [], "custom": "Kichijoji"}


def test_several_options_and_own_words_go_together(asked: Visitor) -> None:
    asked.say("ask for several")
    asked.press("Answer")
    expect(asked.card.get_by_role("alert")).to_have_text("Nothing is selected.")
    asked.card.get_by_label("Ueno").check()
    asked.card.get_by_label("Shibuya").check()
    asked.card.get_by_label("Other, in your own words").fill("Kichijoji")
    asked.press("Answer")
    assert said(asked) == {"selected": ["shibuya", "ueno"], "custom": "Kichijoji"}


def test_a_question_that_may_be_skipped_is_skipped(asked: Visitor) -> None:
    asked.say("ask for what may be skipped")
    asked.press("No matter")
    assert said(asked) == {"selected": [], "skipped": True}
    asked.sees_step("Question", "skipped")


def test_a_form_is_one_card_with_one_answer(visit: Visit, site: Site) -> None:
    visitor = visit(site)
    sent = visitor.posts("responses")
    visitor.say("Set my preferences")
    expect(visitor.card).to_have_count(1)
    pace = visitor.card.get_by_role("group", name="Which pace do you prefer?")
    interests = visitor.card.get_by_role("group", name="What interests you?")
    pace.get_by_label("Relaxed").check()
    visitor.press("Send answers")
    expect(interests.get_by_role("alert")).to_have_text("A required answer is missing.")
    assert sent == []
    interests.get_by_label("Food").check()
    interests.get_by_label("Museums").check()
    visitor.card.get_by_label("Any other wish?").fill("A window seat")
    visitor.press_twice("Send answers")
    visitor.sees_status("Done")
    visitor.sees_answer("Saved your preferences: ")
    visitor.sees_answer("A window seat")
    assert len(sent) == 1
    assert json.loads(sent[0].post_data or "")["value"]["answers"] == {
        "pace": {"selected": ["relaxed"]},
        "interests": {"selected": ["museums", "food"]},
        "wish": "A window seat",
    }


def test_a_question_of_a_tool_goes_on_with_the_answer(visit: Visit, site: Site) -> None:
    visitor = visit(site)
    visitor.say("Move the museum to day 2")
    visitor.card.get_by_label("Edo-Tokyo Museum").check()
    visitor.press("Answer")
    visitor.sees_status("Done")
    expect(visitor.day(2)).to_contain_text("Edo-Tokyo Museum")


def test_a_message_instead_of_an_answer_drops_the_question(visit: Visit, site: Site) -> None:
    visitor = visit(site)
    visitor.say("Delete day 3")
    visitor.sees_status("Waiting for your approval")
    visitor.say("Show my trip")
    visitor.sees_status("Done")
    expect(visitor.card).to_have_count(0)
    expect(visitor.page.get_by_text("You stopped this run.")).to_be_visible()
    assert len(site.trip()["days"]) == 3


def test_a_question_of_a_later_kind_is_named_and_can_be_stopped(asked: Visitor) -> None:
    def later(route: Route) -> None:
        # The stored events up to the question, as a later server would tell them.
        events = asked.page.request.get(route.request.url.replace("/stream", "")).json()
        frames = [f"id: {event['seq']}\ndata: {json.dumps(event)}\n\n" for event in events]
        body = "".join(frames).replace('"kind": "text"', '"kind": "drawing"')
        route.fulfill(body=body, content_type="text/event-stream")

    asked.say("ask for a text")
    asked.sees_status("Waiting for your answer")
    asked.page.route(re.compile(r"/events/stream\?after_seq=0"), later)
    asked.page.reload()
    expect(asked.card).to_contain_text("This page cannot show a question of the kind “drawing”.")
    asked.card.get_by_text("What was asked").click()
    expect(asked.card.locator("pre")).to_contain_text("What shall the trip be called?")
    asked.press("Stop")
    asked.sees_status("Stopped")
