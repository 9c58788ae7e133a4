"""Playing many seeds until one fails, and shrinking what made it fail.

Source: docs/simulation.md#shrinking.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rungent.testing.simulation.plan import EVERY_KIND, Kind, Plan, plan_of
from rungent.testing.simulation.play import MakeScenario, Outcome, Settings, play
from rungent.testing.simulation.shrink import ddmin

__all__ = ["Failure", "Report", "explore", "simulate"]

SHOWN_NOTES = 40


@dataclass(frozen=True, slots=True)
class Failure:
    """The first seed that failed, its whole plan, and the smallest one that fails as well.

    `kept` are the places of the smallest plan's chances in the whole one, from 1.
    """

    seed: int
    plan: Plan
    kept: tuple[int, ...]
    outcome: Outcome
    plays: int

    def describe(self) -> str:
        """What to read and what to repeat, as text of several lines."""
        fired, chances = self.outcome.fired, self.outcome.plan.chances
        lines = [f"seed {self.seed}: {self.outcome.violation}"]
        lines.append(
            f"shrunk from {len(self.plan.chances)} chances to {len(chances)} in {self.plays} plays:"
        )
        lines += [f"  {line}" for line in fired or map(str, chances)] or ["  nothing is needed"]
        lines.append("what happened last:")
        lines += [f"  {note}" for note in self.outcome.notes[-SHOWN_NOTES:]]
        return "\n".join(lines)


@dataclass(slots=True)
class Report:
    """What was played. `fired` counts the chances that came, by their kind."""

    plays: int = 0
    events: int = 0
    virtual_seconds: float = 0
    planned: Counter[Kind] = field(default_factory=Counter[Kind])
    failure: Failure | None = None

    @property
    def passed(self) -> bool:
        """Whether no seed failed."""
        return self.failure is None


def explore(
    make: MakeScenario,
    seeds: Iterable[int],
    kinds: Sequence[Kind] = EVERY_KIND,
    settings: Settings | None = None,
    *,
    keep: Sequence[int] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Report:
    """Play seed after seed and stop at the first that fails, shrunk.

    `keep` plays only these chances of each plan, by their places from 1. `progress` is told each
    seed before it is played.
    """
    chosen, report = settings or Settings(), Report()
    with _quiet():
        for seed in seeds:
            if progress is not None:
                progress(seed)
            plan = plan_of(seed, kinds, workers=chosen.workers)
            played = plan if keep is None else plan.only(keep)
            outcome = play(make, played, chosen)
            report.plays += 1
            report.events += len(outcome.log)
            report.virtual_seconds += outcome.virtual_seconds
            report.planned.update(chance.kind for chance in played.chances)
            if outcome.violation is not None:
                report.failure = _shrunk(make, plan, outcome, chosen)
                return report
    return report


def _shrunk(make: MakeScenario, whole: Plan, failed: Outcome, settings: Settings) -> Failure:
    best, plays = failed, 0

    def fails(kept: Sequence[int]) -> bool:
        nonlocal best, plays
        plays += 1
        outcome = play(make, whole.only(kept), settings)
        if outcome.violation is not None:
            best = outcome
        return outcome.violation is not None

    places = [n for n, c in enumerate(whole.chances, start=1) if c in failed.plan.chances]
    kept = ddmin(places, fails)
    if best.plan != whole.only(kept):
        best = play(make, whole.only(kept), settings)
    return Failure(whole.seed, whole, kept, best, plays)


def simulate(
    make: MakeScenario,
    seeds: Iterable[int],
    kinds: Sequence[Kind] = EVERY_KIND,
    settings: Settings | None = None,
) -> Report:
    """`explore` for tests: raises AssertionError with all that helps when a seed fails."""
    report = explore(make, seeds, kinds, settings)
    if report.failure is not None:
        raise AssertionError(report.failure.describe())
    return report


@contextmanager
def _quiet() -> Generator[None]:
    """Without what workers log of faults that were meant to happen."""
    logger = logging.getLogger("rungent")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before
