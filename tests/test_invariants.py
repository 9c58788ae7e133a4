"""Every promise of the product has tests that exist."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.invariants import INVARIANTS

FOLDER = Path(__file__).resolve().parent


def defined_tests() -> set[str]:
    return {
        node.name
        for path in FOLDER.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


TESTS = defined_tests()


@pytest.mark.parametrize("sentence", sorted(INVARIANTS))
def test_a_promise_is_proven_by_tests_that_exist(sentence: str) -> None:
    assert INVARIANTS[sentence], "a promise needs a test"
    assert set(INVARIANTS[sentence]) <= TESTS
