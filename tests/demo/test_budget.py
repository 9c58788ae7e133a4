"""The budget: asked by a tool for data, kept from the checked answer as a part of the trip."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from rungent import InvalidResponse
from rungent.demo.budget import Budget
from rungent.demo.database import open_database
from rungent.demo.seed import DEMO_TRIP_ID
from rungent.demo.tables import BUDGETS, trip_engine
from tests.demo.hosted import Hosted, hosted, said, tools

ANSWER: dict[str, Any] = {"amount": 1500, "currency": "EUR", "book_by": "2030-04-01"}


async def kept(app: Hosted) -> tuple[Budget | None, int]:
    trip = await app.services.trips.get(DEMO_TRIP_ID)
    return trip.budget, trip.revision


async def test_the_answer_is_kept_and_shown(database: Path | None) -> None:
    async with hosted(database) as app:
        log = await app.say("Set a budget, then show my trip")
        asked = log[-1].data
        assert (asked["kind"], asked["prompt"]) == ("data", "What may the trip cost?")
        assert [*asked["schema"]["properties"]] == ["amount", "currency", "per_person", "book_by"]
        assert await kept(app) == (None, 1)
        rest = await app.answer(log, ANSWER)
        assert tools(log) == ["ask_budget"]
        assert "The budget is 1,500 EUR, to be booked by 2030-04-01." in said(rest)
        assert "*Budget:* 1,500 EUR, to be booked by 2030-04-01" in said(rest)
        budget = Budget(amount=1500, currency="EUR", book_by=date(2030, 4, 1))
        assert await kept(app) == (budget, 2)


async def test_other_changes_keep_the_budget_and_a_later_one_replaces_it(
    database: Path | None,
) -> None:
    async with hosted(database) as app:
        await app.answer(await app.say("Set a budget"), {"amount": 1, "per_person": True})
        await app.say("Add a day")
        assert await kept(app) == (Budget(amount=1, per_person=True), 3)
        for _ in range(2):
            await app.answer(await app.say("Set a budget"), {"amount": 2})
        # The second time it is the same, and no new revision.
        assert await kept(app) == (Budget(amount=2), 4)


@pytest.mark.parametrize(
    ("answer", "reason", "path"),
    [
        ({}, "missing_answer", ["amount"]),
        ({"amount": "1"}, "type_mismatch", ["amount"]),
        ({"amount": 0}, "invalid_value", ["amount"]),
        ({"amount": 10**9}, "invalid_value", ["amount"]),
        ({"amount": 1, "currency": "GBP"}, "invalid_value", ["currency"]),
        ({"amount": 1, "cents": 5}, "unknown_field", ["cents"]),
    ],
)
async def test_a_wrong_answer_is_refused_and_changes_nothing(
    answer: Any, reason: str, path: list[str]
) -> None:
    async with hosted(None) as app:
        log = await app.say("Set a budget")
        with pytest.raises(InvalidResponse) as refused:
            await app.answer(log, answer)
        assert (refused.value.reason, refused.value.path) == (reason, path)
        assert await kept(app) == (None, 1)


async def test_a_database_from_before_budgets_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "demo.sqlite3"
    async with open_database(path):
        pass
    engine = trip_engine(path)
    BUDGETS.drop(engine)
    engine.dispose()
    async with open_database(path) as (_, services):
        assert (await services.trips.get(DEMO_TRIP_ID)).budget is None
        changed = await services.trips.set_budget(DEMO_TRIP_ID, Budget(amount=5))
        assert changed.budget == Budget(amount=5)
