"""Matching, counting and reporting are plain functions."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from rungent.testing.baseline import BaselineCase, BaselineReport, BaselineResult, Measures
from rungent.testing.baseline.cases import Match
from rungent.testing.baseline.judge import as_response, first_difference, surplus
from rungent.testing.baseline.show import as_junit, as_table, progress_line


@pytest.mark.parametrize(
    ("expected", "actual", "match", "fits"),
    [
        ("ab", "ab", "exact", True),
        ("ab", "ba", "exact", False),
        ("ab", "a", "exact", False),
        ("", "", "exact", True),
        ("", "a", "exact", False),
        ("", "abc", "contains", True),
        ("ac", "abc", "contains", True),
        ("ca", "abc", "contains", False),
        ("aa", "abc", "contains", False),
        ("aa", "aba", "contains", True),
    ],
)
def test_tools_and_interactions_are_matched(
    expected: str, actual: str, match: Match, fits: bool
) -> None:
    tools = BaselineCase("it", "x", expected_tools=tuple(expected), tool_match=match)
    difference = first_difference(tools, tuple(actual), (), "completed")
    assert (difference is None) == fits
    asked = BaselineCase("it", "x", expected_interactions=tuple(expected), interaction_match=match)
    difference = first_difference(asked, (), tuple(actual), "completed")
    assert (difference is None) == fits


def test_what_differs_first_is_named() -> None:
    case = BaselineCase("it", "x", expected_tools=("a",), expected_interactions=("choice",))
    tools = "tools: expected exactly a, got b, c"
    assert first_difference(case, ("b", "c"), (), "failed") == tools
    asked = "interactions: expected exactly choice, got none"
    assert first_difference(case, ("a",), (), "failed") == asked
    status = "status: expected completed, got failed"
    assert first_difference(case, ("a",), ("choice",), "failed") == status


def test_a_match_of_another_kind_is_refused() -> None:
    match: object = "roughly"
    with pytest.raises(ValueError, match="'exact' or 'contains'"):
        BaselineCase("it", "x", tool_match=match)  # type: ignore[arg-type] # pyright: ignore


@pytest.mark.parametrize(
    ("expected", "actual", "count"),
    [("", "", 0), ("ab", "ab", 0), ("ab", "axb", 1), ("ab", "", 0), ("", "xy", 2), ("ab", "ba", 1)],
)
def test_what_nobody_expected_is_counted(expected: str, actual: str, count: int) -> None:
    assert surplus(tuple(expected), tuple(actual)) == count


def test_a_bare_string_chooses_an_option_of_a_choice_only() -> None:
    assert as_response("choice", "a") == {"selected": ["a"]}
    assert as_response("text", "a") == "a"
    assert as_response("choice", {"skipped": True}) == {"skipped": True}


GOOD = BaselineResult("a", True, ("x",), ("choice",), "Done.", None, Measures(0, 0, True, 10, 1))
BAD = BaselineResult(
    "b",
    False,
    ("x", "y", "y"),
    ("text",),
    None,
    "it \x00 broke\nbadly",
    Measures(2, 1, False, 5, 3),
)


def test_an_empty_report_passed() -> None:
    report = BaselineReport(())
    assert (report.passed, report.pass_rate) == (True, 1.0)
    assert report.to_dict() == {"passed": True, "pass_rate": 1.0, "results": []}
    assert report.metrics()["final_state_accuracy"] is None
    assert as_table(report)


def test_rates_are_shares_of_what_happened() -> None:
    assert BaselineReport((GOOD, BAD)).metrics() == {
        "pass_rate": 0.5,
        "unexpected_tool_rate": 0.5,
        "unnecessary_interaction_rate": 0.5,
        "final_state_accuracy": 0.5,
        "tokens": 15,
        "seconds_median": 2,
        "seconds_max": 3,
    }


def test_failures_are_named() -> None:
    BaselineReport((GOOD,)).assert_passed()
    with pytest.raises(AssertionError, match=r"1 of 2 cases failed\n  b: it"):
        BaselineReport((GOOD, BAD)).assert_passed()


def test_a_repeated_case_has_a_rate_of_its_own() -> None:
    again = BaselineResult("b", True)
    report = BaselineReport((GOOD, BAD, again, again))
    assert report.by_case() == {"a": (1, 1), "b": (2, 3)}
    assert "2/3 = 67%" in as_table(report)


def test_the_table_shows_verdicts_reasons_and_rates() -> None:
    table = as_table(BaselineReport((GOOD, BAD)))
    assert "ok      a" in table
    assert "FAILED  b" in table
    assert "broke" in table
    assert "pass rate: 50.0%" in table


def test_junit_is_xml_whatever_an_error_holds() -> None:
    root = ElementTree.fromstring(as_junit(BaselineReport((GOOD, BAD)), "m:suite"))
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    failure = root.find("testcase[@name='b']/failure")
    assert failure is not None
    assert failure.get("message") == "it \N{REPLACEMENT CHARACTER} broke"


def test_progress_is_one_line() -> None:
    assert progress_line(5, 10, "it") == "[##########..........] 5/10 it"
