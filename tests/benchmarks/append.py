"""Appending one event to each of many runs at once.

A commit here is one transition of a drive with one delta. The raw drivers make the same changes,
as many in each transaction as there are runs, without any of our code: they are the limit.
"""

from __future__ import annotations

import gc
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import trio
from sqlalchemy import create_engine, text

from rungent.persistence import RungentBase, SQLAlchemyStore
from rungent.records import Run
from rungent.store.port import Commit
from rungent.testing.store_samples import OWNER, create_running, step
from tests.benchmarks.figures import Column, Sheet
from tests.persistence.postgres import DURABLE, FAST, run_server
from tests.persistence.stores import opened, sql_store

FILES = ("sqlite", "aiosqlite")
SERVERS = ("psycopg", "asyncpg", "psycopg_async")
_UPDATE = (
    "UPDATE rungent_runs SET version = version + 1, event_seq = ?, updated_at = ?"
    " WHERE id = ? AND version = ? AND lease_owner = ? AND fencing_token = ?"
)
_INSERT = (
    "INSERT INTO rungent_events (run_id, seq, id, type, data, created_at) VALUES (?, ?, ?, ?, ?, ?)"
)


RAW = {"sqlite": "raw sqlite3", "psycopg": "raw psycopg"}


@dataclass(frozen=True)
class Size:
    """Runs at once, commits of each pass, rounds, and whether servers are measured."""

    at_once: Sequence[int] = (1, 5, 10, 50, 200)
    commits: int = 6_000
    rounds: int = 3
    servers: bool = True


FULL = Size()
TINY = Size(at_once=(1, 2), commits=4, rounds=1, servers=False)


async def measure(size: Size = FULL) -> list[Sheet]:
    """Rates with and without waiting for the disk."""
    if not size.servers:
        return await _rates("Files", FILES, "", size)
    with run_server(FAST) as fast, run_server(DURABLE) as durable:
        title = "Files, and a server without fsync"
        quick = await _rates(title, (*FILES, *SERVERS), fast.url, size)
        return quick + await _rates("A server with fsync", SERVERS, durable.url, size)


async def _rates(title: str, kinds: Sequence[str], postgres: str, size: Size) -> list[Sheet]:
    """One sheet with the rates and one with the delays; the raw drivers are the limit."""
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for _ in range(size.rounds):
        for kind in kinds:
            for at_once in size.at_once:
                if kind in RAW:
                    raw = await _raw(kind, postgres, at_once, size.commits)
                    found.setdefault((RAW[kind], at_once), []).append(raw)
                measured = await _through_store(kind, postgres, at_once, size.commits)
                found.setdefault((kind, at_once), []).append(measured)
    names = list(dict.fromkeys(name for name, _ in found))
    parts = (("commits/s by runs at once", 0), ("p50 ms by runs at once", 2))
    return [
        Sheet(
            f"{title}: {heading}; medians of {size.rounds} rounds",
            [Column("store"), *(Column(str(at_once), digits) for at_once in size.at_once)],
            [
                [name, *(_median(found.get((name, at_once)), part) for at_once in size.at_once)]
                for name in names
            ],
        )
        for part, (heading, digits) in enumerate(parts)
    ]


def _median(rounds: list[tuple[float, float]] | None, part: int) -> float | None:
    return statistics.median(figures[part] for figures in rounds) if rounds else None


@asynccontextmanager
async def empty_store(kind: str, postgres: str, folder: Path) -> AsyncGenerator[SQLAlchemyStore]:
    """A store of this kind without rows, opened."""
    async with opened(sql_store(kind, folder, postgres)) as store:
        if kind in SERVERS:
            engine = create_engine(f"postgresql+psycopg{postgres}")
            with engine.begin() as connection:
                names = ", ".join(RungentBase.metadata.tables)
                connection.execute(text(f"TRUNCATE {names}"))
            engine.dispose()
        yield store


async def _through_store(
    kind: str, postgres: str, at_once: int, commits: int
) -> tuple[float, float]:
    """Commits a second, and the median delay of one in milliseconds."""
    delays: list[float] = []
    made: dict[str, list[Commit]] = {}

    async def drive(run: Run) -> None:
        for commit in made[run.id]:
            began = time.perf_counter()
            await store.commit(commit, owner=OWNER, token=1)
            delays.append(time.perf_counter() - began)

    with tempfile.TemporaryDirectory() as folder:
        async with empty_store(kind, postgres, Path(folder)) as store:
            took = 0.0
            for _ in range(2):
                # The first time warms up.
                runs = [await create_running(store) for _ in range(at_once)]
                made = _steps(runs, _each(at_once, commits))
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


def _each(at_once: int, commits: int) -> int:
    """Commits of each run in a pass."""
    return min(max(commits // at_once, 40), 300, commits)


def _analyze(postgres: str) -> None:
    """What the server does by itself a minute later: learn that the tables are not empty."""
    with psycopg.connect(f"postgresql{postgres}", autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def _steps(runs: Sequence[Run], count: int) -> dict[str, list[Commit]]:
    """The transitions of each run, made beforehand in the order in which they will come."""
    made = {run.id: [step(run)] for run in runs}
    for _ in range(count - 1):
        for transitions in made.values():
            transitions.append(step(transitions[-1].run))
    return made


async def _raw(kind: str, postgres: str, at_once: int, commits: int) -> tuple[float, float]:
    """The same through the bare driver, one transaction for each step of all runs."""
    delays: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        async with empty_store(kind, postgres, Path(folder)) as store:
            runs = [await create_running(store) for _ in range(at_once)]
        connect: Callable[[], Any] = (
            (lambda: sqlite3.connect(Path(folder) / "runs.db"))
            if kind == "sqlite"
            else (lambda: psycopg.connect(f"postgresql{postgres}"))
        )
        made = _steps(runs, _each(at_once, commits))
        with closing(connect()) as connection:
            if kind == "sqlite":
                connection.execute("PRAGMA synchronous = NORMAL")
            began = time.perf_counter()
            for batch in zip(*made.values(), strict=True):
                started = time.perf_counter()
                _append(connection, batch, "?" if kind == "sqlite" else "%s")
                delays.append(time.perf_counter() - started)
            took = time.perf_counter() - began
    return len(delays) * at_once / took, statistics.median(delays) * 1000


def _append(connection: Any, batch: Sequence[Commit], mark: str) -> None:
    changes: list[tuple[Any, ...]] = []
    rows: list[tuple[Any, ...]] = []
    for commit in batch:
        run, event = commit.run, commit.events[0]
        moment = run.updated_at.isoformat(" ", "microseconds")
        changes.append((run.event_seq, moment, run.id, run.version - 1, OWNER, 1))
        rows.append((run.id, event.seq, event.id, event.type, json.dumps(event.data), moment))
    cursor = connection.cursor()
    if len(batch) == 1:
        cursor.execute(_UPDATE.replace("?", mark), changes[0])
    else:
        cursor.executemany(_UPDATE.replace("?", mark), changes)
    if cursor.rowcount != len(batch):
        raise RuntimeError("a run was lost")
    cursor.executemany(_INSERT.replace("?", mark), rows)
    connection.commit()
