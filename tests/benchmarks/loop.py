"""Runs per second and CPU per run, one by one and fifty at once, on each store."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import cast

import trio
from rich.table import Table

from rungent import Runtime
from rungent.store import Store
from tests.benchmarks.counting import count_statements
from tests.benchmarks.workload import AGENT, STORES, InstantModel, one_run

SECONDS = 1.5
ROUNDS = 3
AT_ONCE = 50


async def table() -> Table:
    """The table of this benchmark: medians over rounds, stores taking turns."""
    rows: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in STORES}
    for _ in range(ROUNDS):
        for name, factory in STORES.items():
            rows[name].append(await _measure(factory))
    shown = Table(title=f"4 steps, 3 tools, 60 deltas a run; medians of {ROUNDS} rounds")
    for heading in ("store", "runs/s, 1", "CPU ms, 1", f"runs/s, {AT_ONCE}", f"CPU ms, {AT_ONCE}"):
        shown.add_column(heading, justify="left" if heading == "store" else "right")
    shown.add_column("commits", justify="right")
    shown.add_column("statements", justify="right")
    for name, rounds in rows.items():
        medians = [statistics.median(column) for column in zip(*rounds, strict=True)]
        counted = await count_statements(name)
        shown.add_row(
            name,
            f"{medians[0]:.0f}",
            f"{medians[1]:.2f}",
            f"{medians[2]:.0f}",
            f"{medians[3]:.2f}",
            "–" if counted is None else str(counted.commits),
            "–" if counted is None else str(counted.statements),
        )
    return shown


async def _measure(factory: Callable[[], object]) -> tuple[float, float, float, float]:
    opened = cast("AbstractAsyncContextManager[Store]", factory())
    async with opened as store:
        runtime = Runtime(agents=[AGENT], model=InstantModel(), store=store)
        async with runtime:
            for _ in range(5):
                await one_run(runtime)
            alone = await _pass(runtime, 1)
            together = await _pass(runtime, AT_ONCE)
    return (*alone, *together)


async def _pass(runtime: Runtime, at_once: int) -> tuple[float, float]:
    gc.collect()
    done, wall, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - wall < SECONDS:
        async with trio.open_nursery() as nursery:
            for _ in range(at_once):
                nursery.start_soon(one_run, runtime)
        done += at_once
    took, used = time.perf_counter() - wall, time.process_time() - cpu
    return done / took, used / done * 1000
