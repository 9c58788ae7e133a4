"""`python -m tests.recovery.table [--steps]` prints what becomes of a run, crash by crash.

One line for each write before or after which the worker is lost, and with `--steps` for each task
step: how often each tool took effect in the end, which call is in doubt, how the run ended.
"""

from __future__ import annotations

import argparse
import logging

import trio
from trio.testing import MockClock

from rungent.store import MemoryStore
from rungent.testing.clock import virtual_now
from rungent.testing.faults import CRASHES, Fault, Played, crash_points
from tests.helpers import START
from tests.recovery.agent import ONCE
from tests.recovery.journey import Journey, check

__all__ = ["table"]


async def make() -> Journey:
    trio._core._run._r.seed(1)  # pyright: ignore
    return await Journey.begin(MemoryStore(), virtual_now(START))


async def line(played: Played[Journey]) -> str:
    """One row; raises AssertionError when a promise was broken."""
    journey = played.scenario
    await check(journey)
    run = await journey.run()
    assert run is not None
    doubt = [claim.tool_name for claim in await journey.claims() if claim.state == "in_doubt"]
    effects = "".join(f"{len(journey.done[name]):>8}" for name in ONCE)
    return f"{effects}  {', '.join(doubt) or '-':<9} {run.status:<10} {played.points[0]}"


async def table(*faults: Fault) -> list[str]:
    """The rows for these faults, below their head."""
    head = "".join(f"{name:>8}" for name in ONCE)
    rows = [f"{head}  {'in doubt':<9} {'run':<10} crash"]
    async for played in crash_points(make, *faults):
        rows.append(await line(played))  # noqa: PERF401 - two awaits in a comprehension hide
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", action="store_true", help="crash in each task step too")
    chosen = CRASHES if parser.parse_args().steps else CRASHES[:2]
    logging.disable(logging.CRITICAL)
    for row in trio.run(table, *chosen, clock=MockClock(autojump_threshold=0)):
        print(row)


if __name__ == "__main__":
    main()
