"""`rungent baseline rungent.demo.baseline:baseline_suite`: the matrix, with a model of your choice.

OPENAI_MODEL, OPENAI_BASE_URL and OPENAI_API_KEY name a real model, as for the demo; without a
model name the offline planner and scripts play its part. Source: docs/baselines.md#trip-planner.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AsyncExitStack

from sqlalchemy import Engine

from rungent.demo.app import LOCAL_IDENTITY, build_runtime
from rungent.demo.matrix import FLAKY, LIVE, MATRIX, SCRIPTS
from rungent.demo.scripts import PlannerModel, ScriptBook
from rungent.demo.seed import DEMO_TRIP_ID, demo_trip
from rungent.demo.services import Services
from rungent.demo.settings import DemoOptions, choose_provider
from rungent.demo.tables import Database, trip_engine
from rungent.llm import Model, OpenAICompatibleModel
from rungent.store import MemoryStore
from rungent.testing import BaselineCase, BaselineEnvironment, BaselineSuite

__all__ = ["baseline_suite", "make_suite"]


class Fixtures:
    """A fresh trip for each case, in a database of its own."""

    def __init__(self) -> None:
        self._engines: list[Engine] = []

    async def make(self, case: BaselineCase) -> BaselineEnvironment:
        """The environment of a case."""
        del case
        engine = trip_engine(None)
        self._engines.append(engine)
        database = Database(engine)
        services = Services.of(database)
        await database.create_schema()
        await services.trips.add_if_missing(demo_trip())
        return BaselineEnvironment({"trip_id": DEMO_TRIP_ID}, {"services": services})

    async def close(self) -> None:
        """Drop every database."""
        async with AsyncExitStack() as stack:
            while self._engines:
                stack.callback(self._engines.pop().dispose)


def make_suite(
    model: Model | None = None, cases: Sequence[BaselineCase] | None = None
) -> BaselineSuite:
    """The suite for a model; for None the offline planner and the scripts."""
    fixtures = Fixtures()
    scripts = SCRIPTS if model is None else {}
    chosen = ScriptBook(model or PlannerModel(), scripts, FLAKY)
    # Each case brings services of its own; those of the runtime are never asked.
    runtime = build_runtime(MemoryStore(), chosen, Services.of(Database(trip_engine(None))))
    return BaselineSuite(
        runtime,
        cases if cases is not None else (MATRIX if model is None else LIVE),
        identity=LOCAL_IDENTITY,
        setup_case=fixtures.make,
        after_all=fixtures.close,
    )


def _configured() -> Model | None:
    provider = choose_provider(DemoOptions(), os.environ)
    if provider is None:
        return None
    return OpenAICompatibleModel(
        api_key=provider.api_key, base_url=provider.base_url, model=provider.model
    )


baseline_suite = make_suite(_configured())
