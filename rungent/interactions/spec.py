"""The stored form of a question to the user, after all rules were checked.

These records are plain data: `rungent.interactions.requests` makes them from what a model or
a host asked for. Source: docs/interactions.md.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

__all__ = [
    "InteractionKind",
    "InteractionSpec",
    "Option",
    "Question",
    "QuestionKind",
    "RequestKind",
    "approval_spec",
    "to_public",
]

QuestionKind = Literal["text", "choice"]
RequestKind = Literal["text", "choice", "form"]
InteractionKind = Literal["text", "choice", "form", "approval", "data"]

APPROVE = "approve"
REJECT = "reject"


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Option(_Stored):
    """One answer of a choice. `recommended` is a hint for the frontend, not a default."""

    id: str
    label: str
    description: str | None = None
    recommended: bool = False


class Question(_Stored):
    """One question of a form: a text, or a choice with `options`."""

    id: str
    prompt: str
    kind: QuestionKind
    options: tuple[Option, ...] = ()
    multiple: bool = False
    allow_custom: bool = False
    required: bool = True


class InteractionSpec(_Stored):
    """What is asked: a text, a choice, a form of several questions, an approval, or typed data.

    `answer_schema` is the JSON Schema of the answer to a question for data, else None.
    """

    kind: InteractionKind
    prompt: str
    options: tuple[Option, ...] = ()
    questions: tuple[Question, ...] = ()
    multiple: bool = False
    allow_custom: bool = False
    allow_skip: bool = False
    skip_label: str | None = None
    answer_schema: dict[str, JsonValue] | None = None

    def stored(self) -> dict[str, JsonValue]:
        """The JSON form, without what only some kinds have."""
        absent = {"answer_schema"} if self.answer_schema is None else set[str]()
        return self.model_dump(mode="json", exclude=absent)


def approval_spec(
    prompt: str, *, approve_label: str = "Approve", reject_label: str = "Reject"
) -> InteractionSpec:
    """The question that guards a tool call; `prompt` is its finished confirmation text."""
    options = (Option(id=APPROVE, label=approve_label), Option(id=REJECT, label=reject_label))
    return InteractionSpec(kind="approval", prompt=prompt, options=options)


def to_public(spec: InteractionSpec) -> dict[str, JsonValue]:
    """The fields of `interaction.requested` that describe the question.

    All are always present, but `schema`, which only a question for data has.
    """
    shown = spec.stored()
    if "answer_schema" in shown:
        shown["schema"] = shown.pop("answer_schema")
    return shown
