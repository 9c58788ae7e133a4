"""Several processes on one SQLite file: nobody loses an event, and watchers hear of it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from rungent.persistence import SQLAlchemyStore
from rungent.records import Run
from rungent.testing.store_samples import OWNER, create_running, step
from tests.persistence.stores import FILE_KINDS, opened, sql_store

COUNT = 60


@asynccontextmanager
async def appender(kind: str, folder: Path, run: Run, count: int) -> AsyncIterator[trio.Process]:
    """Another process that is ready to append to the run."""
    command = [sys.executable, "-m", "tests.persistence.appender", kind, str(folder), run.id]
    process = await trio.lowlevel.open_process(
        [*command, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdin is not None
    assert process.stdout is not None
    async with process.stdin, process.stdout:
        try:
            assert await received(process, b"\n") == b"ready\n"
            yield process
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()


async def start(process: trio.Process) -> None:
    assert process.stdin is not None
    await process.stdin.send_all(b"go\n")


async def acknowledged(process: trio.Process, at_least: int = 0) -> list[int]:
    """The numbers that the process printed: until it ends, or until there are enough."""
    printed = await received(process, b"\n", at_least)
    return [int(line) for line in printed.splitlines()]


async def received(process: trio.Process, mark: bytes, count: int = 1) -> bytes:
    """What the process prints until `mark` came `count` times (0: never) or it ends."""
    assert process.stdout is not None
    printed = b""
    while not count or printed.count(mark) < count:
        more = await process.stdout.receive_some()
        if not more:
            break
        printed += more
    return printed


async def append(store: SQLAlchemyStore, run: Run, count: int) -> None:
    for _ in range(count):
        commit = step(run)
        await store.commit(commit, owner=OWNER, token=1)
        run = commit.run


@pytest.mark.parametrize("kind", FILE_KINDS)
async def test_two_processes_append_to_one_file(kind: str, tmp_path: Path) -> None:
    with trio.fail_after(300):
        async with opened(sql_store(kind, tmp_path)) as store:
            mine, theirs = await create_running(store), await create_running(store)
            async with appender(kind, tmp_path, theirs, COUNT) as process:
                await start(process)
                await append(store, mine, COUNT)
                assert await acknowledged(process) == list(range(1, COUNT + 1))
                assert await process.wait() == 0
            for run in (mine, theirs):
                events = await store.list_events(run.id, after=0, limit=1000)
                assert [event.seq for event in events] == list(range(1, COUNT + 1))


@pytest.mark.parametrize("kind", FILE_KINDS)
async def test_a_killed_process_leaves_no_gap_and_loses_nothing_acknowledged(
    kind: str, tmp_path: Path
) -> None:
    with trio.fail_after(300):
        async with opened(sql_store(kind, tmp_path)) as store:
            run = await create_running(store)
            async with appender(kind, tmp_path, run, 0) as process:
                await start(process)
                printed = await acknowledged(process, 20)
                process.kill()
                printed += await acknowledged(process)
                assert await process.wait() < 0
            events = await store.list_events(run.id, after=0, limit=100_000)
            stored = await store.get_run(run.id)
            assert [event.seq for event in events] == list(range(1, stored.event_seq + 1))
            assert stored.version == stored.event_seq + 1
            assert stored.event_seq in {printed[-1], printed[-1] + 1}
            await store.commit(step(stored), owner=OWNER, token=1)


@pytest.mark.parametrize("kind", [*FILE_KINDS, "inline"])
async def test_a_watcher_hears_of_another_process(kind: str, tmp_path: Path) -> None:
    with trio.fail_after(300):
        async with opened(sql_store(kind, tmp_path)) as store:
            run = await create_running(store)
            woken = trio.Event()
            calls: list[str | None] = []

            def wake(run_id: str | None) -> None:
                calls.append(run_id)
                woken.set()

            async with appender("sqlite", tmp_path, run, 1) as process:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(store.watch, wake, 0.01)
                    # The first report: from here on nothing is missed.
                    await woken.wait()
                    woken = trio.Event()
                    quiet = len(calls)
                    await start(process)
                    await woken.wait()
                    nursery.cancel_scope.cancel()
                assert await acknowledged(process) == [1]
            assert calls == [None] * (quiet + 1)
            assert len(await store.list_events(run.id, after=0, limit=9)) == 1


async def test_a_watcher_gives_its_connection_back(tmp_path: Path) -> None:
    """Nothing keeps the file open after the store was left: it can be checkpointed away."""
    store = sql_store("sqlite", tmp_path)
    async with opened(store):
        woken = trio.Event()

        def wake(_: str | None) -> None:
            woken.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.watch, wake, 60)
            with trio.fail_after(300):
                await woken.wait()
            nursery.cancel_scope.cancel()
    assert not (tmp_path / "runs.db-wal").exists()
    with sqlite3.connect(tmp_path / "runs.db") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
