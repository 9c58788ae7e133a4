"""Deltas per second of one streaming run, and what each costs, on each store."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import cast

from rich.table import Table

from rungent import Runtime
from rungent.store import Store
from tests.benchmarks.workload import AGENT, STORES, InstantModel, one_run

CHUNKS = 20_000
ROUNDS = 3


async def table() -> Table:
    """The table of this benchmark."""
    shown = Table(title=f"One run streaming {CHUNKS:,} chunks; medians of {ROUNDS} rounds")
    shown.add_column("store")
    for heading in ("chunks/s", "stored deltas", "CPU µs a chunk"):
        shown.add_column(heading, justify="right")
    for name, factory in STORES.items():
        rounds = [await _measure(factory) for _ in range(ROUNDS)]
        rate, deltas, cpu = (statistics.median(column) for column in zip(*rounds, strict=True))
        shown.add_row(name, f"{rate:,.0f}", f"{deltas:,.0f}", f"{cpu:.1f}")
    return shown


async def _measure(factory: Callable[[], object]) -> tuple[float, float, float]:
    opened = cast("AbstractAsyncContextManager[Store]", factory())
    async with opened as store:
        runtime = Runtime(agents=[AGENT], model=InstantModel(CHUNKS), store=store)
        async with runtime:
            wall, cpu = time.perf_counter(), time.process_time()
            deltas = await one_run(runtime)
            took, used = time.perf_counter() - wall, time.process_time() - cpu
    return CHUNKS / took, deltas, used / CHUNKS * 1e6
