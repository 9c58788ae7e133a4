"""A person in front of the page: what one says, presses and sees."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, Request, expect

__all__ = ["Visitor"]


class Visitor:
    """One tab. Everything waits for what it names, and for nothing else."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.message = page.get_by_label("Message", exact=True)
        self.status = page.locator(".composer").get_by_role("status")
        self.card = page.locator(".card")
        self.answer = page.locator(".turn").last.locator(".markdown").last
        self.steps = (
            page.locator(".turn").last.get_by_role("listitem").filter(has=page.locator(".sign"))
        )
        self.trip = page.get_by_role("complementary")
        self.sessions = page.get_by_role("navigation", name="Conversations")

    def say(self, text: str) -> None:
        """Send a message, and see it taken up: the line above speaks of it from now on."""
        said = self.page.locator(".said")
        before = said.count()
        self.send(text)
        expect(said).to_have_count(before + 1)

    def send(self, text: str) -> None:
        """Write a message and send it."""
        self.message.fill(text)
        self.message.press("Enter")

    def press(self, name: str) -> None:
        """Press the button of this name."""
        self.button(name).click()

    def press_twice(self, name: str) -> None:
        """Press a button twice before the page can draw what the first time did."""
        self.button(name).evaluate("button => { button.click(); button.click(); }")

    def posts(self, what: str) -> list[Request]:
        """The requests that create or change such things, as they are sent from now on."""
        sent: list[Request] = []

        def note(request: Request) -> None:
            if request.method == "POST" and request.url.endswith(f"/{what}"):
                sent.append(request)

        self.page.on("request", note)
        return sent

    def button(self, name: str) -> Locator:
        """The button of this name."""
        return self.page.get_by_role("button", name=name, exact=True)

    def sees_status(self, text: str) -> None:
        """The line above the message says this."""
        expect(self.status).to_have_text(text)

    def sees_step(self, *parts: str) -> None:
        """The timeline has a row that holds all of these."""
        row = self.steps
        for part in parts:
            row = row.filter(has_text=part)
        expect(row).to_have_count(1)

    def sees_answer(self, text: str) -> None:
        """The newest answer holds this."""
        expect(self.answer).to_contain_text(text)

    def day(self, number: int) -> Locator:
        """A day of the trip as it is shown."""
        name = re.compile(rf"^Day {number}\b")
        return self.trip.locator(".day").filter(has=self.page.get_by_role("heading", name=name))
