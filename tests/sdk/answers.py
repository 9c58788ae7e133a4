"""Answers with what the server makes of each: the table that the SDK's own check is tested on."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

from rungent.errors import InvalidResponse
from rungent.interactions import InteractionSpec, validate_answer
from rungent.interactions.spec import to_public
from rungent.text import canonical_json
from tests.interactions.test_answers import ANY, APPROVAL, FORM, NORMALISED, ONE, REFUSED, TEXT

__all__ = ["answer_table"]

Case = tuple[InteractionSpec, Any]

# What reads differently in the two languages: blanks, astral characters, what no text may hold.
TEXTS = [
    "\ufeffx\ufeff", "\x1cx\x85", "\u3000x\u2028", "\U0001f600" * 1000, "\U0001f600" * 1001,
    "\x00", "\ud83d", "a\x00\ud800b", "\u200b", "__proto__",
]  # fmt: skip
SPECS = [TEXT, ONE, ANY, FORM, APPROVAL]
PARTS: list[Any] = [
    None, True, False, 0, "", " ", "a", "b", "x", "own", [], ["a"], ["b", "a"], ["a", "a"],
    ["x"], [1], {}, {"selected": ["a"]}, {"custom": "o"}, {"skipped": True}, "approve", "reject",
]  # fmt: skip
MEMBERS = ("selected", "custom", "skipped", "answers", "other")
QUESTIONS = ("why", "which", "more", "own", "other")
RANDOM_CASES = 400


def answer_table() -> dict[str, list[Any]]:
    """Questions, and cases: index of the question, value, and the normal form or the refusal."""
    cases = list(_cases())
    questions: list[InteractionSpec] = []
    for spec, _ in cases:
        if spec not in questions:
            questions.append(spec)
    return {
        "questions": [to_public(spec) for spec in questions],
        "cases": [_case(questions.index(spec), spec, value) for spec, value in cases],
    }


def _cases() -> Iterable[Case]:
    chosen: list[Case] = [case[:2] for case in NORMALISED]
    chosen += [case[:2] for case in REFUSED]
    chosen += [(TEXT, text) for text in TEXTS]
    chosen += [(ANY, {"custom": text}) for text in TEXTS]
    chosen += list(_random_cases(random.Random(1)))
    return {canonical_json([to_public(s), v]): (s, v) for s, v in chosen}.values()


def _random_cases(draw: random.Random) -> Iterator[Case]:
    for _ in range(RANDOM_CASES):
        names = draw.sample(MEMBERS, draw.randint(0, 4))
        value: Any = {name: draw.choice(PARTS) for name in names}
        if draw.random() < 0.5:
            asked = draw.sample(QUESTIONS, draw.randint(0, 5))
            value = {"answers": {name: draw.choice(PARTS) for name in asked}}
        yield draw.choice(SPECS), value


def _case(question: int, spec: InteractionSpec, value: Any) -> dict[str, Any]:
    case: dict[str, Any] = {"question": question, "value": value}
    try:
        case["normalised"] = validate_answer(spec, value)
    except InvalidResponse as refusal:
        case["reason"], case["path"] = refusal.reason, refusal.path
    return case
