"""What programs read is complete, and is served as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from quart_trio import QuartTrio

from rungent.demo.llms import (
    add_documentation,
    docs_folder,
    entries,
    llms_full,
    llms_index,
    page_text,
)
from rungent.testing.asgi import AsgiClient
from tests.docs.pages import DOCS, page_names
from tests.docs.site import stage


def test_the_index_for_programs_lists_every_page_with_what_it_is_about() -> None:
    listed = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): \S", llms_index(), re.MULTILINE)
    assert listed == [entry.path for entry in entries()]
    pages = {name.removeprefix("docs/") for name in page_names() if name.startswith("docs/")}
    assert pages - {"index.md", "examples/trip_planner/instructions.md"} == set(listed)


def test_the_full_text_holds_every_page() -> None:
    text = llms_full()
    for entry in entries():
        assert (DOCS / entry.path).read_text(encoding="utf-8").strip() in text, entry.path


@pytest.mark.parametrize(
    "path", ["../pyproject.toml", "site/conf.py", "nothing.md", "../README.md"]
)
def test_nothing_but_pages_is_handed_out(path: str) -> None:
    assert page_text(path) is None


def test_a_checkout_uses_its_own_pages() -> None:
    assert docs_folder() == DOCS


def test_every_page_of_the_site_is_in_its_navigation(tmp_path: Path) -> None:
    stage(tmp_path / "pages")
    index = (tmp_path / "pages" / "index.md").read_text(encoding="utf-8")
    for entry in entries():
        assert re.search(
            rf"^(.*<)?{re.escape(entry.path.removesuffix('.md'))}>?$", index, re.MULTILINE
        )


async def test_the_demo_serves_the_pages_to_programs() -> None:
    app = QuartTrio("demo")
    add_documentation(app)
    async with AsgiClient(app) as client:
        for path, text in [
            ("/llms.txt", llms_index()),
            ("/llms-full.txt", llms_full()),
            ("/AGENTS.md", page_text("AGENTS.md")),
            ("/decisions/0001-pure-lifecycle.md", page_text("decisions/0001-pure-lifecycle.md")),
        ]:
            answer = await client.request("GET", path)
            assert (answer.status, answer.body.decode()) == (200, text)
        for path in ("/nothing.md", "/../README.md", "/examples/trip_planner/instructions.md"):
            assert (await client.request("GET", path)).status == 404
