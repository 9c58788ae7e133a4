"""A browser for the tests of the page, and the application that they visit."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    ViewportSize,
    expect,
    sync_playwright,
)

from tests.page.served import Site, served
from tests.page.visitor import Visitor

# Of a shared and loaded machine; nothing waits longer than it has to.
PATIENCE_MS = 20_000
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP: ViewportSize = {"width": 1280, "height": 860}

Visit = Callable[..., Visitor]
Host = Callable[..., Site]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium of the system, headless, with an empty profile."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    assert program is not None, "these tests need chromium: sh tests/system_packages.sh"
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def site() -> Iterator[Site]:
    """An application of one's own, with the offline planner."""
    with served() as site:
        yield site


@pytest.fixture
def host() -> Iterator[Host]:
    """Applications of one's own, with another model; they end after the tabs that visit them."""
    with ExitStack() as sites:
        yield lambda *models, **options: sites.enter_context(served(*models, **options))


class Complaints(list[str]):
    """What the consoles said."""

    lost_network = False

    def forgive_network(self) -> None:
        """Leave out what Chromium itself says, now and later, about requests that got nowhere."""
        self.lost_network = True
        self[:] = [text for text in self if "net::ERR_" not in text]

    def note(self, text: str) -> None:
        """Keep one of them."""
        if not (self.lost_network and "net::ERR_" in text):
            self.append(text)


@pytest.fixture
def complaints() -> Complaints:
    """What the consoles said. A test takes out what it has provoked; nothing else may be left."""
    return Complaints()


@pytest.fixture
def context(
    browser: Browser, complaints: Complaints, host: Host, request: pytest.FixtureRequest
) -> Iterator[BrowserContext]:
    """One browser profile; all tabs of a test belong to it."""
    del host  # Only made first, so that it ends last.
    if "site" in request.fixturenames:
        # Made first, so that it ends last: a tab that follows a run would miss it.
        request.getfixturevalue("site")
    context = browser.new_context(viewport=DESKTOP, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE_MS)

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.note(message.text)

    context.on("console", note)
    context.on("weberror", lambda error: complaints.note(str(error.error)))
    context.on("request", lambda request: _forbid_foreign(request.url, complaints))
    yield context
    context.close()
    assert complaints == []


def _forbid_foreign(url: str, complaints: Complaints) -> None:
    if re.match(r"(http://127\.0\.0\.1:\d+/|data:|blob:)", url) is None:
        complaints.note(f"asks for {url}")


@pytest.fixture
def visit(context: BrowserContext) -> Visit:
    """Opens a tab: `visit(site)`, or `visit(site, "#ses_…")`."""

    def visit(site: Site, path: str = "") -> Visitor:
        page = context.new_page()
        page.goto(f"{site.url}/{path}")
        return Visitor(page)

    return visit
