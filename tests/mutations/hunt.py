"""Looks for a violation in the package that is imported: run in a process of its own.

`python -m tests.mutations.hunt SCENARIO STORE SEEDS FAULTS` prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
from typing import cast

from rungent.testing.simulation import Settings, explore
from rungent.testing.simulation.plan import parse_kinds
from rungent.testing.stores import StoreKind
from tests.simulation import scenarios

__all__ = ["hunt"]

PATIENCE_SECONDS = 700
"""Virtual seconds: plays of these scenarios are over in half of it."""


def hunt(scenario: str, store: str, seeds: int, faults: str) -> dict[str, object]:
    """The number of seeds played, and of the failure, if any, what is shown in the table."""
    make = getattr(scenarios, scenario)
    settings = Settings(store=cast("StoreKind", store), patience_seconds=PATIENCE_SECONDS)
    report = explore(make, range(1, seeds + 1), parse_kinds(faults), settings)
    failure = report.failure
    if failure is None:
        return {"plays": report.plays, "violation": None, "chances": []}
    shown = failure.outcome.fired or tuple(map(str, failure.outcome.plan.chances))
    return {"plays": report.plays, "violation": failure.outcome.violation, "chances": shown}


if __name__ == "__main__":
    print(json.dumps(hunt(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])))
