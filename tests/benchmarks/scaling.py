"""Runs per second of one to eight worker processes over one database."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import trio
from sqlalchemy import create_engine

from rungent import Runtime
from rungent.sqlalchemy import SQLAlchemyStore
from tests.benchmarks.figures import Column, Sheet, Value
from tests.benchmarks.processes import Child, child
from tests.benchmarks.workload import AGENT, InstantModel, one_run
from tests.persistence.postgres import FAST, run_server


@dataclass(frozen=True)
class Size:
    """Worker processes, seconds of each pass, runs at once per worker; PostgreSQL or a file."""

    workers: Sequence[int] = (1, 2, 4, 8)
    seconds: float = 4
    at_once: int = 10
    server: bool = True


FULL = Size()
TINY = Size(workers=(1, 2), seconds=0, at_once=2, server=False)


async def measure(size: Size = FULL) -> list[Sheet]:
    """Every worker drives runs of its own; they share the database and the cores."""
    async with _database(size.server) as url:
        rows = [await _together(url, workers, size) for workers in size.workers]
    alone = rows[0][1]
    columns = (
        Column("workers"),
        Column("runs/s"),
        Column("against one", 2),
        Column("CPU ms of the worker a run", 2),
    )
    shown: list[list[Value]] = [
        [str(workers), rate, rate / alone, cpu] for workers, rate, cpu in rows
    ]
    title = f"Worker processes over one {'PostgreSQL' if size.server else 'SQLite file'}"
    note = f"{size.at_once} runs at once in each; the database runs on the same {os.cpu_count()} cores."
    return [Sheet(title, columns, shown, note)]


@asynccontextmanager
async def _database(server: bool) -> AsyncGenerator[str]:
    with tempfile.TemporaryDirectory() as folder:
        if not server:
            url = f"sqlite:///{Path(folder) / 'scaling.db'}"
            await SQLAlchemyStore(create_engine(url)).create_schema()
            yield url
            return
        with run_server(FAST) as postgres:
            url = f"postgresql+psycopg{postgres.url}"
            await SQLAlchemyStore(create_engine(url)).create_schema()
            yield url


async def _together(url: str, workers: int, size: Size) -> tuple[int, float, float]:
    async with AsyncExitStack() as stack:
        children = [
            await stack.enter_async_context(
                child(__name__, url, str(size.seconds), str(size.at_once))
            )
            for _ in range(workers)
        ]
        for worker in children:
            await worker.line()
        found: list[list[float]] = []

        async def go(worker: Child) -> None:
            await worker.tell("go")
            found.append([float(word) for word in (await worker.line()).split()])

        async with trio.open_nursery() as nursery:
            for worker in children:
                nursery.start_soon(go, worker)
    rate = sum(done / took for done, took, _ in found)
    return workers, rate, sum(cpu for *_, cpu in found) / sum(done for done, *_ in found) * 1000


async def main(url: str, seconds: float, at_once: int) -> None:
    """One worker: warm up, say ready, wait for the word, then say runs, seconds, CPU seconds."""
    store = SQLAlchemyStore(create_engine(url))
    done = 0

    async def drive(runtime: Runtime, until: float) -> None:
        nonlocal done
        while True:
            await one_run(runtime)
            done += 1
            if time.perf_counter() >= until:
                return

    async with Runtime(agents=[AGENT], model=InstantModel(), store=store) as runtime:
        await one_run(runtime)
        print("ready", flush=True)
        await trio.to_thread.run_sync(sys.stdin.readline)
        began, cpu = time.perf_counter(), time.process_time()
        async with trio.open_nursery() as nursery:
            for _ in range(at_once):
                nursery.start_soon(drive, runtime, began + seconds)
        print(done, time.perf_counter() - began, time.process_time() - cpu, flush=True)


if __name__ == "__main__":
    trio.run(main, sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
