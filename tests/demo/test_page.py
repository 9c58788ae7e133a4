"""The page as it is served: complete, cached by name, and under a strict policy."""

from __future__ import annotations

import re

import pytest
from quart.typing import TestClientProtocol as Client
from quart_trio import QuartTrio

from rungent.demo.page import page_blueprint


@pytest.fixture
def client() -> Client:
    """A client of an application that has nothing but the page."""
    app = QuartTrio(__name__)
    app.register_blueprint(page_blueprint())
    return app.test_client()


async def test_the_document_names_files_that_are_there_and_may_be_kept(
    client: Client,
) -> None:
    document = await client.get("/")
    assert document.content_type == "text/html; charset=utf-8"
    assert document.headers["Cache-Control"] == "no-cache"
    names = re.findall(r'(?:src|href)="([^"]+)"', await document.get_data(as_text=True))
    assert len(names) == 3
    for name in names:
        file = await client.get(f"/{name}")
        assert file.status_code == 200
        assert file.headers["Cache-Control"] == "public, max-age=31536000, immutable"


async def test_nothing_runs_or_loads_that_is_not_the_page_s_own(
    client: Client,
) -> None:
    document = await client.get("/")
    policy = document.headers["Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert {rules[name] for name in ("script-src", "style-src", "connect-src")} == {"'self'"}
    assert "unsafe" not in policy
    assert "http" not in policy
    text = await document.get_data(as_text=True)
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", text)
    assert document.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("name", ["index.html", "nothing.js", "..%2Fapp.py", "../app.py"])
async def test_only_the_built_files_are_served(client: Client, name: str) -> None:
    assert (await client.get(f"/assets/{name}")).status_code == 404
