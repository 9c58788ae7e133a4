"""The documentation for readers that are programs: llms.txt, llms-full.txt, pages as Markdown.

Everything is made from the pages themselves, in the order of their index. A checkout has them in
`docs/`, an installed package beside this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from quart import Response, abort

if TYPE_CHECKING:
    from quart_trio import QuartTrio

__all__ = [
    "Entry",
    "add_documentation",
    "docs_folder",
    "entries",
    "llms_full",
    "llms_index",
    "page_text",
]

_ROW = re.compile(r"^\| \[([^\]]+)\]\(([^)#]+\.md)\) \| (.+) \|$")
_HEADING = re.compile(r"^## (.+)$")
_UTF8 = "charset=utf-8"


class Entry(NamedTuple):
    """A row of the index: the section it stands in, the page's title and path, what it is about."""

    section: str
    title: str
    path: str
    about: str


def docs_folder() -> Path:
    """The folder of the pages."""
    packaged = Path(__file__).with_name("docs")
    return packaged if packaged.is_dir() else Path(__file__).resolve().parents[2]


@cache
def entries() -> tuple[Entry, ...]:
    """Every page that the index lists, in its order; pages outside the folder are left out."""
    text = (docs_folder() / "index.md").read_text(encoding="utf-8")
    return tuple(entry for entry in _rows(text) if not entry.path.startswith("../"))


def _rows(text: str) -> Iterator[Entry]:
    section = ""
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            section = heading[1]
        elif row := _ROW.match(line):
            yield Entry(section, row[1], row[2], row[3])


def page_text(path: str) -> str | None:
    """The text of a page that the index lists; None for any other path."""
    if path not in {"index.md", *(entry.path for entry in entries())}:
        return None
    return (docs_folder() / path).read_text(encoding="utf-8")


@cache
def llms_index() -> str:
    """`llms.txt`: one line for each page, with what it is about."""
    index = (docs_folder() / "index.md").read_text(encoding="utf-8")
    summary = index.split("\n\n", 2)[1]
    lines = ["# Rungent", "", f"> {summary}"]
    section = ""
    for entry in entries():
        if entry.section != section:
            section = entry.section
            lines += ["", f"## {section}", ""]
        lines.append(f"- [{entry.title}]({entry.path}): {entry.about}")
    return "\n".join(lines) + "\n"


@cache
def llms_full() -> str:
    """`llms-full.txt`: every page, one after the other, each below a line with its path."""
    parts = [f"<!-- {entry.path} -->\n\n{page_text(entry.path)}" for entry in entries()]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def add_documentation(app: QuartTrio) -> None:
    """Serve `/llms.txt`, `/llms-full.txt`, and every page under its path, such as `/AGENTS.md`."""

    async def index() -> Response:  # noqa: ASYNC124 - a plain view would run in a thread
        return Response(llms_index(), content_type=f"text/plain; {_UTF8}")

    async def full() -> Response:  # noqa: ASYNC124 - as above
        return Response(llms_full(), content_type=f"text/plain; {_UTF8}")

    async def one(name: str) -> Response:  # noqa: ASYNC124 - as above
        text = page_text(f"{name}.md")
        if text is None:
            abort(404)
        return Response(text, content_type=f"text/markdown; {_UTF8}")

    app.add_url_rule("/llms.txt", view_func=index, endpoint="llms")
    app.add_url_rule("/llms-full.txt", view_func=full, endpoint="llms_full")
    app.add_url_rule("/<path:name>.md", view_func=one, endpoint="page")
