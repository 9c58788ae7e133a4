"""Answers are normalised, or refused with the first reason that applies."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given

from rungent.errors import InvalidResponse
from rungent.interactions import (
    InteractionResponse,
    InteractionSpec,
    TrustedInteractionResponse,
    approval_spec,
    outcome_of,
    parse_request,
    validate_answer,
)
from tests.interactions.strategies import ANSWERS, JSON, REQUESTS

OPTIONS = [{"id": "a", "label": "Alpha"}, {"id": "b", "label": "Beta"}]
TEXT = parse_request({"kind": "text", "prompt": "Why?"})
APPROVAL = approval_spec("Delete it?")


def choice(**flags: bool) -> InteractionSpec:
    return parse_request({"kind": "choice", "prompt": "Which?", "options": OPTIONS, **flags})


ONE = choice()
ANY = choice(multiple=True, allow_custom=True, allow_skip=True)
FORM = parse_request(
    {
        "kind": "form",
        "prompt": "Details",
        "questions": [
            {"id": "why", "kind": "text", "prompt": "Why?"},
            {"id": "which", "kind": "choice", "prompt": "Which?", "options": OPTIONS},
            {"id": "more", "kind": "text", "prompt": "More?", "required": False},
            {
                "id": "own",
                "kind": "choice",
                "prompt": "Own?",
                "options": OPTIONS,
                "allow_custom": True,
                "required": False,
            },
        ],
    }
)
FULL: dict[str, object] = {"why": "so", "which": {"selected": ["a"]}}


def answers(**given: object) -> dict[str, object]:
    return {"answers": {**FULL, **given}}


NORMALISED: list[tuple[InteractionSpec, object, object]] = [
    (TEXT, "  yes \n", "yes"),
    (TEXT, "x" * 4000, "x" * 4000),
    (TEXT, "a\x00b\ud800", "a�b�"),
    (ONE, {"selected": ["b"]}, {"selected": ["b"]}),
    (ONE, {"selected": ["b"], "custom": None, "skipped": False, "x": 1}, {"selected": ["b"]}),
    (ONE, {"selected": ["b"], "custom": "   "}, {"selected": ["b"]}),
    (ANY, {"selected": ["b", "a"]}, {"selected": ["a", "b"]}),
    (ANY, {"selected": None, "custom": " own "}, {"selected": [], "custom": "own"}),
    (ANY, {"selected": ["a"], "custom": "own"}, {"selected": ["a"], "custom": "own"}),
    (ANY, {"custom": "  " + "x" * 1000 + " "}, {"selected": [], "custom": "x" * 1000}),
    (ANY, {"skipped": True}, {"selected": [], "skipped": True}),
    (choice(allow_custom=True), {"custom": "own"}, {"selected": [], "custom": "own"}),
    (FORM, answers(), answers()),
    (FORM, {**answers(more=None, own={}), "x": 1}, answers()),
    (FORM, answers(more=" ", own={"selected": []}), answers()),
    (FORM, answers(own={"selected": None, "skipped": False}), answers()),
    (FORM, answers(own=""), answers()),
    (
        FORM,
        answers(more=" m ", own={"custom": " o "}),
        answers(more="m", own={"selected": [], "custom": "o"}),
    ),
    (APPROVAL, True, "approve"),
    (APPROVAL, "approve", "approve"),
    (APPROVAL, {"selected": ["approve"]}, "approve"),
    (APPROVAL, False, "reject"),
    (APPROVAL, "reject", "reject"),
    (APPROVAL, {"selected": ["reject"]}, "reject"),
]

REFUSED: list[tuple[InteractionSpec, object, str, list[str | int]]] = [
    (TEXT, None, "type_mismatch", []),
    (TEXT, 5, "type_mismatch", []),
    (TEXT, {"text": "x"}, "type_mismatch", []),
    (TEXT, " \n ", "empty_answer", []),
    (TEXT, "x" * 4001, "too_long", []),
    (ONE, "a", "type_mismatch", []),
    (ONE, ["a"], "type_mismatch", []),
    (ONE, {"selected": "a"}, "type_mismatch", ["selected"]),
    (ONE, {"selected": ["a", 1]}, "type_mismatch", ["selected", 1]),
    (ONE, {"custom": 1}, "type_mismatch", ["custom"]),
    (ONE, {"skipped": "yes"}, "type_mismatch", ["skipped"]),
    (ONE, {"skipped": 1}, "type_mismatch", ["skipped"]),
    (ONE, {"skipped": True, "selected": ["x"]}, "skip_not_allowed", ["skipped"]),
    (ANY, {"selected": ["x", "a", "a"]}, "duplicate_option", ["selected", 2]),
    (ANY, {"selected": ["a", "x"], "custom": "x" * 1001}, "unknown_option", ["selected", 1]),
    (ONE, {"custom": "x" * 1001}, "too_long", ["custom"]),
    (ONE, {"custom": "own"}, "custom_not_allowed", ["custom"]),
    (ANY, {"selected": ["a"], "skipped": True}, "skip_with_answer", []),
    (ANY, {"custom": "own", "skipped": True}, "skip_with_answer", []),
    (ONE, {}, "empty_answer", []),
    (ANY, {"selected": [], "custom": " ", "skipped": False}, "empty_answer", []),
    (ONE, {"selected": ["a", "b"]}, "too_many_answers", []),
    (choice(allow_custom=True), {"selected": ["a"], "custom": "o"}, "too_many_answers", []),
    (FORM, None, "type_mismatch", []),
    (FORM, [], "type_mismatch", []),
    (FORM, {"answers": []}, "type_mismatch", ["answers"]),
    (FORM, {"answers": None}, "type_mismatch", ["answers"]),
    (FORM, {"answers": {"other": "x"}}, "unknown_question", ["answers", "other"]),
    (FORM, {}, "missing_answer", ["answers", "why"]),
    (FORM, {"answers": {}}, "missing_answer", ["answers", "why"]),
    (FORM, answers(why=None), "missing_answer", ["answers", "why"]),
    (FORM, answers(why=" "), "missing_answer", ["answers", "why"]),
    (FORM, answers(which={}), "missing_answer", ["answers", "which"]),
    (FORM, answers(why=5, which=None), "missing_answer", ["answers", "which"]),
    (FORM, answers(why=5), "type_mismatch", ["answers", "why"]),
    (FORM, answers(why={}), "type_mismatch", ["answers", "why"]),
    (FORM, answers(which="a"), "type_mismatch", ["answers", "which"]),
    (FORM, answers(which={"selected": [1]}), "type_mismatch", ["answers", "which", "selected", 0]),
    (FORM, answers(own={"custom": 1}), "type_mismatch", ["answers", "own", "custom"]),
    (FORM, answers(own={"skipped": True}), "skip_not_allowed", ["answers", "own", "skipped"]),
    (FORM, answers(more="x" * 4001), "too_long", ["answers", "more"]),
    (APPROVAL, None, "invalid_decision", []),
    (APPROVAL, 1, "invalid_decision", []),
    (APPROVAL, 0, "invalid_decision", []),
    (APPROVAL, "yes", "invalid_decision", []),
    (APPROVAL, " approve ", "invalid_decision", []),
    (APPROVAL, {"selected": ["approve", "reject"]}, "invalid_decision", []),
    (APPROVAL, {"selected": "approve"}, "invalid_decision", []),
    (APPROVAL, {"selected": ["approve"], "custom": "but only one"}, "invalid_decision", []),
    (APPROVAL, ["approve"], "invalid_decision", []),
]


@pytest.mark.parametrize(("spec", "value", "normalised"), NORMALISED)
def test_an_answer_is_brought_into_normal_form(
    spec: InteractionSpec, value: object, normalised: object
) -> None:
    assert validate_answer(spec, value) == normalised


@pytest.mark.parametrize(("spec", "value", "reason", "path"), REFUSED)
def test_the_first_broken_rule_gives_reason_and_path(
    spec: InteractionSpec, value: object, reason: str, path: list[str | int]
) -> None:
    with pytest.raises(InvalidResponse) as caught:
        validate_answer(spec, value)
    assert (caught.value.reason, caught.value.path) == (reason, path)
    assert caught.value.message not in ("", reason)


def test_form_answers_stand_in_the_order_of_the_questions() -> None:
    value = {"answers": {"more": "m", "which": {"selected": ["a"]}, "why": "so"}}
    normalised: Any = validate_answer(FORM, value)
    assert list(normalised["answers"]) == ["why", "which", "more"]


@pytest.mark.parametrize(
    ("spec", "value", "outcome"),
    [
        (TEXT, "skipped", "answered"),
        (ONE, {"selected": ["a"]}, "answered"),
        (ANY, {"skipped": True}, "skipped"),
        (FORM, answers(), "answered"),
        (APPROVAL, True, "approved"),
        (APPROVAL, "reject", "rejected"),
    ],
)
def test_the_outcome_follows_from_the_normal_form(
    spec: InteractionSpec, value: object, outcome: str
) -> None:
    assert outcome_of(spec, validate_answer(spec, value)) == outcome


@given(REQUESTS, ANSWERS)
def test_a_normal_form_is_accepted_unchanged(raw: dict[str, object], value: Any) -> None:
    spec = parse_request(raw)
    try:
        normalised = validate_answer(spec, value)
    except InvalidResponse:
        return
    assert validate_answer(spec, normalised) == normalised


@given(JSON)
def test_arbitrary_json_raises_nothing_but_a_refusal(value: Any) -> None:
    for spec in (TEXT, ONE, ANY, FORM, APPROVAL):
        with contextlib.suppress(InvalidResponse):
            validate_answer(spec, value)


def test_a_trusted_answer_can_be_stored_and_read_back() -> None:
    trusted = TrustedInteractionResponse("int_1", "choice", "Which?", {"selected": ["a"]})
    stored = trusted.model_dump_json()
    assert TrustedInteractionResponse.model_validate_json(stored) == trusted
    assert InteractionResponse("int_1", "yes").value == "yes"
