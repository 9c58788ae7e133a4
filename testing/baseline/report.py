"""The report of a baseline: verdicts, rates, and how each case did when it was repeated.

Source: docs/baselines.md#report.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

from rungent.testing.baseline.cases import BaselineResult

__all__ = ["BaselineReport"]


@dataclass(frozen=True, slots=True)
class BaselineReport:
    """Results in the order of the cases. Rates are between 0 and 1; what never came is no error."""

    results: tuple[BaselineResult, ...]

    @property
    def passed(self) -> bool:
        """Whether every case passed."""
        return all(result.passed for result in self.results)

    @property
    def pass_rate(self) -> float:
        """The share of passed results, 1.0 when there are none."""
        return _share(sum(result.passed for result in self.results), len(self.results), empty=1.0)

    def assert_passed(self) -> None:
        """Raise AssertionError that names what failed."""
        failed = [f"{r.name}: {r.error}" for r in self.results if not r.passed]
        if failed:
            count = f"{len(failed)} of {len(self.results)} cases failed"
            raise AssertionError("\n  ".join([count, *failed]))

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "passed": self.passed,
            "pass_rate": self.pass_rate,
            "results": [result.to_dict() for result in self.results],
        }

    def metrics(self) -> dict[str, float | int | None]:
        """What to track over time.

        `unexpected_tool_rate` is the share of executions, and `unnecessary_interaction_rate` the
        share of questions, that no case expected. `final_state_accuracy` is the share of the
        cases with `assert_state` whose state was right, None without any. Latencies are in
        seconds of a whole case.
        """
        measures = [result.measures for result in self.results]
        states = [m.state_correct for m in measures if m.state_correct is not None]
        tokens = [m.tokens for m in measures if m.tokens is not None]
        seconds = [m.seconds for m in measures]
        return {
            "pass_rate": self.pass_rate,
            "unexpected_tool_rate": _share(
                sum(m.unexpected_tools for m in measures), sum(len(r.tools) for r in self.results)
            ),
            "unnecessary_interaction_rate": _share(
                sum(m.unnecessary_interactions for m in measures),
                sum(len(r.interactions) for r in self.results),
            ),
            "final_state_accuracy": _share(sum(states), len(states)) if states else None,
            "tokens": sum(tokens) if tokens else None,
            "seconds_median": round(statistics.median(seconds), 3) if seconds else None,
            "seconds_max": round(max(seconds), 3) if seconds else None,
        }

    def by_case(self) -> dict[str, tuple[int, int]]:
        """For each name how often it passed, and how often it was played."""
        names = dict.fromkeys(result.name for result in self.results)
        return {name: self._count(name) for name in names}

    def _count(self, name: str) -> tuple[int, int]:
        own = [result.passed for result in self.results if result.name == name]
        return sum(own), len(own)


def _share(part: int, whole: int, *, empty: float = 0.0) -> float:
    return round(part / whole, 4) if whole else empty
