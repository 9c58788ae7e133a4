"""One picture of the figures that have a shape: rates, growth and workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.benchmarks.figures import Sheet

__all__ = ["draw"]

Sheets = Mapping[str, Sequence[Sheet]]


def draw(sheets: Sheets, path: Path) -> None:
    """Draw what was measured. Needs the extra `bench`; the file's suffix says the format."""
    matplotlib: Any = import_module("matplotlib")
    matplotlib.use("Agg")
    # The same figures make the same file.
    matplotlib.rcParams["svg.hashsalt"] = "rungent"
    plotting: Any = import_module("matplotlib.pyplot")
    parts = [part for name, part in _PARTS.items() if name in sheets]
    if not parts:
        raise SystemExit(f"nothing to draw: measure one of {', '.join(_PARTS)}")
    across = min(2, len(parts))
    down = -(-len(parts) // across)
    figure, grid = plotting.subplots(down, across, figsize=(6.2 * across, 3.6 * down))
    axes = list(getattr(grid, "flat", [grid]))
    for part, axis in zip(parts, axes, strict=False):
        part(sheets, axis)
        axis.spines[["top", "right"]].set_visible(False)
    for unused in axes[len(parts) :]:
        unused.set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plotting.close(figure)


def _loop(sheets: Sheets, axis: Any) -> None:
    sheet = sheets["loop"][0]
    rates = [number for number, column in enumerate(sheet.columns) if "runs/s" in column.heading]
    width = 0.8 / len(rates)
    for place, number in enumerate(rates):
        heading = sheet.columns[number].heading.removeprefix("runs/s, ")
        offsets = [row + (place - (len(rates) - 1) / 2) * width for row in range(len(sheet.rows))]
        axis.bar(offsets, [row[number] for row in sheet.rows], width, label=f"{heading} at once")
    axis.set_xticks(range(len(sheet.rows)), [row[0] for row in sheet.rows])
    axis.set_ylabel("runs/s")
    axis.set_title("Whole runs: 4 steps, 3 tools, 60 words")
    axis.legend(frameon=False)


def _append(sheets: Sheets, axis: Any) -> None:
    sheet = sheets["append"][0]
    at_once = [int(column.heading) for column in sheet.columns[1:]]
    for name, *rates in sheet.rows:
        if rates[-1] is None:
            axis.axhline(rates[0], linestyle=":", linewidth=1, color="gray")
            axis.annotate(str(name), (at_once[-1], rates[0]), ha="right", va="bottom", fontsize=7)
        else:
            axis.plot(at_once, rates, marker="o", label=name)
    axis.set_xscale("log")
    axis.set_xticks(at_once, [str(number) for number in at_once])
    axis.set_xlabel("runs at once")
    axis.set_ylabel("commits/s")
    axis.set_title("Appending one event to each run")
    axis.legend(frameon=False, fontsize=8)


def _growth(sheets: Sheets, axis: Any) -> None:
    rows = [row for row in sheets["growth"][0].rows if "KiB" not in str(row[0])]
    names = [str(row[0]).removesuffix(", ms") for row in rows]
    axis.barh(names, [row[-1] for row in rows])
    axis.axvline(1, color="gray", linewidth=1)
    axis.invert_yaxis()
    headings = [column.heading for column in sheets["growth"][0].columns]
    axis.set_xlabel(f"cost at {headings[2]} messages, as a multiple of that at {headings[1]}")
    axis.set_title("A long session")


def _scaling(sheets: Sheets, axis: Any) -> None:
    rows = sheets["scaling"][0].rows
    axis.plot([int(str(row[0])) for row in rows], [row[1] for row in rows], marker="o")
    axis.set_ylim(bottom=0)
    axis.set_xticks([int(str(row[0])) for row in rows])
    axis.set_xlabel("worker processes")
    axis.set_ylabel("runs/s")
    axis.set_title(sheets["scaling"][0].title)


_PARTS: Mapping[str, Callable[[Sheets, Any], None]] = {
    "loop": _loop,
    "append": _append,
    "growth": _growth,
    "scaling": _scaling,
}
