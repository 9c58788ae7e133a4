"""Measures the named benchmarks, or all, and shows, keeps, draws or publishes the figures."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import trio
from rich.console import Console

from tests.benchmarks.figures import Sheet, as_json, as_table, from_json
from tests.benchmarks.page import figures_region, write_region

NAMES = (
    "loop",
    "streaming",
    "latency",
    "append",
    "growth",
    "recovery",
    "followers",
    "replay",
    "memory",
    "start",
    "scaling",
    "mcp",
)


async def main(arguments: argparse.Namespace) -> None:
    """Measure one after another; each table is printed as soon as it is there."""
    console = Console(width=None if sys.stdout.isatty() else 140)
    measured_on = machine()
    console.print(measured_on)
    sheets: dict[str, Sequence[Sheet]] = {}
    for name in arguments.names or NAMES:
        module = importlib.import_module(f"tests.benchmarks.{name}")
        sheets[name] = await module.measure(module.TINY if arguments.tiny else module.FULL)
        for sheet in sheets[name]:
            console.print(as_table(sheet))
        if arguments.json is not None:
            # After each one: whoever loses patience keeps what was measured.
            _write_json(arguments.json, measured_on, sheets)
    publish(arguments, measured_on, sheets)


def publish(
    arguments: argparse.Namespace, measured_on: str, sheets: Mapping[str, Sequence[Sheet]]
) -> None:
    """Draw the figures and write them into the page, where that was asked for."""
    if arguments.plot is not None:
        from tests.benchmarks.plot import draw

        draw(sheets, arguments.plot)
    if arguments.page is not None:
        link = None if arguments.plot is None else _link(arguments.plot, arguments.page)
        write_region(arguments.page, "figures", figures_region(sheets, measured_on, link))


def publish_kept(arguments: argparse.Namespace) -> None:
    """The same with figures that `--json` kept."""
    kept = json.loads(arguments.kept.read_text(encoding="utf-8"))
    sheets = {name: [from_json(each) for each in made] for name, made in kept["benchmarks"].items()}
    publish(arguments, kept["machine"], sheets)


def machine() -> str:
    """What the figures were measured with."""
    today = datetime.now(UTC).date()
    return (
        f"{platform.python_implementation()} {platform.python_version()}, trio {trio.__version__}, "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {today}"
    )


def _write_json(path: Path, measured_on: str, sheets: Mapping[str, Sequence[Sheet]]) -> None:
    benchmarks = {name: [as_json(sheet) for sheet in made] for name, made in sheets.items()}
    whole: dict[str, Any] = {"machine": measured_on, "benchmarks": benchmarks}
    path.write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _link(target: Path, page: Path) -> str:
    return Path(os.path.relpath(target.resolve(), page.resolve().parent)).as_posix()


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    made.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(NAMES)}")
    made.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    made.add_argument("--plot", type=Path, metavar="FILE", help="draw there: .svg or .png")
    made.add_argument(
        "--kept", type=Path, metavar="FILE", help="measure nothing: draw and publish what it holds"
    )
    made.add_argument("--page", type=Path, metavar="FILE", help="write the tables of this page")
    made.add_argument("--tiny", action="store_true", help="only try it: the figures mean nothing")
    return made


if __name__ == "__main__":
    given = parser().parse_args()
    unknown = set(given.names) - set(NAMES)
    if unknown:
        parser().error(f"unknown benchmarks: {', '.join(sorted(unknown))}")
    if given.plot is not None and find_spec("matplotlib") is None:
        parser().error("--plot needs the extra bench: pip install -e '.[dev,bench]'")
    if given.kept is not None:
        publish_kept(given)
    else:
        trio.run(main, given)
