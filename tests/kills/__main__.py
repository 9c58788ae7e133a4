"""`python -m tests.kills` kills workers for half a minute, restarts them for another, and counts.

Three worker processes over a throw-away PostgreSQL server, or with `--sqlite` two over one file.
One of them is killed each second; then all are restarted in order, again and again. With
`--outage SECONDS` it is the PostgreSQL server that crashes, stays away for so long and comes back.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import trio

from tests.kills.trial import Accounts, Trial
from tests.persistence.postgres import FAST, Server, run_server
from tests.persistence.stores import FILE_KINDS, POSTGRES_KINDS

BEFORE_OUTAGE = 500
SAFE = "-c fsync=off -c synchronous_commit=on"


async def harass(trial: Trial, seconds: float) -> None:
    """Kill once a second, then restart in order, each for so long."""
    with trio.move_on_after(seconds):
        while not trial.all_ended:
            await trio.sleep(1)
            await trial.kill()
    deadline = trio.current_time() + seconds
    while not trial.all_ended and trio.current_time() < deadline:
        await trial.roll()


async def interrupt(trial: Trial, server: Server, seconds: float) -> None:
    """Crash the server in the middle, and measure what the workers do without it."""
    await trial.until(BEFORE_OUTAGE)
    await trio.to_thread.run_sync(server.stop, "immediate")
    used, began = _processor_seconds(trial), trio.current_time()
    await trio.sleep(seconds)
    used, lasted = _processor_seconds(trial) - used, trio.current_time() - began
    share = used / lasted / trial.fleet.size
    print(f"outage      {lasted:.1f} s; a worker used {share:.1%} of a processor meanwhile")
    await trio.to_thread.run_sync(server.start)


def _processor_seconds(trial: Trial) -> float:
    """What the workers have used so far."""
    ticks = 0
    for worker in trial.fleet.workers:
        fields = Path(f"/proc/{worker.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


async def conduct(
    kinds: list[str], server: Server | None, options: argparse.Namespace
) -> tuple[Trial, Accounts]:
    async def trouble(trial: Trial) -> None:
        if server is not None and options.outage:
            await interrupt(trial, server, options.outage)
        else:
            await harass(trial, options.seconds)

    over = Trial.over(
        kinds,
        Path(options.folder),
        "" if server is None else server.url,
        seed=options.seed,
        effects_apart=bool(options.outage),
    )
    async with over as trial:
        await trial.play(options.runs, trouble, at_once=options.at_once)
        return trial, await trial.account()


def report(trial: Trial, accounts: Accounts) -> None:
    ended = ", ".join(f"{count} {status}" for status, count in sorted(accounts.runs.items()))
    print(f"runs        {ended} in {trial.seconds:.0f} s")
    print(f"kills       {trial.kills}")
    print(f"restarts    {len(trial.exits)}, exit codes {sorted(set(trial.exits))}")
    print(f"events      {accounts.events}, runs with a gap: {accounts.gaps}")
    print(f"steps redone after a loss: {accounts.recoveries}")
    print(f"effects     {accounts.effects}, duplicates: {accounts.duplicates}")
    print(f"in doubt    {accounts.in_doubt}, each told to the model and the client")
    for problem in accounts.problems:
        print("PROBLEM    ", problem)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    database = parser.add_mutually_exclusive_group()
    database.add_argument("--sqlite", action="store_true")
    database.add_argument("--outage", type=float, metavar="SECONDS")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rungent-kills-") as options.folder:
        if options.sqlite:
            trial, accounts = trio.run(conduct, FILE_KINDS, None, options)
        else:
            # What was acknowledged must survive a crash of the server's processes.
            with run_server(SAFE if options.outage else FAST) as server:
                trial, accounts = trio.run(conduct, POSTGRES_KINDS, server, options)
    report(trial, accounts)
    return 1 if accounts.problems else 0


if __name__ == "__main__":
    sys.exit(main())
