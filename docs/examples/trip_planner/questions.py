"""A run's question as a terminal asks it, and typed lines as answers. Pure.

Only the form of a line is judged here. Whether an answer is allowed is the runtime's decision.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from rungent.demo.progress import visible

__all__ = [
    "Choice",
    "Data",
    "Decision",
    "Form",
    "Option",
    "Question",
    "Text",
    "Unreadable",
    "choice_answer",
    "question_of",
    "read_choice",
    "read_decision",
]

_YES, _NO = ("y", "yes", "a", "approve"), ("n", "no", "r", "reject")


class Unreadable(Exception):
    """A line that is no answer. The message says what is expected."""


@dataclass(frozen=True, slots=True)
class Option:
    """One alternative."""

    id: str
    label: str

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Option:
        """An option with all that helps to choose in its label."""
        label = visible(data["label"])
        if data["description"]:
            label = f"{label} - {visible(data['description'])}"
        return cls(data["id"], f"{label} (recommended)" if data["recommended"] else label)


@dataclass(frozen=True, slots=True)
class Text:
    """Asks for words."""

    prompt: str
    required: bool = True


@dataclass(frozen=True, slots=True)
class Choice:
    """Asks to choose; `skip` says what leaving it out means, None when that is impossible."""

    prompt: str
    options: tuple[Option, ...]
    multiple: bool = False
    allow_custom: bool = False
    skip: str | None = None
    required: bool = True


@dataclass(frozen=True, slots=True)
class Decision:
    """Asks whether a call may be made; the prompt shows its impact."""

    prompt: str
    title: str


@dataclass(frozen=True, slots=True)
class Form:
    """Asks several questions at once, each with its id."""

    prompt: str
    questions: tuple[tuple[str, Text | Choice], ...]


@dataclass(frozen=True, slots=True)
class Data:
    """Asks for a value that fits a JSON Schema."""

    prompt: str
    schema: Mapping[str, Any]


Question = Text | Choice | Decision | Form | Data


def question_of(data: Mapping[str, Any]) -> Question:
    """The question in the payload of an `interaction.requested` event."""
    prompt = visible(data["prompt"])
    match data["kind"]:
        case "approval":
            return Decision(prompt, visible(data["tool"]["title"]))
        case "form":
            return Form(prompt, tuple((each["id"], _part(each)) for each in data["questions"]))
        case "choice":
            skip = visible(data["skip_label"] or "Skip") if data["allow_skip"] else None
            return _choice(data, prompt, skip=skip)
        case "data":
            return Data(prompt, data["schema"])
        case _:
            return Text(prompt)


def _part(data: Mapping[str, Any]) -> Text | Choice:
    prompt, required = visible(data["prompt"]), bool(data["required"])
    if data["kind"] == "text":
        return Text(prompt, required)
    return _choice(data, prompt, required=required)


def _choice(
    data: Mapping[str, Any], prompt: str, *, skip: str | None = None, required: bool = True
) -> Choice:
    options = tuple(Option.of(option) for option in data["options"])
    return Choice(prompt, options, data["multiple"], data["allow_custom"], skip, required)


def choice_answer(
    selected: Sequence[str] = (), custom: str = "", *, skipped: bool = False
) -> dict[str, JsonValue]:
    """A choice's answer in the form that the runtime expects."""
    answer: dict[str, JsonValue] = {"selected": list(selected)}
    if custom:
        answer["custom"] = custom
    if skipped:
        answer["skipped"] = True
    return answer


def read_choice(choice: Choice, line: str) -> JsonValue:
    """A line as an answer: numbers of options, own words, or "skip"; None for a blank line.

    Raises Unreadable for a number without option, and for words where none are allowed.
    """
    line = line.strip()
    if not line:
        return None
    if choice.skip is not None and line.casefold() == "skip":
        return choice_answer(skipped=True)
    parts = [part.strip() for part in re.split(r"[,;]", line) if part.strip()]
    numbers = [int(part) for part in parts if part.isascii() and part.isdigit()]
    words = [part for part in parts if not (part.isascii() and part.isdigit())]
    if any(not 1 <= number <= len(choice.options) for number in numbers) or not parts:
        raise Unreadable(f"The numbers go from 1 to {len(choice.options)}.")
    if words and not choice.allow_custom:
        raise Unreadable("Only the numbers of the options can be chosen.")
    # Own words may hold commas themselves.
    custom = ", ".join(words) if numbers else line if words else ""
    return choice_answer([choice.options[number - 1].id for number in numbers], custom)


def read_decision(line: str) -> str:
    """A line as a decision. Raises Unreadable for anything but a clear yes or no."""
    word = line.strip().casefold()
    if word in _YES:
        return "approve"
    if word in _NO:
        return "reject"
    raise Unreadable("Please answer yes or no.")
