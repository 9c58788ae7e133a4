"""Checks an answer against its question and brings it into its one normal form.

Pure: the same question and value always give the same normal form or the same refusal, and a
normal form is accepted unchanged. Source: docs/interactions.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, assert_never, cast

from pydantic import BaseModel, ConfigDict, JsonValue

from rungent.errors import InvalidResponse
from rungent.interactions.spec import (
    APPROVE,
    REJECT,
    InteractionSpec,
    Option,
    Question,
    RequestKind,
)
from rungent.text import storable

__all__ = [
    "AnswerOutcome",
    "InteractionResponse",
    "TrustedInteractionResponse",
    "outcome_of",
    "validate_answer",
]

TEXT_LIMIT = 4000
CUSTOM_LIMIT = 1000

AnswerOutcome = Literal["answered", "skipped", "approved", "rejected"]
_Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class InteractionResponse:
    """A client's answer to one interaction. `value` is not checked yet."""

    interaction_id: str
    value: JsonValue


class TrustedInteractionResponse(BaseModel):
    """An answer that the runtime checked: what tools find in `ctx.interaction_response`.

    `value` is in normal form. It never comes from the model. Source: docs/interactions.md.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    interaction_id: str
    kind: RequestKind
    prompt: str
    value: JsonValue

    def __init__(
        self, interaction_id: str, kind: RequestKind, prompt: str, value: JsonValue
    ) -> None:
        super().__init__(interaction_id=interaction_id, kind=kind, prompt=prompt, value=value)


def validate_answer(spec: InteractionSpec, value: object) -> JsonValue:
    """The normal form of `value` as an answer to `spec`.

    Text: the trimmed string. Choice: `selected` in the order of the options, with `custom` and
    `skipped` where given. Form: `answers` in the order of the questions, without the optional
    ones that were left out. Approval: "approve" or "reject". What a tool asks for as data is
    checked by the tool's own model, never here.

    Raises InvalidResponse for the first broken rule, with its reason code and the path of keys
    and indexes to the offending part; an empty path means the value itself.
    """
    match spec.kind:
        case "text":
            return _text(value, ())
        case "choice":
            return _choice(_Choice.of_spec(spec), value, ())
        case "form":
            return _form(spec.questions, value)
        case "approval":
            return _decision(value)
        case "data":
            raise InvalidResponse("invalid_value", "Only the tool that asked knows what counts.")
        case _ as never:
            assert_never(never)


def outcome_of(spec: InteractionSpec, normalised: JsonValue) -> AnswerOutcome:
    """How `interaction.resolved` reports an answer in normal form."""
    if spec.kind == "approval":
        return "approved" if normalised == APPROVE else "rejected"
    if spec.kind == "choice" and isinstance(normalised, dict) and normalised.get("skipped") is True:
        return "skipped"
    return "answered"


@dataclass(frozen=True, slots=True)
class _Choice:
    """The rules of one choice, asked alone or inside a form."""

    options: tuple[Option, ...]
    multiple: bool
    allow_custom: bool
    allow_skip: bool

    @classmethod
    def of_spec(cls, spec: InteractionSpec) -> _Choice:
        return cls(spec.options, spec.multiple, spec.allow_custom, spec.allow_skip)

    @classmethod
    def of_question(cls, question: Question) -> _Choice:
        return cls(question.options, question.multiple, question.allow_custom, allow_skip=False)


def _text(value: object, path: _Path) -> str:
    if not isinstance(value, str):
        raise InvalidResponse("type_mismatch", "A text is expected.", path=path)
    text = _clean(value).strip()
    if not text:
        raise InvalidResponse("empty_answer", "The answer is empty.", path=path)
    if len(text) > TEXT_LIMIT:
        message = f"The answer has more than {TEXT_LIMIT} characters."
        raise InvalidResponse("too_long", message, path=path)
    return text


def _choice(rules: _Choice, value: object, path: _Path) -> dict[str, JsonValue]:
    selected, custom, skipped = _members(value, path)
    if skipped and not rules.allow_skip:
        message = "This question cannot be skipped."
        raise InvalidResponse("skip_not_allowed", message, path=(*path, "skipped"))
    known = {option.id for option in rules.options}
    for index, chosen in enumerate(selected):
        if chosen in selected[:index]:
            message = "An option is selected twice."
            raise InvalidResponse("duplicate_option", message, path=(*path, "selected", index))
    for index, chosen in enumerate(selected):
        if chosen not in known:
            message = "There is no such option."
            raise InvalidResponse("unknown_option", message, path=(*path, "selected", index))
    if len(custom) > CUSTOM_LIMIT:
        message = f"The own answer has more than {CUSTOM_LIMIT} characters."
        raise InvalidResponse("too_long", message, path=(*path, "custom"))
    if custom and not rules.allow_custom:
        message = "Only the given options can be chosen."
        raise InvalidResponse("custom_not_allowed", message, path=(*path, "custom"))
    if skipped and (selected or custom):
        message = "A skipped question cannot have an answer."
        raise InvalidResponse("skip_with_answer", message, path=path)
    if not (selected or custom or skipped):
        raise InvalidResponse("empty_answer", "Nothing is selected.", path=path)
    if len(selected) + bool(custom) > 1 and not rules.multiple:
        message = "Only one answer can be given."
        raise InvalidResponse("too_many_answers", message, path=path)
    normalised: dict[str, JsonValue] = {
        "selected": [option.id for option in rules.options if option.id in selected]
    }
    if custom:
        normalised["custom"] = custom
    if skipped:
        normalised["skipped"] = True
    return normalised


def _members(value: object, path: _Path) -> tuple[list[str], str, bool]:
    """Selected ids, trimmed own answer ("" for none) and the skip mark of a choice."""
    answer = _object(value, path)
    selected = answer.get("selected")
    if selected is None:
        selected = []
    if not isinstance(selected, (list, tuple)):
        message = "A list of option ids is expected."
        raise InvalidResponse("type_mismatch", message, path=(*path, "selected"))
    ids: list[str] = []
    for index, chosen in enumerate(cast("list[object]", selected)):
        if not isinstance(chosen, str):
            message = "An option id is a text."
            raise InvalidResponse("type_mismatch", message, path=(*path, "selected", index))
        ids.append(_clean(chosen))
    custom = answer.get("custom")
    if custom is not None and not isinstance(custom, str):
        message = "The own answer is a text."
        raise InvalidResponse("type_mismatch", message, path=(*path, "custom"))
    skipped = answer.get("skipped", False)
    if not isinstance(skipped, bool):
        message = "The skip mark is true or false."
        raise InvalidResponse("type_mismatch", message, path=(*path, "skipped"))
    return ids, _clean(custom or "").strip(), skipped


def _form(questions: tuple[Question, ...], value: object) -> dict[str, JsonValue]:
    body = _object(value, ())
    given = _object(body.get("answers", {}), ("answers",))
    answers = {_clean(str(key)): answer for key, answer in given.items()}
    asked = {question.id for question in questions}
    for key in answers:
        if key not in asked:
            message = "There is no such question."
            raise InvalidResponse("unknown_question", message, path=("answers", key))
    present = [q for q in questions if not _is_missing(q, answers.get(q.id))]
    for question in questions:
        if question.required and question not in present:
            message = "A required answer is missing."
            raise InvalidResponse("missing_answer", message, path=("answers", question.id))
    normalised: dict[str, JsonValue] = {}
    for question in present:
        path = ("answers", question.id)
        if question.kind == "text":
            normalised[question.id] = _text(answers[question.id], path)
        else:
            rules = _Choice.of_question(question)
            normalised[question.id] = _choice(rules, answers[question.id], path)
    return {"answers": normalised}


def _is_missing(question: Question, answer: object) -> bool:
    if answer is None or (isinstance(answer, str) and not answer.strip()):
        return True
    if question.kind == "text" or not isinstance(answer, Mapping):
        return False
    try:
        selected, custom, skipped = _members(cast("Mapping[object, object]", answer), ())
    except InvalidResponse:
        return False  # something was given; the rules of the kind will refuse it
    return not (selected or custom or skipped)


def _decision(value: object) -> str:
    # `is`, because 1 == True; the whole object, because a remark beside it is not a consent.
    if value is True or value == APPROVE or value == {"selected": [APPROVE]}:
        return APPROVE
    if value is False or value == REJECT or value == {"selected": [REJECT]}:
        return REJECT
    raise InvalidResponse("invalid_decision", "Either approve or reject is expected.")


def _object(value: object, path: _Path) -> Mapping[object, object]:
    if not isinstance(value, Mapping):
        raise InvalidResponse("type_mismatch", "An object is expected.", path=path)
    return cast("Mapping[object, object]", value)


def _clean(text: str) -> str:
    # `str.__str__` drops subclasses such as enum members.
    return storable(str.__str__(text))
