"""Our own scenarios keep every promise under every kind of fault, and plays can be repeated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typing_extensions import override

from rungent import ToolResult
from rungent.testing.simulation import (
    Kind,
    Plan,
    Seen,
    Settings,
    SimScenario,
    explore,
    plan_of,
    play,
    simulate,
)
from tests.simulation.scenarios import Pauses, Sessions, Writes

ROOT = Path(__file__).resolve().parent.parent.parent
OURS = Settings(patience_seconds=700)
IN_SQL = replace(OURS, store="sqlite")
CALM = Plan(1)


@pytest.mark.parametrize(("scenario", "seeds"), [(Pauses, 150), (Writes, 150), (Sessions, 60)])
def test_two_workers_over_one_store_keep_every_promise_under_every_fault(
    scenario: Callable[[], SimScenario], seeds: int
) -> None:
    report = simulate(scenario, range(1, seeds + 1), settings=OURS)
    assert report.plays == seeds
    assert set(report.planned) == set(Kind)


@pytest.mark.parametrize(("scenario", "seeds"), [(Pauses, 20), (Writes, 20), (Sessions, 6)])
def test_they_keep_them_over_sql(scenario: Callable[[], SimScenario], seeds: int) -> None:
    simulate(scenario, range(1001, 1001 + seeds), settings=IN_SQL)


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_of_fault_by_itself_does_happen(kind: Kind) -> None:
    fired: list[str] = []
    for seed in range(1, 13):
        outcome = play(Pauses, plan_of(seed, [kind]), OURS)
        assert outcome.violation is None
        fired += outcome.fired
    assert fired


@pytest.mark.parametrize("settings", [OURS, IN_SQL])
def test_the_same_seed_gives_the_same_log(settings: Settings) -> None:
    for seed in (3, 17):
        plan = plan_of(seed)
        first, second = play(Sessions, plan, settings), play(Sessions, plan, settings)
        assert first == second
        assert first.log
    assert play(Sessions, plan_of(4), settings).log != first.log


def test_the_same_seed_gives_the_same_log_in_another_process() -> None:
    code = (
        "import json; from rungent.testing.simulation import plan_of, play;"
        "from tests.simulation.scenarios import Sessions;"
        "print(json.dumps(play(Sessions, plan_of(17)).log))"
    )
    logs = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"},
            capture_output=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert logs[0] == logs[1]
    assert len(json.loads(logs[0])) > 50


def test_one_worker_alone_is_enough() -> None:
    simulate(Pauses, range(1, 20), settings=replace(OURS, workers=1))


class Forgetful(Pauses):
    """Its own promise is broken as soon as anything was written."""

    @override
    def check(self, seen: Seen) -> None:
        assert not seen.executions, "something was written"


class Mean(Writes):
    """A promise that only a crash breaks."""

    @override
    def check_end(self, seen: Seen) -> None:
        for log in seen.logs.values():
            assert all(e.data.get("reason") != "worker_lost" for e in log), "somebody was lost"


def test_a_promise_of_the_host_is_checked_after_each_commit() -> None:
    outcome = play(Forgetful, CALM)
    assert outcome.violation == "something was written"


def test_a_failure_names_its_seed_and_only_what_is_needed() -> None:
    report = explore(Mean, range(1, 200), settings=OURS)
    failure = report.failure
    assert failure is not None
    assert {chance.kind for chance in failure.outcome.plan.chances} & {Kind.CRASH, Kind.DB}
    for left in failure.kept:
        rest = [place for place in failure.kept if place != left]
        assert explore(Mean, [failure.seed], settings=OURS, keep=rest).passed
    shown = failure.describe()
    assert f"seed {failure.seed}: somebody was lost" in shown
    # What is printed can be played again.
    again = explore(Mean, [failure.seed], settings=OURS, keep=failure.kept)
    assert again.failure is not None
    assert again.failure.outcome == failure.outcome


def test_a_failing_seed_fails_a_test_with_all_that_helps() -> None:
    with pytest.raises(AssertionError, match=r"seed 1: something was written"):
        simulate(Forgetful, range(1, 9))


def test_an_error_of_the_scenario_is_no_silent_success() -> None:
    class Broken(Pauses):
        @override
        def answer(self, asked: object, choice: object) -> None:
            raise ZeroDivisionError("of the scenario")

    assert play(Broken, CALM).violation == "ZeroDivisionError: of the scenario"


def test_a_run_that_nobody_can_bring_on_is_stuck() -> None:
    class Silent(Pauses):
        @override
        def result(self, task: object, choice: object) -> ToolResult:
            raise OSError("not yet")

    outcome = play(Silent, CALM, Settings(patience_seconds=300))
    assert outcome.violation is not None
    assert outcome.violation.startswith("stuck after 300 s")
    assert "waiting_external" in outcome.violation
