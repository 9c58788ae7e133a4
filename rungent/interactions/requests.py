"""Shape rules of a question to the user, for model calls and host requests alike.

`parse_request` turns untrusted JSON into an `InteractionSpec` or raises `InvalidInteraction`,
whose text names the broken rule and never a value. Source: docs/interactions.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar, cast

from rungent.interactions.numbering import has_numbered_alternatives
from rungent.interactions.spec import (
    InteractionSpec,
    Option,
    Question,
    QuestionKind,
    RequestKind,
)
from rungent.text import storable

__all__ = ["InteractionRequest", "InvalidInteraction", "ToolContinuation", "parse_request"]

PROMPT_LIMIT = 4000
ID_LIMIT = 200
LABEL_LIMIT = 500
DESCRIPTION_LIMIT = 1000
SKIP_LABEL_LIMIT = 200
OPTIONS_LIMIT = 50
QUESTIONS_LIMIT = 8

_REQUEST_KINDS: dict[str, RequestKind] = {"text": "text", "choice": "choice", "form": "form"}
_QUESTION_KINDS: dict[str, QuestionKind] = {"text": "text", "choice": "choice"}

_K = TypeVar("_K")
_T = TypeVar("_T", Option, Question)


class InvalidInteraction(ValueError):
    """A question that breaks a rule. The text is safe to show to the model."""


@dataclass(frozen=True, slots=True)
class ToolContinuation:
    """The tool that is called with the user's answer, and its arguments.

    `tool` is the name of a tool of the same agent that requires an interaction response.
    Source: docs/interactions.md.
    """

    tool: str
    arguments: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class InteractionRequest:
    """A question that a tool asks by returning it inside a `ToolResult`.

    `options` and `questions` are mappings or `Option`s and `Question`s. Nothing is checked
    before `spec` is called. After `expires_in` nobody can answer any more. Source: docs/interactions.md.
    """

    kind: RequestKind
    prompt: str
    options: Sequence[Option | Mapping[str, object]] = ()
    questions: Sequence[Question | Mapping[str, object]] = ()
    multiple: bool = False
    allow_custom: bool = False
    allow_skip: bool = False
    skip_label: str | None = None
    continuation: ToolContinuation = field(kw_only=True)
    expires_in: timedelta | None = field(default=None, kw_only=True)

    def spec(self) -> InteractionSpec:
        """The checked form of this question. Raises InvalidInteraction."""
        return parse_request(
            {
                "kind": self.kind,
                "prompt": self.prompt,
                "options": self.options,
                "questions": self.questions,
                "multiple": self.multiple,
                "allow_custom": self.allow_custom,
                "allow_skip": self.allow_skip,
                "skip_label": self.skip_label,
            }
        )


def parse_request(raw: Mapping[str, object]) -> InteractionSpec:
    """The normalised question in `raw`.

    A null counts as absent and unknown keys are ignored. Strings are made storable, prompts
    and the skip label trimmed. Raises InvalidInteraction for everything else that is wrong.
    """
    fields = _Fields(raw, "")
    kind = fields.one_of("kind", _REQUEST_KINDS)
    prompt = fields.prompt(plain=kind == "text")
    options = fields.options(wanted=kind == "choice")
    multiple = fields.flag("multiple")
    allow_custom = fields.flag("allow_custom")
    allow_skip = fields.flag("allow_skip")
    skip_label = fields.text("skip_label", SKIP_LABEL_LIMIT, trim=True) or None
    questions = fields.items(
        "questions", _question, limit=QUESTIONS_LIMIT, wanted=kind == "form", owner="a form"
    )
    if kind != "choice":
        return InteractionSpec(kind=kind, prompt=prompt, questions=questions)
    return InteractionSpec(
        kind=kind,
        prompt=prompt,
        options=options,
        multiple=multiple,
        allow_custom=allow_custom,
        allow_skip=allow_skip,
        skip_label=skip_label if allow_skip else None,
    )


def _question(fields: _Fields) -> Question:
    kind = fields.one_of("kind", _QUESTION_KINDS)
    multiple = fields.flag("multiple")
    allow_custom = fields.flag("allow_custom")
    if kind == "text" and (multiple or allow_custom):
        raise fields.invalid("multiple", "and allow_custom are only for choice questions")
    return Question(
        id=fields.identifier(),
        prompt=fields.prompt(plain=kind == "text"),
        kind=kind,
        options=fields.options(wanted=kind == "choice"),
        multiple=multiple,
        allow_custom=allow_custom,
        required=fields.flag("required", default=True),
    )


def _option(fields: _Fields) -> Option:
    label = fields.text("label", LABEL_LIMIT)
    if label is None or not label.strip():
        raise fields.invalid("label", f"must be a string of 1 to {LABEL_LIMIT} characters")
    return Option(
        id=fields.identifier(),
        label=label,
        description=fields.text("description", DESCRIPTION_LIMIT),
        recommended=fields.flag("recommended"),
    )


class _Fields:
    """One object of a request; `where` leads its error texts, for example `questions[0].`."""

    def __init__(self, raw: object, where: str) -> None:
        if isinstance(raw, (Option, Question)):
            raw = dict(raw)
        if not isinstance(raw, Mapping):
            raise InvalidInteraction(f"{where.rstrip('.') or 'the request'} must be an object")
        self._raw = cast("Mapping[object, object]", raw)
        self._where = where

    def invalid(self, key: str, rule: str) -> InvalidInteraction:
        return InvalidInteraction(f"{self._where}{key} {rule}")

    def one_of(self, key: str, kinds: Mapping[str, _K]) -> _K:
        value = self._raw.get(key)
        if not isinstance(value, str) or value not in kinds:
            raise self.invalid(key, f"must be one of: {', '.join(kinds)}")
        return kinds[value]

    def text(self, key: str, limit: int, *, trim: bool = False) -> str | None:
        """A string as it was given, or trimmed, but storable. None when absent."""
        value = self._raw.get(key)
        if value is None:
            return None
        if isinstance(value, str):
            # `str.__str__` drops subclasses such as enum members.
            text = storable(str.__str__(value))
            text = text.strip() if trim else text
            if len(text) <= limit:
                return text
        raise self.invalid(key, f"must be a string of at most {limit} characters")

    def flag(self, key: str, *, default: bool = False) -> bool:
        value = self._raw.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.invalid(key, "must be true or false")
        return value

    def identifier(self) -> str:
        value = self.text("id", ID_LIMIT)
        if value is None or not value.strip():
            raise self.invalid("id", f"must be a string of 1 to {ID_LIMIT} characters")
        return value

    def prompt(self, *, plain: bool) -> str:
        value = self.text("prompt", PROMPT_LIMIT, trim=True)
        if not value:
            raise self.invalid("prompt", f"must be a string of 1 to {PROMPT_LIMIT} characters")
        if plain and has_numbered_alternatives(value):
            raise self.invalid(
                "prompt", "must not list numbered alternatives; ask a choice with options"
            )
        return value

    def options(self, *, wanted: bool) -> tuple[Option, ...]:
        return self.items("options", _option, limit=OPTIONS_LIMIT, wanted=wanted, owner="a choice")

    def items(
        self, key: str, parse: Callable[[_Fields], _T], *, limit: int, wanted: bool, owner: str
    ) -> tuple[_T, ...]:
        """The objects of a list, with unique ids; none at all unless `wanted`."""
        value = self._raw.get(key)
        if value is None:
            value = ()
        if not isinstance(value, (list, tuple)):
            raise self.invalid(key, "must be a list")
        entries = cast("Sequence[object]", value)
        if not wanted and entries:
            raise self.invalid(key, f"must be empty; only {owner} has them")
        if wanted and not 1 <= len(entries) <= limit:
            raise self.invalid(key, f"must have 1 to {limit} entries")
        parsed = tuple(
            parse(_Fields(entry, f"{self._where}{key}[{index}]."))
            for index, entry in enumerate(entries)
        )
        if len({entry.id for entry in parsed}) != len(parsed):
            raise self.invalid(key, "must have unique ids")
        return parsed
