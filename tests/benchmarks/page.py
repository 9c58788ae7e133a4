"""The regions of docs/performance.md that commands write: everything between two markers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.benchmarks.figures import Sheet, as_markdown

__all__ = ["figures_region", "write_region"]


def write_region(page: Path, name: str, text: str) -> None:
    """Replace what stands between `<!-- name:begin -->` and `<!-- name:end -->`.

    Raises ValueError unless the page has both markers, once and in this order; then the page
    stays as it is.
    """
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before = page.read_text(encoding="utf-8")
    if before.count(begin) != 1 or before.count(end) != 1:
        raise ValueError(f"{page} needs {begin} and {end}, each once")
    head, _, rest = before.partition(begin)
    if end not in rest:
        raise ValueError(f"{page} has {end} before {begin}")
    tail = rest.partition(end)[2]
    page.write_text(f"{head}{begin}\n\n{text.strip()}\n\n{end}{tail}", encoding="utf-8")


def figures_region(sheets: Mapping[str, Sequence[Sheet]], machine: str, plot: str | None) -> str:
    """One heading for each benchmark with its tables; `plot` is the link to a picture."""
    parts = [f"Measured on {machine}."]
    if plot is not None:
        parts.append(f"![What a run, a start and a worker cost]({plot})")
    for name, made in sheets.items():
        parts += [f"### `{name}`", *map(as_markdown, made)]
    return "\n\n".join(parts)
