"""Numbered alternatives inside prompts are found, look-alikes are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungent.interactions import has_numbered_alternatives

LISTS = [
    "1. Paris\n2. Rome",
    "Where to?\n1) Paris\n2) Rome",
    "(1) Paris\n(2) Rome",
    "1: Paris\n2: Rome",
    "1、東京\n2、大阪",
    "１．東京\n２．大阪",
    "１：東京\n２：大阪",
    "A) Paris\nB) Rome",
    "a. Paris\nb. Rome",
    "a. Paris\nB) Rome",
    "  1. Paris\n\t2. Rome",
    "01. Paris\n02. Rome",
    "1. Paris\n2) Rome",
    "1. Paris\nwhich is in France\n\n2. Rome",
    "1. Paris\n1. Lyon\n2. Rome",
    "1.Paris\n2.Rome",
    "1. Paris\r\n2. Rome",
    "2. Rome\n1. Paris\n2. Rome",
]

NO_LISTS = [
    "",
    "Where to?",
    "1. Paris",
    "1. Paris\n3. Rome",
    "2. Rome\n1. Paris",
    "1:30 in the morning\n2:45 in the afternoon",
    "1.5 litres\n2.5 litres",
    "1.2.2026 arrival\n2.2.2026 departure",
    "2026: the first year\n2027: the second year",
    "1.\n2.",
    "1. Paris\nB. Rome",
    "A: Paris\nB: Rome",
    "1 Paris\n2 Rome",
    "AB. Paris\nBC. Rome",
    "Is it 1. Paris or\n is it 2. Rome?",
    "1. Paris 2. Rome",
    "- 1. Paris\n- 2. Rome",
]


@pytest.mark.parametrize("text", LISTS)
def test_lists_are_found(text: str) -> None:
    assert has_numbered_alternatives(text)


@pytest.mark.parametrize("text", NO_LISTS)
def test_other_texts_are_left_alone(text: str) -> None:
    assert not has_numbered_alternatives(text)


def test_an_ordinal_longer_than_python_converts_is_no_crash() -> None:
    assert not has_numbered_alternatives("1. a\n" + "2" * 5000 + ". b")


@given(st.text(alphabet="12AaBb().:、１２ \nxé"))
def test_text_around_a_list_does_not_hide_it(noise: str) -> None:
    assert has_numbered_alternatives(f"{noise}\n1. yes\n{noise}\n2. no\n{noise}")
