"""A question as a form of the client, and the client's form as an answer to it. No I/O.

Clients show flat forms only: a choice becomes an enumeration, an own answer a field beside it.
Source: docs/mcp.md#questions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from rungent.asgi.mcp.messages import Code, JsonObject, Refusal
from rungent.interactions import InteractionSpec, Option
from rungent.interactions.answers import CUSTOM_LIMIT, TEXT_LIMIT

__all__ = ["Declined", "answer_in", "can_elicit", "elicitation"]


class Declined(Exception):
    """The user sent the form away, and the question cannot be skipped."""


def can_elicit(capabilities: Mapping[str, Any]) -> bool:
    """Whether a client that declared these can show a form. An empty declaration means forms."""
    declared: object = capabilities.get("elicitation")
    if not isinstance(declared, dict):
        return False
    modes = cast("JsonObject", declared)
    return "form" in modes or "url" not in modes


def elicitation(spec: InteractionSpec, remark: str | None = None) -> JsonObject:
    """The request that makes a client ask; `remark` says why an earlier answer did not count."""
    fields = _fields(spec)
    properties: JsonObject = {}
    for field in fields:
        properties |= field.properties()
    return {
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": spec.prompt if remark is None else f"{spec.prompt}\n\n{remark}",
            "requestedSchema": {
                "type": "object",
                "properties": properties,
                "required": [field.name for field in fields if field.required],
            },
        },
    }


def answer_in(spec: InteractionSpec, result: object) -> object:
    """The value that `validate_answer` checks, from what the client sent for its form.

    Raises Declined, and Refusal for a result that is none.
    """
    given = cast("JsonObject", result) if isinstance(result, dict) else {}
    action: object = given.get("action")
    content: object = given.get("content")
    if action not in ("accept", "decline", "cancel"):
        raise Refusal(Code.INVALID_PARAMS, "An input response has an action.")
    if action == "decline" and spec.kind == "choice" and spec.allow_skip:
        return {"skipped": True}
    if action != "accept":
        raise Declined()
    if not isinstance(content, dict):
        raise Refusal(Code.INVALID_PARAMS, "An accepted input response has a content.")
    filled = cast("JsonObject", content)
    fields = _fields(spec)
    if spec.kind == "form":
        return {"answers": {field.id: value for field in fields if (value := field.value(filled))}}
    if spec.kind == "choice":
        return fields[0].value(filled) or {}
    # A text, or the option of an approval: the bare value.
    return filled.get(fields[0].name)


@dataclass(frozen=True, slots=True)
class _Field:
    """One question: its properties in the form. `name` is its property, `custom` the own answer."""

    id: str
    name: str
    title: str
    required: bool = True
    options: Sequence[Option] = ()
    multiple: bool = False
    custom: str | None = None
    skip: str | None = None
    skip_title: str = "Skip"

    def properties(self) -> JsonObject:
        if not self.options:
            text = {"type": "string", "title": self.title, "maxLength": TEXT_LIMIT}
            return {self.name: text | ({"minLength": 1} if self.required else {})}
        choices = [{"const": option.id, "title": _label(option)} for option in self.options]
        shown: JsonObject = {
            self.name: {"type": "array", "title": self.title, "items": {"anyOf": choices}}
            if self.multiple
            else {"type": "string", "title": self.title, "oneOf": choices}
        }
        if self.custom is not None:
            shown[self.custom] = {
                "type": "string",
                "title": "Own answer",
                "maxLength": CUSTOM_LIMIT,
            }
        if self.skip is not None:
            shown[self.skip] = {"type": "boolean", "title": self.skip_title, "default": False}
        return shown

    def value(self, content: Mapping[str, Any]) -> object:
        """What was filled in, in the form of an answer; something empty when nothing was."""
        given: object = content.get(self.name)
        if not self.options:
            return given
        # One selected id comes bare, several as a list, and none as nothing.
        selected: object = [given] if isinstance(given, str) and given else given
        answer = {
            "selected": selected or None,
            "custom": content.get(self.custom) if self.custom else None,
            "skipped": content.get(self.skip) if self.skip else None,
        }
        return {key: value for key, value in answer.items() if value not in (None, "", False)}


def _fields(spec: InteractionSpec) -> list[_Field]:
    """The questions of a spec with the names of their properties: the same for the same spec."""
    if spec.kind == "text":
        return [_Field("", "answer", "Answer")]
    if spec.kind == "approval":
        return [_Field("", "decision", "Decision", options=spec.options)]
    if spec.kind == "choice":
        return [
            _Field(
                "",
                "selected",
                "Answer",
                required=not (spec.allow_custom or spec.allow_skip),
                options=spec.options,
                multiple=spec.multiple,
                custom="custom" if spec.allow_custom else None,
                skip="skipped" if spec.allow_skip else None,
                skip_title=spec.skip_label or "Skip",
            )
        ]
    taken = {question.id for question in spec.questions}
    return [
        _Field(
            question.id,
            question.id,
            question.prompt,
            required=question.required and not question.allow_custom,
            options=question.options,
            multiple=question.multiple,
            custom=_free(f"{question.id}_custom", taken) if question.allow_custom else None,
        )
        for question in spec.questions
    ]


def _free(name: str, taken: Collection[str]) -> str:
    # Two questions with equal custom names would have equal ids, so only ids can be in the way.
    while name in taken:
        name += "_"
    return name


def _label(option: Option) -> str:
    label = f"{option.label} (recommended)" if option.recommended else option.label
    return f"{label} – {option.description}" if option.description else label
