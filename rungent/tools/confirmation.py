"""Makes the text that asks a person to approve a call, so that arguments cannot disguise it.

What the model puts into an argument appears on one line and in reading order: control
characters, line breaks and characters that turn the writing direction become spaces.
Source: docs/tools.md.
"""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Mapping
from typing import Any, cast

from pydantic import JsonValue

from rungent.text import storable

__all__ = ["check_template", "confirmation_text", "render_confirmation"]

TEXT_LIMIT = 4000

_DISGUISING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


def check_template(template: str, parameters: Collection[str]) -> None:
    """Raises TypeError unless every field of a format string is plainly a parameter name."""
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as exc:
        raise TypeError(f"confirmation is not a format string: {exc}") from exc
    for _, name, spec, _ in parts:
        if name is None:
            continue
        if name not in parameters:
            raise TypeError(f"confirmation field {{{name}}} is not the name of a parameter")
        if spec and "{" in spec:
            raise TypeError(f"confirmation field {{{name}}} has a field inside its format")


def render_confirmation(template: str, normalised: Mapping[str, JsonValue]) -> str:
    """`template` filled with arguments by name.

    Raises ValueError when a format does not fit its value, or the trimmed text is empty or
    longer than 4000 characters.
    """
    cleaned = {name: _one_line(value) for name, value in normalised.items()}
    try:
        text = _OneLineFormatter().vformat(template, (), cleaned)
    except (LookupError, TypeError, ValueError, OverflowError, AttributeError) as exc:
        raise ValueError("the confirmation cannot be rendered") from exc
    return confirmation_text(text)


def confirmation_text(text: object) -> str:
    """A finished confirmation, trimmed and storable.

    Raises ValueError unless it is a text of 1–4000 characters.
    """
    if isinstance(text, str):
        trimmed = storable(str.__str__(text)).strip()
        if 1 <= len(trimmed) <= TEXT_LIMIT:
            return trimmed
    raise ValueError(f"a confirmation must be a text of 1 to {TEXT_LIMIT} characters")


class _OneLineFormatter(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        # Once more after formatting: the format `c` makes any character of a number.
        return _DISGUISING.sub(" ", format(value, format_spec))


def _one_line(value: JsonValue) -> JsonValue:
    """`value` with harmless texts; nested ones too, because Python shows them quoted."""
    if isinstance(value, str):
        return _DISGUISING.sub(" ", value)
    if isinstance(value, list):
        return [_one_line(item) for item in value]
    if isinstance(value, dict):
        return {cast("str", _one_line(key)): _one_line(item) for key, item in value.items()}
    return value
