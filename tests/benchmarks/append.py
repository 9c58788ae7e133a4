"""Appending one event to each of many runs at once, and what a long log costs.

A commit here is one transition of a drive with one delta. The raw drivers make the same change,
one transaction each, without any of our code.
"""

from __future__ import annotations

import gc
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import trio
from rich.console import Group
from rich.table import Table
from sqlalchemy import create_engine, text

from rungent.persistence import RungentBase, SQLAlchemyStore
from rungent.records import Run, RunStatus
from rungent.store import Store
from rungent.store.port import Commit
from rungent.testing.store_contract_changes import taken_by
from rungent.testing.store_samples import OWNER, at, create_running, step, task_of
from tests.persistence.postgres import DURABLE, FAST, run_server
from tests.persistence.stores import opened, sql_store

FILES = ("sqlite", "aiosqlite")
SERVERS = ("psycopg", "asyncpg", "psycopg_async")
AT_ONCE = (1, 5, 10, 50, 200)
ROUNDS = 3
COMMITS = 6_000
LENGTHS = (100, 20_000)
REPEATS = 15
_UPDATE = (
    "UPDATE rungent_runs SET version = version + 1, event_seq = ?, updated_at = ?"
    " WHERE id = ? AND version = ? AND lease_owner = ? AND fencing_token = ?"
)
_INSERT = (
    "INSERT INTO rungent_events (run_id, seq, id, type, data, created_at) VALUES (?, ?, ?, ?, ?, ?)"
)


async def table() -> Group:
    """Rates with and without waiting for the disk, then the price of length."""
    with run_server(FAST) as fast, run_server(DURABLE) as durable:
        return Group(
            await _rates("Files, and a server without fsync", (*FILES, *SERVERS), fast.url),
            await _rates("A server with fsync", SERVERS, durable.url),
            await _growth((*FILES, *SERVERS), fast.url),
        )


async def _rates(title: str, kinds: Sequence[str], postgres: str) -> Table:
    columns = [("raw", 1), *(("", at_once) for at_once in AT_ONCE)]
    cells: dict[tuple[str, str, int], list[tuple[float, float]]] = {}
    for _ in range(ROUNDS):
        for kind in kinds:
            for raw, at_once in columns:
                if raw and kind not in ("sqlite", "psycopg"):
                    continue
                measured = await (_raw if raw else _through_store)(kind, postgres, at_once)
                cells.setdefault((kind, raw, at_once), []).append(measured)
    shown = Table(title=f"{title}: commits/s (p50 ms); medians of {ROUNDS} rounds")
    shown.add_column("store")
    for raw, at_once in columns:
        shown.add_column(f"{raw} {at_once}".strip(), justify="right")
    for kind in kinds:
        shown.add_row(kind, *(_cell(cells.get((kind, *column), [])) for column in columns))
    return shown


def _cell(rounds: list[tuple[float, float]]) -> str:
    if not rounds:
        return "–"
    rate, delay = (statistics.median(column) for column in zip(*rounds, strict=True))
    return f"{rate:,.0f} ({delay:.2f})"


@asynccontextmanager
async def _empty(kind: str, postgres: str, folder: Path) -> AsyncGenerator[SQLAlchemyStore]:
    async with opened(sql_store(kind, folder, postgres)) as store:
        if kind in SERVERS:
            engine = create_engine(f"postgresql+psycopg{postgres}")
            with engine.begin() as connection:
                names = ", ".join(RungentBase.metadata.tables)
                connection.execute(text(f"TRUNCATE {names}"))
            engine.dispose()
        yield store


async def _through_store(kind: str, postgres: str, at_once: int) -> tuple[float, float]:
    """Commits a second, and the median delay of one in milliseconds."""
    delays: list[float] = []
    made: dict[str, list[Commit]] = {}

    async def drive(run: Run) -> None:
        for commit in made[run.id]:
            began = time.perf_counter()
            await store.commit(commit, owner=OWNER, token=1)
            delays.append(time.perf_counter() - began)

    with tempfile.TemporaryDirectory() as folder:
        async with _empty(kind, postgres, Path(folder)) as store:
            took = 0.0
            for _ in range(2):
                # The first time warms up.
                runs = [await create_running(store) for _ in range(at_once)]
                made = {run.id: _steps(run, at_once) for run in runs}
                if kind in SERVERS:
                    _analyze(postgres)
                gc.collect()
                delays.clear()
                began = time.perf_counter()
                async with trio.open_nursery() as nursery:
                    for run in runs:
                        nursery.start_soon(drive, run)
                took = time.perf_counter() - began
    return len(delays) / took, statistics.median(delays) * 1000


