"""Sheets of figures: measured values with headings, shown in a terminal, in a page or as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

__all__ = ["Column", "Sheet", "Value", "as_json", "as_markdown", "as_table", "from_json"]

Value = str | int | float | None


@dataclass(frozen=True)
class Column:
    """A heading with its unit, and how many decimals its numbers have."""

    heading: str
    digits: int = 0

    def shown(self, value: Value) -> str:
        """The value as people read it; what was not measured is a dash."""
        if value is None:
            return "–"
        return value if isinstance(value, str) else f"{value:,.{self.digits}f}"


@dataclass(frozen=True)
class Sheet:
    """One table. The first column names its rows, the others hold figures."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Value]]
    note: str = ""

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"a row of {self.title!r} does not fit its columns")

    def lines(self) -> list[list[str]]:
        """The rows as people read them."""
        return [
            [column.shown(value) for column, value in zip(self.columns, row, strict=True)]
            for row in self.rows
        ]


def as_table(sheet: Sheet) -> Table:
    """For a terminal."""
    shown = Table(title=sheet.title, caption=sheet.note or None)
    for number, column in enumerate(sheet.columns):
        shown.add_column(column.heading, justify="right" if number else "left")
    for line in sheet.lines():
        shown.add_row(*line)
    return shown


def as_markdown(sheet: Sheet) -> str:
    """For a page: the title, the table, the note."""
    headings = [column.heading for column in sheet.columns]
    rule = ["---", *("--:" for _ in headings[1:])]
    table = "\n".join(_row(line) for line in (headings, rule, *sheet.lines()))
    parts = [f"**{sheet.title}**", table]
    if sheet.note:
        parts.append(sheet.note)
    return "\n\n".join(parts)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def as_json(sheet: Sheet) -> Mapping[str, Any]:
    """The raw values, each under its heading."""
    headings = [column.heading for column in sheet.columns]
    rows = [dict(zip(headings, row, strict=True)) for row in sheet.rows]
    digits = [column.digits for column in sheet.columns]
    return {"title": sheet.title, "note": sheet.note, "digits": digits, "rows": rows}


def from_json(kept: Mapping[str, Any]) -> Sheet:
    """The sheet that `as_json` kept."""
    headings = list(kept["rows"][0])
    columns = [Column(*each) for each in zip(headings, kept["digits"], strict=True)]
    return Sheet(kept["title"], columns, [[*row.values()] for row in kept["rows"]], kept["note"])
