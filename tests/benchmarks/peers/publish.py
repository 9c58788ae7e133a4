"""Writes the region of the peers in docs/performance.md: `python -m … RESULTS.jsonl PAGE`."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.benchmarks.figures import Column, Sheet, as_markdown
from tests.benchmarks.page import write_region

__all__ = ["peers_region"]

_COLUMNS = (
    Column("peer, variant"),
    Column("runs/s"),
    Column("CPU ms a run", 2),
    Column("runs/s, 50 at once"),
    Column("CPU ms, 50 at once", 2),
    Column("failed"),
    Column("statements"),
    Column("commits"),
)


def peers_region(lines: Iterable[str]) -> str:
    """The table of medians over rounds, one row for each variant and setting of SQLite."""
    found: dict[str, list[dict[str, Any]]] = {}
    versions: dict[str, dict[str, str]] = {}
    for line in lines:
        record = json.loads(line)
        versions[record["peer"]] = record["versions"]
        shipped = ", SQLite as shipped" if record["sqlite"] == "shipped" else ""
        for name, result in record["variants"].items():
            found.setdefault(f"{record['peer']}: {name}{shipped}", []).append(result)
    rows = [[name, *_medians(rounds)] for name, rounds in found.items()]
    busy = [
        result[part]["other_cores_busy"]
        for rounds in found.values()
        for result in rounds
        for part in ("sequential", "concurrent")
        if "error" not in result
    ]
    rounds = max((len(results) for results in found.values()), default=0)
    note = (
        f"Other processes kept {statistics.median(busy):.2f} cores busy in the median pass and "
        f"{max(busy):.2f} in the worst."
        if busy
        else ""
    )
    sheet = Sheet(f"The same run in each; medians of {rounds} rounds", _COLUMNS, rows, note)
    listed = [
        f"- {peer}: " + ", ".join(f"{name} {number}" for name, number in packages.items())
        for peer, packages in versions.items()
        if packages
    ]
    return as_markdown(sheet) + "\n\n" + "\n".join(listed)


def _medians(rounds: list[dict[str, Any]]) -> list[float | None]:
    good = [result for result in rounds if "error" not in result]
    if not good:
        return [None] * (len(_COLUMNS) - 1)
    figures = [
        statistics.median(result[part][key] for result in good)
        for part in ("sequential", "concurrent")
        for key in ("runs_per_s", "cpu_ms_per_run")
    ]
    failed = sum(result[part]["failed"] for result in good for part in ("sequential", "concurrent"))
    return [
        *figures,
        failed,
        good[0].get("statements_per_run"),
        good[0].get("commits_per_run"),
    ]


if __name__ == "__main__":
    results, target = map(Path, sys.argv[1:])
    write_region(target, "peers", peers_region(results.read_text("utf-8").splitlines()))