def _analyze(postgres: str) -> None:
    """What the server does by itself a minute later: learn that the tables are not empty."""
    with psycopg.connect(f"postgresql{postgres}", autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def _steps(run: Run, at_once: int) -> list[Commit]:
    """The transitions of a run, made beforehand."""
    made = [step(run)]
    while len(made) < min(max(COMMITS // at_once, 40), 300):
        made.append(step(made[-1].run))
    return made


async def _raw(kind: str, postgres: str, at_once: int) -> tuple[float, float]:
    """The same through the bare driver, one by one."""
    delays: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        async with _empty(kind, postgres, Path(folder)) as store:
            run = await create_running(store)
        connect: Callable[[], Any] = (
            (lambda: sqlite3.connect(Path(folder) / "runs.db"))
            if kind == "sqlite"
            else (lambda: psycopg.connect(f"postgresql{postgres}"))
        )
        with closing(connect()) as connection:
            if kind == "sqlite":
                connection.execute("PRAGMA synchronous = NORMAL")
            made = _steps(run, at_once)
            began = time.perf_counter()
            for commit in made:
                started = time.perf_counter()
                _append(connection, commit, "?" if kind == "sqlite" else "%s")
                delays.append(time.perf_counter() - started)
            took = time.perf_counter() - began
    return len(delays) / took, statistics.median(delays) * 1000


def _append(connection: Any, commit: Commit, mark: str) -> None:
    run, event = commit.run, commit.events[0]
    moment = run.updated_at.isoformat(" ", "microseconds")
    change = (run.event_seq, moment, run.id, run.version - 1, OWNER, 1)
    cursor = connection.execute(_UPDATE.replace("?", mark), change)
    if cursor.rowcount != 1:
        raise RuntimeError("the run was lost")
    row = (run.id, event.seq, event.id, event.type, json.dumps(event.data), moment)
    connection.execute(_INSERT.replace("?", mark), row)
    connection.commit()


async def _growth(kinds: Sequence[str], postgres: str) -> Table:
    shown = Table(title=f"ms at {LENGTHS[0]} and at {LENGTHS[1]:,} events; medians of {REPEATS}")
    shown.add_column("store")
    for heading in ("commit", "release, claim", "cancel", "progress", "last page of 100"):
        shown.add_column(heading, justify="right")
    for kind in kinds:
        lengths = [await _at_length(kind, postgres, length) for length in LENGTHS]
        pairs = zip(*lengths, strict=True)
        shown.add_row(kind, *(f"{short:.2f}  {long:.2f}" for short, long in pairs))
    return shown


async def _at_length(kind: str, postgres: str, length: int) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        async with _empty(kind, postgres, Path(folder)) as store:
            run = await create_running(store)
            begin = replace(step(run, events=length), tasks=(task_of(run),))
            await store.commit(begin, owner=OWNER, token=1)
            operations = _operations(store, run.id)
            return [await _median(operation) for operation in operations]


def _operations(store: Store, run_id: str) -> list[Callable[[], Awaitable[float]]]:
    async def commit(run: Run) -> None:
        await store.commit(step(run), owner=OWNER, token=run.fencing_token)

    async def claim(run: Run) -> None:
        await store.release_lease(run.id, OWNER, run.fencing_token)
        await store.claim_run(run.id, OWNER, at(0), taken_by(OWNER))

    async def cancel(run: Run) -> None:
        # Kept running, so that it can be done again.
        await store.cancel_run(run.id, lambda found: step(found, status=RunStatus.RUNNING))

    async def progress(run: Run) -> None:
        await store.report_task(run.id, "job-1", lambda found, _: step(found))

    async def read(run: Run) -> None:
        await store.list_events(run.id, after=run.event_seq - 100, limit=100)

    async def on_current(operation: Callable[[Run], Awaitable[None]]) -> float:
        run = await store.get_run(run_id)
        began = time.perf_counter()
        await operation(run)
        return (time.perf_counter() - began) * 1000

    return [partial(on_current, chosen) for chosen in (commit, claim, cancel, progress, read)]


async def _median(measure: Callable[[], Awaitable[float]]) -> float:
    return statistics.median([await measure() for _ in range(REPEATS)])
