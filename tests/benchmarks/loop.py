"""Runs per second and CPU per run, one by one and many at once, on each store."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import trio

from rungent import Runtime
from tests.benchmarks.counting import count_statements
from tests.benchmarks.figures import Column, Sheet
from tests.benchmarks.workload import AGENT, STORES, InstantModel, one_run


@dataclass(frozen=True)
class Size:
    """Seconds of each pass, rounds, and the runs at once."""

    seconds: float = 1.5
    rounds: int = 3
    at_once: Sequence[int] = (1, 50, 500)


FULL = Size()
TINY = Size(seconds=0, rounds=1, at_once=(1, 3))


async def measure(size: Size = FULL) -> list[Sheet]:
    """Medians over rounds, stores taking turns."""
    found: dict[str, list[list[float]]] = {name: [] for name in STORES}
    for _ in range(size.rounds):
        for name in STORES:
            found[name].append(await _round(name, size))
    columns = [Column("store")]
    for at_once in size.at_once:
        columns += [Column(f"runs/s, {at_once}"), Column(f"CPU ms, {at_once}", 2)]
    columns += [Column(heading) for heading in ("deltas", "commits", "statements")]
    rows: list[list[str | int | float | None]] = []
    for name, rounds in found.items():
        medians = [statistics.median(column) for column in zip(*rounds, strict=True)]
        counted = await count_statements(name)
        stored = (None, None) if counted is None else (counted.commits, counted.statements)
        rows.append([name, *medians, *stored])
    title = f"4 steps, 3 tools, 60 words a run; medians of {size.rounds} rounds"
    note = "Runs at once, and per run: stored deltas (one by one), commits, statements that write (one a row)."
    return [Sheet(title, columns, rows, note)]


async def _round(name: str, size: Size) -> list[float]:
    """Rate and CPU for each number of runs at once; at the end the deltas of one run."""
    async with (
        STORES[name]() as store,
        Runtime(agents=[AGENT], model=InstantModel(), store=store) as runtime,
    ):
        deltas = [await one_run(runtime) for _ in range(5)]
        passes = [await _pass(runtime, at_once, size.seconds) for at_once in size.at_once]
    return [*(figure for made in passes for figure in made), statistics.median(deltas)]


async def _pass(runtime: Runtime, at_once: int, seconds: float) -> tuple[float, float]:
    gc.collect()
    done, wall, cpu = 0, time.perf_counter(), time.process_time()
    while not done or time.perf_counter() - wall < seconds:
        async with trio.open_nursery() as nursery:
            for _ in range(at_once):
                nursery.start_soon(one_run, runtime)
        done += at_once
    took, used = time.perf_counter() - wall, time.process_time() - cpu
    return done / took, used / done * 1000
