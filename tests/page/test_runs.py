"""Runs as they go: steps as they happen, stops, failures, reloads, lost networks, second tabs."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import BrowserContext, expect

from tests.page.conftest import Complaints, Host, Visit
from tests.page.models import Faults, asking, faulty
from tests.page.served import Site, served

HELP = "What can you do?"
"""The offline planner answers this with its whole list, word by word."""
LAST_WORDS = "Day 1: Ueno Park, Tokyo Tower"


PIECES = 60
"""So many of its pieces, and it is somewhere in the middle."""


def test_tools_show_as_they_run_and_the_trip_follows(visit: Visit, site: Site) -> None:
    visitor = visit(site)
    expect(visitor.day(1)).to_contain_text("Asakusa Temple")
    # Into the second step: the first takes eight pieces.
    site.hold_words(10)
    visitor.say("Move Asakusa Temple to day 2, then show my trip")
    visitor.sees_status("Thinking")
    expect(visitor.day(2)).to_contain_text("Asakusa Temple")
    site.release_words()
    visitor.sees_status("Done")
    visitor.sees_step("Reading the request and the trip", "done")
    visitor.sees_step("Model step 1", "done")
    visitor.sees_step("Move Place", "write", "Moved Asakusa Temple to day 2.")
    visitor.sees_step("Model step 3", "done")
    visitor.sees_answer("Unplanned: Odaiba Beach")
    expect(visitor.day(1)).not_to_contain_text("Asakusa Temple")
    expect(visitor.trip).to_contain_text("Revision 2")


def test_a_conversation_has_the_title_that_it_is_given(visit: Visit, site: Site) -> None:
    visitor = visit(site)
    expect(visitor.sessions).to_contain_text("None so far.")
    visitor.say("What is on day 2?")
    visitor.sees_status("Done")
    expect(visitor.sessions.get_by_role("link", name="What is on day 2?")).to_be_visible()
    visitor.press("Rename")
    visitor.page.get_by_label("Title").fill("Museums")
    visitor.page.keyboard.press("Enter")
    expect(visitor.sessions.get_by_role("link", name="Museums")).to_be_visible()
    visitor.sessions.get_by_role("link", name="New conversation").click()
    expect(visitor.page.get_by_role("heading", name="New conversation")).to_be_visible()
    visitor.say("Add a day")
    visitor.sees_status("Done")
    visitor.page.go_back()
    expect(visitor.page.get_by_role("heading", name="Museums")).to_be_visible()
    visitor.sees_answer("Ghibli Museum")


def test_the_answer_is_markdown_without_anything_that_runs(visit: Visit, host: Host) -> None:
    site = host(asking)
    visitor = visit(site)
    visitor.say("markdown")
    visitor.sees_status("Done")
    expect(visitor.answer.locator("strong")).to_have_text("Bold")
    expect(visitor.answer.get_by_role("link", name="a link")).to_have_attribute(
        "rel", "noopener noreferrer"
    )
    expect(visitor.answer).to_contain_text("<script>document.title")
    held = visitor.answer.locator("script, img, style, button, [onclick], [href^=javascript]")
    expect(held).to_have_count(0)
    expect(visitor.page).to_have_title("markdown – Trip planner")
    visitor.say("**<b>plain</b>**")
    expect(visitor.page.locator(".said").last).to_have_text("**<b>plain</b>**")
    visitor.sees_status("Done")


def test_a_run_is_stopped_in_the_middle_of_its_answer(visit: Visit, site: Site) -> None:
    visitor = visit(site)
    site.hold_words(PIECES)
    visitor.say(HELP)
    visitor.sees_status("Answering")
    visitor.sees_answer("offline planner")
    visitor.press("Stop")
    visitor.sees_status("Stopped")
    visitor.sees_step("Model step 1", "cancelled")
    expect(visitor.button("Stop")).to_have_count(0)
    (run,) = site.runs()
    assert run["status"] == "cancelled"
    site.release_words()
    visitor.say("Add a day")
    visitor.sees_status("Done")


def test_two_clicks_on_send_make_one_run(visit: Visit, site: Site) -> None:
    visitor = visit(site)
    visitor.message.fill("Add a day")
    sent = visitor.posts("runs")
    visitor.press_twice("Send")
    visitor.sees_status("Done")
    assert len(sent) == 1
    assert len(site.runs()) == 1
    assert len(site.trip()["days"]) == 4


def test_a_provider_that_fails_twice_is_asked_again(visit: Visit, host: Host) -> None:
    faults = Faults()
    faults.coming = ["Half an ans", 503]
    site = host(faulty(faults, backoff_seconds=0.4))
    visitor = visit(site)
    visitor.say("Add a day")
    visitor.sees_step("Model step 1", "retry 1/2: the answer broke off")
    visitor.sees_step("Model step 1", "retry 2/2: the model's server failed")
    visitor.sees_status("Done")
    expect(visitor.answer).not_to_contain_text("Half an ans")
    assert len(site.trip()["days"]) == 4


def test_a_failed_run_is_tried_again_once_by_two_clicks(visit: Visit, host: Host) -> None:
    faults = Faults()
    faults.coming = [503, 503, 503]
    site = host(faulty(faults, backoff_seconds=0.01))
    visitor = visit(site)
    visitor.say("Add a day")
    visitor.sees_status("Failed")
    expect(visitor.page.get_by_text("This did not work.")).to_be_visible()
    visitor.page.reload()
    visitor.press_twice("Try again")
    visitor.sees_status("Done")
    expect(visitor.page.locator(".field-error")).to_have_count(0)
    expect(visitor.page.locator(".said")).to_have_count(1)
    expect(visitor.button("Try again")).to_have_count(0)
    assert [run["status"] for run in site.runs()] == ["failed", "completed"]
    assert len(site.trip()["days"]) == 4


def test_a_reload_in_the_middle_of_a_run_goes_on_where_it_is(visit: Visit, site: Site) -> None:
    visitor = visit(site)
    site.hold_words(PIECES)
    visitor.say(HELP)
    visitor.sees_answer("Show my trip")
    visitor.page.reload()
    expect(visitor.page.locator(".said")).to_have_text(HELP)
    visitor.sees_status("Answering")
    visitor.sees_answer("offline planner")
    site.release_words()
    visitor.sees_status("Done")
    visitor.sees_answer(LAST_WORDS)
    expect(visitor.page.locator(".markdown")).to_have_count(1)
    assert len(site.runs()) == 1


def test_a_reload_keeps_the_question_that_waits(visit: Visit, site: Site) -> None:
    visitor = visit(site)
    visitor.say("Delete day 3")
    visitor.sees_status("Waiting for your approval")
    visitor.page.reload()
    visitor.sees_status("Waiting for your approval")
    visitor.press("Reject")
    visitor.sees_status("Done")
    visitor.page.reload()
    visitor.sees_answer("Not done")
    visitor.sees_step("Approval", "rejected")


def test_two_tabs_show_one_run_and_one_answer(visit: Visit, site: Site) -> None:
    one = visit(site)
    other = visit(site)
    one.say("Show my trip")
    one.sees_status("Done")
    other.sessions.get_by_role("link", name="Show my trip").click()
    other.sees_answer("Asakusa Temple")
    one.say("Delete day 3")
    other.sees_status("Waiting for your approval")
    one.sees_status("Waiting for your approval")
    other.press("Approve")
    for tab in (one, other):
        tab.sees_status("Done")
        expect(tab.card).to_have_count(0)
        expect(tab.day(3)).to_have_count(0)
        tab.sees_step("Delete day", "Deleted day 3")
    assert site.trip()["revision"] == 2


def test_what_happens_offline_is_shown_afterwards(
    visit: Visit, site: Site, context: BrowserContext, complaints: Complaints
) -> None:
    visitor = visit(site)
    site.hold_words(PIECES)
    visitor.say(HELP)
    visitor.sees_answer("Show my trip")
    context.set_offline(True)
    visitor.sees_status("Connection lost. It comes back by itself.")
    site.release_words()
    site.wait_completed()
    context.set_offline(False)
    visitor.sees_status("Done")
    visitor.sees_answer(LAST_WORDS)
    complaints.forgive_network()


def test_a_server_that_was_away_is_found_again(
    visit: Visit, host: Host, tmp_path: Path, complaints: Complaints
) -> None:
    database = tmp_path / "demo.sqlite3"
    with served(database=database) as site:
        visitor = visit(site)
        visitor.say("Delete day 3")
        visitor.sees_status("Waiting for your approval")
    visitor.sees_status("Connection lost. It comes back by itself.")
    host(database=database, port=int(site.url.rpartition(":")[2]))
    visitor.sees_status("Waiting for your approval")
    visitor.press("Approve")
    visitor.sees_status("Done")
    expect(visitor.day(3)).to_have_count(0)
    complaints.forgive_network()


def test_a_message_that_could_not_be_sent_stays_and_is_sent_once(
    visit: Visit, site: Site, context: BrowserContext, complaints: Complaints
) -> None:
    visitor = visit(site)
    visitor.say("Show my trip")
    visitor.sees_status("Done")
    context.set_offline(True)
    visitor.send("Add a day")
    expect(visitor.page.get_by_text("The server cannot be reached.")).to_be_visible()
    expect(visitor.message).to_have_value("Add a day")
    context.set_offline(False)
    visitor.press("Send")
    visitor.sees_step("Add Day", "Added day 4.")
    visitor.sees_status("Done")
    assert len(site.trip()["days"]) == 4
    complaints.forgive_network()


def test_work_in_the_background_reports_and_wakes_the_run(visit: Visit, site: Site) -> None:
    visitor = visit(site)
    site.hold_jobs()
    visitor.say("Optimise day 1")
    visitor.sees_step("In the background", "Comparing the ways through 3 places on day 1")
    visitor.sees_status("Comparing the ways through 3 places on day 1")
    visitor.page.reload()
    visitor.sees_status("Comparing the ways through 3 places on day 1")
    site.release_jobs()
    visitor.sees_status("Done")
    visitor.sees_step("In the background", "done")
    visitor.sees_step("Optimise Route", "external", "done")
    expect(visitor.trip).to_contain_text("Revision 2")


def test_work_in_the_background_is_stopped(visit: Visit, site: Site) -> None:
    visitor = visit(site)
    site.hold_jobs()
    visitor.say("Optimise day 1")
    visitor.sees_step("In the background", "Comparing the ways through 3 places on day 1")
    visitor.press("Stop")
    visitor.sees_status("Stopped")
    visitor.sees_step("In the background", "cancelled")
    site.release_jobs()
    assert site.trip()["revision"] == 1
