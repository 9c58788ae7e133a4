"""`rungent sim`: play the seeds of a scenario, and show the first that fails.

Source: docs/cli.md#rungent-sim.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import cast

from rungent.testing.loading import TargetError, load
from rungent.testing.simulation.explore import explore
from rungent.testing.simulation.plan import Kind
from rungent.testing.simulation.play import MakeScenario, Settings
from rungent.testing.stores import StoreKind

__all__ = ["repeatable_process", "run_simulation"]

USAGE_ERROR = 2


def run_simulation(
    target: str,
    *,
    seeds: range,
    kinds: Sequence[Kind],
    workers: int,
    store: str,
    keep: Sequence[int] | None,
) -> int:
    """Play and print; 0 when every seed passed, 1 when one failed, 2 for an unusable target."""
    try:
        make = _scenario(target)
    except TargetError as wrong:
        print(f"rungent sim: {wrong}", file=sys.stderr)
        return USAGE_ERROR
    settings = Settings(workers=workers, store=cast("StoreKind", store))
    show = _progress(seeds) if sys.stderr.isatty() else None
    report = explore(make, seeds, kinds, settings, keep=keep, progress=show)
    if show is not None:
        print(end="\r\033[K", file=sys.stderr)
    if report.failure is None:
        planned = ", ".join(f"{report.planned[kind]} {kind}" for kind in sorted(report.planned))
        print(
            f"{report.plays} plays passed: {report.events} events in "
            f"{report.virtual_seconds:.0f} virtual seconds; planned: {planned or 'no fault'}"
        )
        return 0
    failure = report.failure
    print(failure.describe())
    again = f"rungent sim {target} --seeds {failure.seed} --workers {workers} --store {store}"
    kept = ",".join(map(str, failure.kept)) or "none"
    faults = ",".join(sorted(set(kinds))) or "none"
    print(f"play it again: {again} --faults {faults} --keep {kept}")
    return 1


def _scenario(target: str) -> MakeScenario:
    make = load(target)
    if not callable(make):
        raise TargetError(f"{target} is no scenario; it is called to make one for each play")
    return cast("MakeScenario", make)


def _progress(seeds: range) -> Callable[[int], None]:
    def show(seed: int) -> None:
        done = seed - seeds.start
        if done % 10 == 0:
            print(end=f"\rseed {seed}, {done} of {len(seeds)} played", file=sys.stderr, flush=True)

    return show


def repeatable_process() -> None:
    """Start this process again with hashes that are the same in every process."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "rungent", *sys.argv[1:]])
