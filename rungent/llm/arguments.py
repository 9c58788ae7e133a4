"""Read the arguments of a tool call from the text that a model wrote.

Some providers wrap, repeat or prefix the object in ways that have one reading only; these
are understood. Whatever could be read in two ways is refused: a new attempt is cheaper than a
call with guessed arguments. Source: docs/model-adapter.md
"""

from __future__ import annotations

import json
import math
from typing import NoReturn

from pydantic import JsonValue

from rungent.text import canonical_json, to_json_value

from .visible import join_surrogates

__all__ = ["is_complete", "parse_arguments"]

_BLANKS = " \t\n\r"


def parse_arguments(text: str) -> dict[str, JsonValue]:
    """The arguments in `text`, storable. Raises ValueError if they are not one JSON object."""
    text = join_surrogates(text)
    if not text.strip() or text.strip() == "null":
        return {}
    try:
        value = _only_document(text)
        if isinstance(value, str):
            value = _only_document(value)
        stored = to_json_value(value)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if isinstance(stored, dict):
        return stored
    raise ValueError("not a JSON object")


def is_complete(text: str) -> bool:
    """Whether `text` already is a whole object, so that more text would belong to another call."""
    # Most fragments end inside the object: do not parse what cannot be an end.
    if not text.rstrip(_BLANKS).endswith(("}", '"')):
        return False
    try:
        parse_arguments(text)
    except ValueError:
        return False
    return True


def _only_document(text: str) -> JsonValue:
    documents = _documents(text)
    while len(documents) > 1 and documents[0] == {} and isinstance(documents[1], dict):
        # A placeholder that was sent before the real object.
        del documents[0]
    # Compared as text: in Python 1, 1.0 and True are equal.
    if len(documents) != 1 and len(set(map(canonical_json, documents))) != 1:
        raise ValueError("not one JSON document")
    return documents[0]


def _documents(text: str) -> list[JsonValue]:
    documents: list[JsonValue] = []
    position = _skip_blanks(text, 0)
    while position < len(text):
        document, end = _DECODER.raw_decode(text, position)
        documents.append(document)
        position = _skip_blanks(text, end)
    return documents


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in _BLANKS:
        position += 1
    return position


def _finite(literal: str) -> float:
    number = float(literal)
    if not math.isfinite(number):
        raise ValueError("not a finite number")
    return number


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


# Not strict: raw control characters inside strings are common and unambiguous.
_DECODER = json.JSONDecoder(strict=False, parse_float=_finite, parse_constant=_refuse)
