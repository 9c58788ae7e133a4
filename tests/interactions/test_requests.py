"""Questions are accepted, normalised or refused by the documented rules."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given

from rungent.interactions import (
    InteractionRequest,
    InteractionSpec,
    InvalidInteraction,
    Option,
    Question,
    ToolContinuation,
    approval_spec,
    parse_request,
    to_public,
)
from tests.interactions.strategies import JSON, REQUESTS

A = {"id": "a", "label": "Alpha"}
B = {"id": "b", "label": "Beta"}


def text(**more: object) -> dict[str, object]:
    return {"kind": "text", "prompt": "Why?", **more}


def choice(**more: object) -> dict[str, object]:
    return {"kind": "choice", "prompt": "Which?", "options": [A, B], **more}


def form(*questions: object, **more: object) -> dict[str, object]:
    return {"kind": "form", "prompt": "Details", "questions": list(questions), **more}


def question(**more: object) -> dict[str, object]:
    return {"id": "q", "prompt": "Why?", "kind": "text", **more}


ACCEPTED: list[dict[str, object]] = [
    text(prompt="  Why?  "),
    text(prompt="x" * 4000),
    text(prompt="  " + "x" * 4000 + "  "),
    text(options=[], questions=[]),
    text(options=None, questions=None, multiple=None, skip_label=None, other=1),
    choice(options=[{**A, "description": None, "recommended": None, "icon": 1}]),
    choice(options=[{"id": "i" * 200, "label": "l" * 500, "description": "d" * 1000}]),
    choice(options=[{"id": str(n), "label": "L"} for n in range(50)]),
    choice(prompt="1. x\n2. y"),
    form(question()),
    form(*[question(id=str(n)) for n in range(8)]),
    form(question(kind="choice", options=[A], multiple=True, allow_custom=True)),
    form(question(), prompt="1. x\n2. y"),
    form(question(multiple=False, allow_custom=None, options=[])),
]

REFUSED: list[tuple[dict[str, object], str]] = [
    ({}, "kind"),
    ({"kind": None, "prompt": "x"}, "kind"),
    ({"kind": "approval", "prompt": "x"}, "kind"),
    ({"kind": ["text"], "prompt": "x"}, "kind"),
    ({"kind": "text"}, "prompt"),
    (text(prompt="   "), "prompt"),
    (text(prompt=5), "prompt"),
    (text(prompt="x" * 4001), "prompt"),
    (text(prompt="Where?\n1. Paris\n2. Rome"), "prompt"),
    (text(options=[A]), "options"),
    (text(options={"a": 1}), "options"),
    (text(questions=[question()]), "questions"),
    (text(multiple="yes"), "multiple"),
    (text(allow_skip=1), "allow_skip"),
    (text(skip_label=3), "skip_label"),
    (choice(options=[]), "options"),
    (choice(options=None), "options"),
    (choice(options="ab"), "options"),
    (choice(options=[{"id": str(n), "label": "L"} for n in range(51)]), "options"),
    (choice(options=[A, A]), "options"),
    (choice(options=["a"]), "options[0]"),
    (choice(options=[A, {"label": "L"}]), "options[1].id"),
    (choice(options=[{"id": " ", "label": "L"}]), "options[0].id"),
    (choice(options=[{"id": "i" * 201, "label": "L"}]), "options[0].id"),
    (choice(options=[{"id": 1, "label": "L"}]), "options[0].id"),
    (choice(options=[{"id": "a"}]), "options[0].label"),
    (choice(options=[{"id": "a", "label": ""}]), "options[0].label"),
    (choice(options=[{"id": "a", "label": "l" * 501}]), "options[0].label"),
    (choice(options=[{**A, "description": "d" * 1001}]), "options[0].description"),
    (choice(options=[{**A, "description": 5}]), "options[0].description"),
    (choice(options=[{**A, "recommended": "yes"}]), "options[0].recommended"),
    (choice(skip_label="s" * 201, allow_skip=True), "skip_label"),
    (choice(questions=[question()]), "questions"),
    (form(), "questions"),
    (form(*[question(id=str(n)) for n in range(9)]), "questions"),
    (form(question(), question()), "questions"),
    (form(question(), options=[A]), "options"),
    (form(7), "questions[0]"),
    (form(question(kind="form")), "questions[0].kind"),
    (form(question(id=None)), "questions[0].id"),
    (form(question(prompt="")), "questions[0].prompt"),
    (form(question(prompt="A) x\nB) y")), "questions[0].prompt"),
    (form(question(options=[A])), "questions[0].options"),
    (form(question(multiple=True)), "questions[0].multiple"),
    (form(question(allow_custom=True)), "questions[0].multiple"),
    (form(question(required="no")), "questions[0].required"),
    (form(question(kind="choice")), "questions[0].options"),
    (form(question(kind="choice", options=[A, A])), "questions[0].options"),
]


@pytest.mark.parametrize("raw", ACCEPTED)
def test_a_question_within_the_rules_is_accepted(raw: dict[str, object]) -> None:
    assert parse_request(raw).kind == raw["kind"]


@pytest.mark.parametrize(("raw", "place"), REFUSED)
def test_a_broken_rule_is_named_with_its_place(raw: dict[str, object], place: str) -> None:
    with pytest.raises(InvalidInteraction) as caught:
        parse_request(raw)
    assert str(caught.value).startswith(place)


def test_a_refusal_names_no_input_value() -> None:
    secret = "hunter2"
    for raw in (text(kind=secret), choice(options=[{"id": secret}]), form(question(kind=secret))):
        with pytest.raises(InvalidInteraction) as caught:
            parse_request({**raw})
        assert secret not in str(caught.value)


@pytest.mark.parametrize("raw", [None, [], "text", 5])
def test_a_request_that_is_no_object_is_refused(raw: Any) -> None:
    with pytest.raises(InvalidInteraction):
        parse_request(raw)


def test_texts_are_trimmed_and_storable_and_ids_verbatim() -> None:
    spec = parse_request(
        choice(
            prompt=" Which\x00\ud800? ",
            options=[{"id": " a ", "label": " Alpha "}],
            allow_skip=True,
            skip_label="  later ",
        )
    )
    assert spec.prompt == "Which��?"
    assert spec.skip_label == "later"
    assert spec.options[0] == Option(id=" a ", label=" Alpha ")


@pytest.mark.parametrize(
    ("more", "label"),
    [
        ({"allow_skip": True, "skip_label": "  "}, None),
        ({"allow_skip": False, "skip_label": "later"}, None),
        ({"allow_skip": True, "skip_label": "later"}, "later"),
    ],
)
def test_the_skip_label_exists_only_where_skipping_is_allowed(
    more: Mapping[str, object], label: str | None
) -> None:
    assert parse_request(choice(**more)).skip_label == label


@pytest.mark.parametrize("raw", [text(), form(question())])
def test_flags_mean_nothing_outside_a_choice(raw: dict[str, object]) -> None:
    flags = {"multiple": True, "allow_custom": True, "allow_skip": True, "skip_label": "later"}
    assert parse_request({**raw, **flags}) == parse_request(raw)


def test_a_host_request_takes_options_as_mappings_or_records() -> None:
    go_on = ToolContinuation("go_on")
    plain = InteractionRequest("choice", "Which?", [A, B], continuation=go_on)
    records = InteractionRequest(
        "choice",
        "Which?",
        (Option(id="a", label="Alpha"), Option(id="b", label="Beta")),
        continuation=go_on,
    )
    assert plain.spec() == records.spec() == parse_request(choice())
    asked = Question(id="q", prompt="Why?", kind="text")
    sheet = InteractionRequest("form", "Details", questions=[asked], continuation=go_on)
    assert sheet.spec().questions == (asked,)


def test_a_host_request_is_checked_only_when_its_spec_is_made() -> None:
    request = InteractionRequest("choice", "Which?", continuation=ToolContinuation("go_on"))
    with pytest.raises(InvalidInteraction):
        request.spec()


def test_an_enum_member_becomes_plain_text() -> None:
    class Kind(StrEnum):
        TEXT = "text"

    spec = parse_request(text(kind=Kind.TEXT, prompt=Kind.TEXT))
    assert (type(spec.kind), type(spec.prompt)) == (str, str)


def test_the_public_form_shows_every_field() -> None:
    spec = parse_request(form(question(kind="choice", options=[A])))
    option = {"id": "a", "label": "Alpha", "description": None, "recommended": False}
    assert to_public(spec) == {
        "kind": "form",
        "prompt": "Details",
        "options": [],
        "questions": [
            {
                "id": "q",
                "prompt": "Why?",
                "kind": "choice",
                "options": [option],
                "multiple": False,
                "allow_custom": False,
                "required": True,
            }
        ],
        "multiple": False,
        "allow_custom": False,
        "allow_skip": False,
        "skip_label": None,
    }


def test_an_approval_offers_exactly_two_answers() -> None:
    spec = approval_spec("Delete it?", approve_label="Yes", reject_label="No")
    assert [(o.id, o.label) for o in spec.options] == [("approve", "Yes"), ("reject", "No")]
    assert (spec.kind, spec.prompt, spec.allow_skip) == ("approval", "Delete it?", False)


@given(JSON)
def test_arbitrary_json_raises_nothing_but_a_refusal(raw: Any) -> None:
    try:
        spec = parse_request(raw)
    except InvalidInteraction:
        return
    assert InteractionSpec.model_validate(spec.model_dump()) == spec


@given(REQUESTS)
def test_a_normalised_question_is_accepted_unchanged(raw: dict[str, object]) -> None:
    spec = parse_request(raw)
    assert parse_request(to_public(spec)) == spec
