"""Deltas per second of one streaming run, and what each costs, on each store."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

from rungent import Runtime
from tests.benchmarks.figures import Column, Sheet, Value
from tests.benchmarks.workload import AGENT, STORES, InstantModel, one_run


@dataclass(frozen=True)
class Size:
    """Chunks of the reply, and rounds."""

    chunks: int = 20_000
    rounds: int = 3


FULL = Size()
TINY = Size(chunks=50, rounds=1)


async def measure(size: Size = FULL) -> list[Sheet]:
    """The whole run counts: its opening and its three tools, too."""
    rows: list[list[Value]] = []
    for name in STORES:
        rounds = [await _round(name, size.chunks) for _ in range(size.rounds)]
        rows.append([name, *(statistics.median(column) for column in zip(*rounds, strict=True))])
    columns = (
        Column("store"),
        Column("chunks/s"),
        Column("stored deltas"),
        Column("CPU µs a chunk", 1),
    )
    title = f"One run streaming {size.chunks:,} chunks; medians of {size.rounds} rounds"
    return [Sheet(title, columns, rows)]


async def _round(name: str, chunks: int) -> tuple[float, float, float]:
    async with (
        STORES[name]() as store,
        Runtime(agents=[AGENT], model=InstantModel(chunks), store=store) as runtime,
    ):
        wall, cpu = time.perf_counter(), time.process_time()
        deltas = await one_run(runtime)
        took, used = time.perf_counter() - wall, time.process_time() - cpu
    return chunks / took, deltas, used / chunks * 1e6
