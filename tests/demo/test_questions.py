"""Questions of a run as a terminal shows them, and typed lines as answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from pydantic import JsonValue

from rungent import InvalidResponse
from rungent.demo.asking import answer_until_accepted
from rungent.demo.questions import (
    Choice,
    Data,
    Decision,
    Form,
    Option,
    Text,
    Unreadable,
    question_of,
    read_choice,
    read_decision,
)

OPTIONS = (Option("a", "Alpha"), Option("b", "Beta"))


def option(key: str, **more: Any) -> dict[str, Any]:
    return {"id": key, "label": key.upper(), "description": None, "recommended": False, **more}


def asked(kind: str, **more: Any) -> dict[str, Any]:
    return {
        "id": "int_1",
        "kind": kind,
        "prompt": "Which\x1b one?",
        "options": [],
        "questions": [],
        "multiple": False,
        "allow_custom": False,
        "allow_skip": False,
        "skip_label": None,
        **more,
    }


def test_every_kind_of_question_is_understood() -> None:
    assert question_of(asked("text")) == Text("Which one?")
    options = [option("a", description="first", recommended=True), option("b")]
    assert question_of(asked("choice", options=options, allow_skip=True)) == Choice(
        "Which one?", (Option("a", "A - first (recommended)"), Option("b", "B")), skip="Skip"
    )
    tool = {"name": "x", "title": "Do it", "effect": "write"}
    assert question_of(asked("approval", tool=tool)) == Decision("Which one?", "Do it")
    assert question_of(asked("data", schema={"type": "object"})) == Data(
        "Which one?", {"type": "object"}
    )
    part = {"id": "q", "prompt": "Why?", "required": False}
    pick = {"multiple": True, "allow_custom": True, "options": [option("b")]}
    questions = [{**part, "kind": "text"}, {**part, "kind": "choice", **pick}]
    assert question_of(asked("form", questions=questions)) == Form(
        "Which one?",
        (
            ("q", Text("Why?", required=False)),
            ("q", Choice("Why?", (Option("b", "B"),), True, True, required=False)),
        ),
    )


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("1", {"selected": ["a"]}),
        (" 2 , 1 ", {"selected": ["b", "a"]}),
        ("skip", {"selected": [], "skipped": True}),
        ("Tea, coffee", {"selected": [], "custom": "Tea, coffee"}),
        ("1, tea, coffee", {"selected": ["a"], "custom": "tea, coffee"}),
        ("", None),
    ],
)
def test_a_line_is_numbers_own_words_or_skip(line: str, answer: JsonValue) -> None:
    choice = Choice("?", OPTIONS, multiple=True, allow_custom=True, skip="Skip")
    assert read_choice(choice, line) == answer


@pytest.mark.parametrize(
    ("line", "reason"),
    [("3", "1 to 2"), ("0", "1 to 2"), ("tea", "Only the numbers"), (",", "1 to 2")],
)
def test_a_line_that_is_no_answer_says_what_is_expected(line: str, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        read_choice(Choice("?", OPTIONS), line)


def test_a_decision_is_a_clear_yes_or_no() -> None:
    assert [read_decision(line) for line in ("y", " Yes", "approve")] == ["approve"] * 3
    assert [read_decision(line) for line in ("n", "No ", "reject")] == ["reject"] * 3
    for line in ("", "maybe", "yes no"):
        with pytest.raises(Unreadable):
            read_decision(line)


class Scripted:
    """An asker that answers from a list, and remembers what it was asked and told."""

    def __init__(self, answers: Iterable[JsonValue]) -> None:
        self.answers = iter(answers)
        self.asked: list[str] = []
        self.told: list[str] = []

    def say(self, text: str) -> None:
        self.told.append(text)

    async def text(self, question: Text) -> JsonValue:
        self.asked.append(question.prompt)
        return next(self.answers)

    async def choice(self, question: Choice) -> JsonValue:
        self.asked.append(question.prompt)
        return next(self.answers)

    async def decision(self, question: Decision) -> JsonValue:
        self.asked.append(question.prompt)
        return next(self.answers)


async def test_only_the_refused_question_of_a_form_is_asked_again() -> None:
    form = Form("Form", (("a", Text("A?")), ("b", Text("B?")), ("c", Choice("C?", OPTIONS))))
    asker = Scripted(["one", "", {"selected": ["a"]}, "two"])
    submitted: list[JsonValue] = []

    async def submit(value: JsonValue) -> None:
        submitted.append(value)
        if len(submitted) == 1:
            raise InvalidResponse("missing_answer", "B is missing.", path=("answers", "b"))

    await answer_until_accepted(asker, form, submit)
    assert asker.asked == ["A?", "B?", "C?", "B?"]
    assert "B is missing." in asker.told
    assert submitted[1] == {"answers": {"a": "one", "c": {"selected": ["a"]}, "b": "two"}}


async def test_a_refused_answer_is_asked_again_with_the_reason() -> None:
    asker = Scripted([None, {"selected": ["a"]}])

    async def submit(value: JsonValue) -> None:
        if value == {}:
            raise InvalidResponse("empty_answer", "Nothing is selected.")

    await answer_until_accepted(asker, Choice("C?", OPTIONS), submit)
    assert asker.told == ["Nothing is selected."]
