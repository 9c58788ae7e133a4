"""Processes that are really killed, over real databases: nothing is lost or done twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import trio
from trio.testing import wait_all_tasks_blocked

from tests.kills.fleet import Worker
from tests.kills.trial import Accounts, Trial
from tests.persistence.stores import FILE_KINDS, POSTGRES_KINDS

PATIENCE_SECONDS = 600


async def harass(trial: Trial, kills: int, every: int) -> None:
    """Kill a worker whenever clients have seen `every` more events, then restart all in order."""
    for _ in range(kills):
        assert await trial.until(trial.events + every), "the runs ended before every kill"
        await trial.kill()
    assert await trial.until(trial.events + every), "the runs ended before the restarts"
    await trial.roll()


async def outcome(
    kinds: list[str], folder: Path, postgres: str, *, runs: int, kills: int, every: int
) -> Accounts:
    with trio.fail_after(PATIENCE_SECONDS):
        async with Trial.over(kinds, folder, postgres) as trial:
            await trial.play(runs, lambda t: harass(t, kills, every), at_once=runs // 2)
            assert trial.kills == kills
            assert trial.exits == [0] * len(kinds), "a worker did not stop in order"
            return await trial.account()


async def test_workers_that_are_killed_over_postgres_lose_nothing_and_do_nothing_twice(
    tmp_path: Path, empty_postgres: str
) -> None:
    accounts = await outcome(POSTGRES_KINDS, tmp_path, empty_postgres, runs=45, kills=9, every=150)
    assert accounts.problems == []
    assert (accounts.duplicates, accounts.gaps) == (0, 0)
    assert accounts.runs.total() == 45


async def test_workers_that_are_killed_over_one_sqlite_file_lose_nothing_and_do_nothing_twice(
    tmp_path: Path,
) -> None:
    accounts = await outcome(FILE_KINDS, tmp_path, "", runs=24, kills=7, every=100)
    assert accounts.problems == []
    assert (accounts.duplicates, accounts.gaps) == (0, 0)
    assert accounts.runs.total() == 24


async def test_a_worker_that_is_given_up_while_it_starts_is_killed(tmp_path: Path) -> None:
    process = await trio.lowlevel.open_process(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    worker = Worker(process, tmp_path / "worker.log")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(nursery.start, worker.listen)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert process.returncode == -signal.SIGKILL
