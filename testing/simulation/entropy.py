"""One seed for everything that is random: trio's order of tasks, ids, jitter.

Source: docs/simulation.md#repeatable.
"""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import trio

from rungent.ids import ids_from

__all__ = ["seeded"]


@contextmanager
def seeded(seed: int) -> Generator[None]:
    """Inside the block `trio.run` runs its tasks in an order that `seed` decides alone.

    Each batch of tasks that could run is shuffled. Also seeds the ids that the runtime makes,
    and `random` for the jitter of waits; both are as before afterwards.
    """
    # The switch that pytest-trio and Hypothesis use as well; there is no public one.
    scheduler: Any = trio._core._run  # pyright: ignore
    ordered, chance = scheduler._ALLOW_DETERMINISTIC_SCHEDULING, scheduler._r.getstate()
    jitter = random.getstate()
    scheduler._ALLOW_DETERMINISTIC_SCHEDULING = True
    scheduler._r.seed(seed)
    random.seed(seed)
    try:
        with ids_from(random.Random(f"ids {seed}")):
            yield
    finally:
        scheduler._ALLOW_DETERMINISTIC_SCHEDULING = ordered
        scheduler._r.setstate(chance)
        random.setstate(jitter)
