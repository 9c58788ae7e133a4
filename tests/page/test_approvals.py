"""Approvals: the impact is shown, and nothing happens without a yes, or twice with one."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.page.conftest import Visit
from tests.page.served import Site
from tests.page.visitor import Visitor

IMPACT = "Delete day 3? 2 places become unplanned: Ueno Park, Tsukiji Market."


def asked_to_delete(visit: Visit, site: Site) -> Visitor:
    visitor = visit(site)
    visitor.say("Delete day 3")
    expect(visitor.card).to_contain_text("Approve: Delete day")
    expect(visitor.card).to_contain_text("destructive")
    expect(visitor.card).to_contain_text(IMPACT)
    return visitor


def test_an_approved_call_is_carried_out_once(visit: Visit, site: Site) -> None:
    visitor = asked_to_delete(visit, site)
    assert len(site.trip()["days"]) == 3
    sent = visitor.posts("responses")
    visitor.press_twice("Approve")
    visitor.sees_status("Done")
    assert len(sent) == 1
    visitor.sees_step("Approval", "approved")
    visitor.sees_step("Delete day", "destructive", "Deleted day 3")
    expect(visitor.day(3)).to_have_count(0)
    assert (site.trip()["revision"], len(site.trip()["days"])) == (2, 2)
    (run,) = site.runs()
    assert site.events(run["id"]).count("tool.started") == 1


def test_a_rejected_call_changes_nothing(visit: Visit, site: Site) -> None:
    visitor = asked_to_delete(visit, site)
    visitor.press("Reject")
    visitor.sees_status("Done")
    visitor.sees_step("Approval", "rejected")
    visitor.sees_step("Delete day", "The user declined the operation.")
    visitor.sees_answer("Not done")
    assert site.trip()["revision"] == 1


def test_an_import_asks_what_is_unclear_and_is_approved_as_a_whole(
    visit: Visit, site: Site
) -> None:
    visitor = visit(site)
    visitor.say("Day 1: Ueno Park, Sushi Dai\nDay 2: museum")
    expect(visitor.card).to_contain_text("says “Sushi Dai”")
    visitor.card.get_by_label("Other, in your own words").fill("Sushi Saito")
    visitor.press("Answer")
    expect(visitor.card).to_contain_text("says “museum”. Which place is meant?")
    visitor.press("Leave it out")
    expect(visitor.card).to_contain_text("Import the itinerary into Tokyo, three days?")
    expect(visitor.card).to_contain_text("+ Sushi Saito (day 1)")
    assert site.trip()["revision"] == 1
    visitor.press("Approve")
    visitor.sees_status("Done")
    expect(visitor.day(1)).to_contain_text("Sushi Saito")
    expect(visitor.day(1)).to_contain_text("Ueno Park")
