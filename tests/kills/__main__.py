"""`python -m tests.kills` kills workers for half a minute, restarts them for another, and counts.

Three worker processes over a throw-away PostgreSQL server, or with `--sqlite` two over one file.
One of them is killed each second; then all are restarted in order, again and again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import trio

from tests.kills.trial import Accounts, Trial
from tests.persistence.postgres import FAST, run_server
from tests.persistence.stores import FILE_KINDS, POSTGRES_KINDS


async def harass(trial: Trial, seconds: float) -> None:
    """Kill once a second, then restart in order, each for so long."""
    with trio.move_on_after(seconds):
        while not trial.all_ended:
            await trio.sleep(1)
            await trial.kill()
    deadline = trio.current_time() + seconds
    while not trial.all_ended and trio.current_time() < deadline:
        await trial.roll()


async def conduct(
    kinds: list[str], postgres: str, options: argparse.Namespace
) -> tuple[Trial, Accounts]:
    with tempfile.TemporaryDirectory(prefix="rungent-kills-") as folder:
        async with Trial.over(kinds, Path(folder), postgres, seed=options.seed) as trial:
            await trial.play(
                options.runs, lambda t: harass(t, options.seconds), at_once=options.at_once
            )
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
    parser.add_argument("--sqlite", action="store_true")
    options = parser.parse_args()
    kinds = FILE_KINDS if options.sqlite else POSTGRES_KINDS
    if options.sqlite:
        trial, accounts = trio.run(conduct, kinds, "", options)
    else:
        with run_server(FAST) as server:
            trial, accounts = trio.run(conduct, kinds, server.url, options)
    report(trial, accounts)
    return 1 if accounts.problems else 0


if __name__ == "__main__":
    sys.exit(main())
