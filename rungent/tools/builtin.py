"""The two tools that every agent has, and the form in which tools are shown to a model.

`report_progress` and `request_input` are handled by the runtime itself and have no function.
Source: docs/tools.md.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from rungent.interactions.requests import (
    DESCRIPTION_LIMIT,
    ID_LIMIT,
    LABEL_LIMIT,
    OPTIONS_LIMIT,
    PROMPT_LIMIT,
    QUESTIONS_LIMIT,
    SKIP_LABEL_LIMIT,
)
from rungent.tools.decorator import AnyTool
from rungent.tools.messages import MESSAGE_LIMIT, public_text

__all__ = [
    "BUILTIN_TITLES",
    "REPORT_PROGRESS",
    "REQUEST_INPUT",
    "builtin_specs",
    "function_spec",
    "parse_progress",
]

REPORT_PROGRESS = "report_progress"
REQUEST_INPUT = "request_input"
BUILTIN_TITLES: Mapping[str, str] = {
    REPORT_PROGRESS: "Report progress",
    REQUEST_INPUT: "Request input",
}

_PROGRESS_DESCRIPTION = (
    "Tell the user in one short sentence what you are doing. Call it beside the calls that do "
    "the work, never alone, and only with facts that the user may see. Leave it out for simple "
    "answers. It has no other effect."
)

_INPUT_DESCRIPTION = (
    "Ask the user for information that you need to go on, and wait for the answer.\n"
    "- Several questions that do not depend on each other and are known now: one form.\n"
    "- A question that depends on the answer to another: ask them one after the other.\n"
    "- A short list of possible answers: a choice with options. Never write a numbered list "
    "of alternatives into the prompt of a text question.\n"
    "- Allow skipping only where it is safe to go on without an answer.\n"
    "- Never ask for approval of an action: call the action, and the user is asked."
)

_FLAG = {"type": "boolean", "default": False}


def _text(limit: int, description: str) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": limit, "description": description}


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


_OPTIONS: dict[str, Any] = {
    "type": "array",
    "maxItems": OPTIONS_LIMIT,
    "description": f"For a choice: 1 to {OPTIONS_LIMIT} possible answers.",
    "items": _object(
        {
            "id": _text(ID_LIMIT, "Unique among the options; comes back as the answer."),
            "label": _text(LABEL_LIMIT, "What the user reads."),
            "description": {"type": "string", "maxLength": DESCRIPTION_LIMIT},
            "recommended": _FLAG,
        },
        ["id", "label"],
    ),
}
_MULTIPLE = {**_FLAG, "description": "For a choice: several answers are possible."}
_CUSTOM = {**_FLAG, "description": "For a choice: the user may write an own answer."}

_QUESTION = _object(
    {
        "id": _text(ID_LIMIT, "Unique among the questions; the key of the answer."),
        "prompt": _text(PROMPT_LIMIT, "The question."),
        "kind": {"type": "string", "enum": ["text", "choice"]},
        "options": _OPTIONS,
        "multiple": _MULTIPLE,
        "allow_custom": _CUSTOM,
        "required": {"type": "boolean", "default": True},
    },
    ["id", "prompt", "kind"],
)

_INPUT_SCHEMA = _object(
    {
        "kind": {"type": "string", "enum": ["text", "choice", "form"]},
        "prompt": _text(PROMPT_LIMIT, "The question, or what the form is about."),
        "options": _OPTIONS,
        "multiple": _MULTIPLE,
        "allow_custom": _CUSTOM,
        "allow_skip": {**_FLAG, "description": "For a choice: it may be left unanswered."},
        "skip_label": {
            "type": "string",
            "maxLength": SKIP_LABEL_LIMIT,
            "description": "What the button for skipping says.",
        },
        "questions": {
            "type": "array",
            "maxItems": QUESTIONS_LIMIT,
            "description": f"For a form: 1 to {QUESTIONS_LIMIT} questions.",
            "items": _QUESTION,
        },
    },
    ["kind", "prompt"],
)

_PROGRESS_SCHEMA = _object(
    {"message": _text(MESSAGE_LIMIT, "One short sentence for the user.")}, ["message"]
)


def builtin_specs() -> list[dict[str, Any]]:
    """The function specs of `report_progress` and `request_input`, in this order."""
    return [
        _spec(REPORT_PROGRESS, _PROGRESS_DESCRIPTION, _PROGRESS_SCHEMA),
        _spec(REQUEST_INPUT, _INPUT_DESCRIPTION, _INPUT_SCHEMA),
    ]


def function_spec(tool: AnyTool) -> dict[str, Any]:
    """How a model provider is told about `tool`. The result belongs to the caller."""
    return _spec(tool.name, tool.description, tool.schema)


def _spec(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "description": description, "parameters": copy.deepcopy(parameters)}
    return {"type": "function", "function": function}


def parse_progress(arguments: Mapping[str, object]) -> str:
    """The message of a `report_progress` call, trimmed. Raises ValueError if it is not valid."""
    return public_text(arguments.get("message"))
