"""How long a fresh process needs to import things and to say what it can do."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import trio

from tests.benchmarks.figures import Column, Sheet
from tests.benchmarks.processes import ROOT

COMMANDS: Mapping[str, Sequence[str]] = {
    "python -c pass": ("-c", "pass"),
    "import rungent": ("-c", "import rungent"),
    "rungent --help": ("-m", "rungent", "--help"),
    "from rungent import Agent, tool": ("-c", "from rungent import Agent, tool"),
    "from rungent import Runtime": ("-c", "from rungent import Runtime"),
    "… and OpenAICompatibleModel": (
        "-c",
        "from rungent import Runtime; from rungent.llm import OpenAICompatibleModel",
    ),
    "… and SQLAlchemyStore": (
        "-c",
        "from rungent import Runtime; from rungent.sqlalchemy import SQLAlchemyStore",
    ),
    "… and create_app": (
        "-c",
        "from rungent import Runtime; from rungent.asgi import create_app",
    ),
}
GOALS = {"import rungent": 150, "rungent --help": 250}
PARTS = ("trio", "pydantic", "httpx", "rungent")
_LINE = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s+([\w.]+)")


@dataclass(frozen=True)
class Size:
    """Fresh processes for each command."""

    rounds: int = 15
    profiled: int = 5


FULL = Size()
TINY = Size(rounds=1, profiled=1)


async def measure(size: Size = FULL) -> list[Sheet]:
    """Commands take turns, so that all meet the same neighbours."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for _ in range(size.rounds):
        for name, command in COMMANDS.items():
            found[name].append(await trio.to_thread.run_sync(_fresh, command))
    rows: list[list[str | float | None]] = []
    for name, rounds in found.items():
        wall, cpu = zip(*rounds, strict=True)
        rows.append([name, statistics.median(wall), min(wall), min(cpu), GOALS.get(name)])
    columns = ("fresh process", "median ms", "least ms", "least CPU ms", "goal ms")
    title = f"From nothing to the end of the process; {size.rounds} of each"
    return [
        Sheet(title, [Column(heading) for heading in columns], rows),
        await trio.to_thread.run_sync(_dominating, size.profiled),
    ]


def _fresh(command: Sequence[str]) -> tuple[float, float]:
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL, cwd=ROOT)
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command} failed")
    return took * 1000, (usage.ru_utime + usage.ru_stime) * 1000


def _dominating(rounds: int) -> Sheet:
    """What the time of importing the runtime goes to, from the interpreter's own protocol."""
    found: dict[str, list[float]] = {}
    command = [sys.executable, "-X", "importtime", "-c", "from rungent import Runtime"]
    for _ in range(rounds):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        spent: dict[str, float] = {}
        for own, module in _LINE.findall(done.stderr):
            root = module.partition(".")[0]
            root = "pydantic" if root == "pydantic_core" else root
            part = root if root in PARTS else "the rest"
            spent[part] = spent.get(part, 0) + int(own) / 1000
        for part, milliseconds in spent.items():
            found.setdefault(part, []).append(milliseconds)
    least = {part: min(times) for part, times in found.items()}
    rows = sorted(least.items(), key=lambda row: -row[1])
    columns = (Column("modules of"), Column("own ms", 1))
    note = "The rest is the standard library and what the named packages import."
    return Sheet("Where `from rungent import Runtime` spends its time, least", columns, rows, note)
