"""The trip planner keeps its whole matrix, and the matrix has every row that is wanted."""

from __future__ import annotations

from rungent.demo.baseline import make_suite
from rungent.demo.matrix import LIVE, MATRIX


async def test_the_example_passes_its_whole_matrix() -> None:
    report = await make_suite(cases=MATRIX).run()
    report.assert_passed()
    metrics = report.metrics()
    assert metrics["pass_rate"] == metrics["final_state_accuracy"] == 1.0
    assert metrics["unnecessary_interaction_rate"] == 0.0


def test_the_matrix_has_every_row() -> None:
    names = {case.name for case in MATRIX}
    assert len(names) == len(MATRIX)
    wanted = {
        *("add a place", "remove a place", "move a place", "swap two places"),
        "an ambiguous place is asked for",
        *("add a day", "remove a day with approval", "a day that does not exist"),
        *(f"go by {mode}" for mode in ("train", "taxi", "bus", "walk")),
        "an invalid mode is corrected",
        "a short follow-up means what was chosen before",
        *("a rejection changes nothing", "a tool error is no success"),
        *("the same request twice has one effect", "grouped questions are one form"),
        "the budget is the traveller's answer",
        *("a failure of the provider is passed over", "a run without end is ended"),
    }
    assert names == wanted
    assert all(case.assert_state is not None for case in MATRIX)
    assert len(LIVE) == len(MATRIX) - 1
