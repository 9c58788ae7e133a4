"""A stored log over the event stream: how soon it begins, how fast it is, what memory it takes."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import trio
from sqlalchemy import create_engine

from rungent.records import RunStatus
from rungent.sqlalchemy import SQLAlchemyStore
from rungent.testing.store_samples import OWNER, create_running, step
from tests.benchmarks.figures import Column, Sheet, Value
from tests.benchmarks.served import connected, served

PER_COMMIT = 5_000


@dataclass(frozen=True)
class Size:
    """Lengths of the logs in events, and rounds."""

    lengths: Sequence[int] = (5_000, 100_000)
    rounds: int = 5


FULL = Size()
TINY = Size(lengths=(40,), rounds=1)


async def measure(size: Size = FULL) -> list[Sheet]:
    """Each length on a server of its own."""
    rows: list[list[Value]] = [
        [f"{length:,}", *await _replays(length, size.rounds)] for length in size.lengths
    ]
    columns = (
        Column("events"),
        Column("first event ms", 1),
        Column("events/s"),
        Column("MB/s", 1),
        Column("growth KiB"),
        Column("peak KiB"),
    )
    title = f"Replay over SSE from SQLite; medians of {size.rounds} rounds"
    return [Sheet(title, columns, rows, "Growth and peak are the server's memory.")]


async def _replays(length: int, count: int) -> tuple[float, float, float, int, int]:
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "replay.db"
        run_id = await _stored(database, length)
        async with served(database) as client:
            # The first replay warms up: pages, pools, caches of compiled statements.
            await trio.to_thread.run_sync(_replay, client.base_url, run_id, length)
            before = (await client.get("/cost")).json()
            rounds = [
                await trio.to_thread.run_sync(_replay, client.base_url, run_id, length)
                for _ in range(count)
            ]
            after = (await client.get("/cost")).json()
    first, rate, megabytes = (statistics.median(column) for column in zip(*rounds, strict=True))
    return first * 1000, rate, megabytes, after["kib"] - before["kib"], after["peak_kib"]


async def _stored(database: Path, length: int) -> str:
    """An ended run with so many events."""
    store = SQLAlchemyStore(create_engine(f"sqlite:///{database}"))
    await store.create_schema()
    async with store.open():
        run = await create_running(store)
        while run.event_seq < length:
            commit = step(run, events=min(PER_COMMIT, length - run.event_seq))
            if commit.run.event_seq == length:
                ended = commit.run.model_copy(update={"status": RunStatus.COMPLETED, "lease": None})
                last = commit.events[-1].model_copy(update={"type": "run.completed"})
                events = (*commit.events[:-1], last)
                commit = replace(commit, run=ended, events=events, appends=False)
            await store.commit(commit, owner=OWNER, token=1)
            run = commit.run
    return run.id


def _replay(url: httpx.URL, run_id: str, length: int) -> tuple[float, float, float]:
    """Seconds to the first event, events a second, megabytes a second."""
    began = time.perf_counter()
    first, size, tail = 0.0, 0, b""
    with connected(url, run_id) as plain:
        while not tail.endswith(b"0\r\n\r\n"):
            data = plain.recv(1 << 20)
            if not data:
                raise RuntimeError("the stream broke off")
            size += len(data)
            tail = (tail + data)[-4096:]
            if not first and b"id: " in tail:
                first = time.perf_counter() - began
    took = time.perf_counter() - began
    if f"id: {length}\n".encode() not in tail:
        raise RuntimeError("the log is not whole")
    return first, length / took, size / took / 1e6
