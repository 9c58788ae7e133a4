"""Prints the tables of the named benchmarks, or of all."""

from __future__ import annotations

import importlib
import platform
import sys

import trio
from rich.console import Console

NAMES = ("loop", "streaming", "latency", "append", "followers", "replay", "mcp")


async def main(names: list[str]) -> None:
    """Measure and print."""
    console = Console()
    console.print(f"Python {platform.python_version()}, trio {trio.__version__}")
    for name in names or NAMES:
        module = importlib.import_module(f"tests.benchmarks.{name}")
        console.print(await module.table())


if __name__ == "__main__":
    trio.run(main, sys.argv[1:])
