"""Taking over many runs whose worker is gone: seconds until all go on and have ended, queries."""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import trio
from sqlalchemy import create_engine

from rungent import Event, Runtime
from rungent.ids import system_now
from rungent.llm import ModelCompleted, ModelRequest, TextDelta
from rungent.sqlalchemy import SQLAlchemyStore
from tests.benchmarks.counting import counting
from tests.benchmarks.figures import Column, Sheet, Value
from tests.benchmarks.processes import child
from tests.benchmarks.workload import AGENT, USER, InstantModel

TERMINAL = ("run.completed", "run.failed", "run.cancelled")


@dataclass(frozen=True)
class Size:
    """Interrupted runs, and how often the new worker looks for them (seconds)."""

    runs: int = 1_000
    intervals: tuple[float, ...] = (5, 0.1)


FULL = Size()
TINY = Size(runs=3, intervals=(0.01,))


class SilentModel(InstantModel):
    """Never answers: its worker is lost within the first model step."""

    def __init__(self) -> None:
        super().__init__()
        self._told = trio.Event()

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[AsyncGenerator[TextDelta | ModelCompleted]]:
        """One attempt."""
        async with super().stream(request) as chunks:
            await self._told.wait()
            yield chunks


async def measure(size: Size = FULL) -> list[Sheet]:
    """A worker is killed; another one, for which all leases are over, takes its runs."""
    rows: list[list[Value]] = [
        [f"{interval:g}", *await _taken(size.runs, interval)] for interval in size.intervals
    ]
    columns = (
        Column("recovery_interval_seconds"),
        Column("all resumed s", 2),
        Column("all ended s", 2),
        Column("CPU ms a run", 2),
        Column("commits a run", 1),
        Column("writes a run", 1),
        Column("reads a run", 1),
    )
    title = f"Recovery of {size.runs:,} interrupted runs on SQLite"
    note = "From the start of the new worker. One sweep claims at most 100 runs, then waits."
    return [Sheet(title, columns, rows, note)]


async def _taken(runs: int, interval: float) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "recovery.db"
        await _interrupted(database, runs)
        return await _recovered(database, runs, interval)


async def _interrupted(database: Path, runs: int) -> None:
    """A worker with so many runs inside a model step is killed."""
    async with child(__name__, str(database), str(runs)) as worker:
        await worker.line()
        worker.process.send_signal(signal.SIGKILL)


async def _recovered(database: Path, runs: int, interval: float) -> list[float]:
    engine = create_engine(f"sqlite:///{database}")
    counts = counting(engine)
    resumed, ended, over = dict[str, float](), dict[str, float](), trio.Event()

    def listen(event: Event) -> None:
        resumed.setdefault(event.run_id, time.perf_counter())
        if event.type in TERMINAL:
            ended[event.run_id] = time.perf_counter()
            if event.type != "run.completed":
                raise RuntimeError(event.type)
            if len(ended) == runs:
                over.set()

    def later() -> datetime:
        # The lost worker's leases last 30 s.
        return system_now() + timedelta(minutes=5)

    runtime = Runtime(
        agents=[AGENT],
        model=InstantModel(),
        store=SQLAlchemyStore(engine),
        event_listener=listen,
        recovery_interval_seconds=interval,
        now=later,
    )
    began, cpu = time.perf_counter(), time.process_time()
    async with runtime:
        with trio.fail_after(600):
            await over.wait()
    used = (time.process_time() - cpu) / runs * 1000
    spans = [max(moments.values()) - began for moments in (resumed, ended)]
    return [*spans, used, *(n / runs for n in (counts.commits, counts.statements, counts.reads))]


async def main(database: str, runs: int) -> None:
    """Create the runs, say that all wait for the model, and wait to be killed."""
    waiting, all_wait = set[str](), trio.Event()

    def listen(event: Event) -> None:
        if event.type == "model.started":
            waiting.add(event.run_id)
            if len(waiting) == runs:
                all_wait.set()

    store = SQLAlchemyStore(create_engine(f"sqlite:///{database}"))
    await store.create_schema()
    runtime = Runtime(agents=[AGENT], model=SilentModel(), store=store, event_listener=listen)
    async with runtime:
        for _ in range(runs):
            session = await runtime.create_session(identity=USER)
            await runtime.create_run(session.id, "Measure this.", identity=USER)
        await all_wait.wait()
        print("ready", flush=True)
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main, sys.argv[1], int(sys.argv[2]))
