"""Reading the documentation: pages, their headings, links, tables and code blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

Row = tuple[str, ...]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CELL = re.compile(r"(?<!\\)\|")


class Block(NamedTuple):
    """A fenced block: its language, its text, and the line of the page it starts on."""

    language: str
    text: str
    line: int


@cache
def page(name: str) -> str:
    """The text of a page; the name is relative to the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


@cache
def page_names() -> tuple[str, ...]:
    """README and every page under docs, also those of the example."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
    ours = (path for path in found if "node_modules" not in path.parts)
    return tuple(str(path.relative_to(ROOT)) for path in ours)


def blocks(name: str, language: str) -> list[Block]:
    """The fenced blocks of one language, in order."""
    text = page(name)
    return [
        Block(found[1], found[2], text.count("\n", 0, found.start(2)) + 1)
        for found in _FENCE.finditer(text)
        if found[1] == language
    ]


def prose(name: str) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", page(name))


def links(name: str) -> list[str]:
    """The targets of all links of a page."""
    return _LINK.findall(prose(name))


def anchors(name: str) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    titles = re.findall(r"^#+ (.+)$", prose(name), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def section(name: str, title: str) -> str:
    """What stands below a heading of the second level, up to the next one."""
    found = re.search(
        rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", prose(name), re.MULTILINE | re.DOTALL
    )
    if found is None:
        raise AssertionError(f"{name} has no section {title!r}")
    return found[1]


def rows(text: str) -> Iterator[Row]:
    """The rows of all tables in a text, without their heads."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if line.startswith("|") and not line.startswith("|---") and not following.startswith("|--"):
            yield tuple(cell.strip() for cell in _CELL.split(line)[1:-1])


def code(cell: str) -> str:
    """The first `code` in a cell, or the empty string."""
    found = re.search(r"`([^`]+)`", cell)
    return found[1] if found else ""
