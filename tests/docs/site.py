"""Builds the documentation site: `python -m tests.docs.site [FOLDER]`, by default `build/site`.

Any warning fails the build: a page outside the navigation, a link or an anchor that leads nowhere.
Every page has its Markdown beside it, `llms.txt` lists them, and `llms-full.txt` holds them all.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from rungent.demo.llms import entries, llms_full, llms_index
from tests.docs.pages import DOCS, ROOT

__all__ = ["foreign_resources", "main", "stage"]

OUTSIDE = ("CHANGELOG.md", "CONTRIBUTING.md")
NOT_PUBLISHED = shutil.ignore_patterns("__pycache__", "site", "instructions.md", "page")
_LOADED = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=\"(https?:)?//[^>]*>")


def main(arguments: list[str]) -> int:
    """Build the site; returns 0, or 1 after telling what is wrong."""
    target = Path(arguments[0]) if arguments else ROOT / "build" / "site"
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        pages = Path(folder) / "pages"
        stage(pages)
        settings = ["-W", "--keep-going", "-q", "-b", "html", "-c", str(DOCS / "site")]
        doctrees = ["-d", str(Path(folder) / "doctrees")]
        command = [sys.executable, "-m", "sphinx", *settings, *doctrees, str(pages), str(target)]
        if subprocess.run(command, check=False).returncode != 0:
            return 1
        _add_markdown(pages, target)
    foreign = list(foreign_resources(target))
    for line in foreign:
        print(f"loads something from elsewhere: {line}", file=sys.stderr)
    if not foreign:
        print(f"site: {len(list(target.rglob('*.html')))} pages in {target}")
    return 1 if foreign else 0


def stage(pages: Path) -> None:
    """Lay out what the site is made of: the pages, those beside `docs/`, and the navigation."""
    shutil.copytree(DOCS, pages, ignore=NOT_PUBLISHED)
    for name in OUTSIDE:
        shutil.copy(ROOT / name, pages / name)
    for page in pages.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        for name in OUTSIDE:
            # A page in a folder has one more step to the top; there it stands one level lower.
            text = text.replace(f"](../{name}", f"]({name}").replace(
                f"](../../{name}", f"](../{name}"
            )
        page.write_text(text, encoding="utf-8")
    index = pages / "index.md"
    index.write_text(index.read_text(encoding="utf-8") + _navigation(), encoding="utf-8")


def _navigation() -> str:
    """The sections of the index as hidden trees, which the theme shows beside each page."""
    lines: list[str] = []
    for section, pages in groupby(entries(), key=lambda entry: entry.section):
        lines += ["", "```{toctree}", ":hidden:", f":caption: {section}", ""]
        for entry in pages:
            name = entry.path.removesuffix(".md")
            lines.append(name if entry.title.isdigit() else f"{entry.title} <{name}>")
        lines.append("```")
    project = "\n".join(name.removesuffix(".md") for name in OUTSIDE)
    return "\n".join(lines) + f"\n\n```{{toctree}}\n:hidden:\n:caption: Project\n\n{project}\n```\n"


def _add_markdown(pages: Path, target: Path) -> None:
    for page in pages.rglob("*.md"):
        copy = target / page.relative_to(pages)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(page, copy)
    shutil.copy(DOCS / "index.md", target / "index.md")
    (target / "llms.txt").write_text(llms_index(), encoding="utf-8")
    (target / "llms-full.txt").write_text(llms_full(), encoding="utf-8")


def foreign_resources(site: Path) -> Iterator[str]:
    """Each tag that makes a browser load something from another place than the site."""
    for page in sorted(site.rglob("*.html")):
        for found in _LOADED.finditer(page.read_text(encoding="utf-8")):
            yield f"{page.relative_to(site)}: {found[0]}"
    for sheet in sorted(site.rglob("*.css")):
        if re.search(r"url\([\"']?(?:https?:)?//|@import\s+[\"']https?:", sheet.read_text("utf-8")):
            yield str(sheet.relative_to(site))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
