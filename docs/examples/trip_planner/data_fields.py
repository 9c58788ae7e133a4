"""A question for data in the terminal: a flat JSON Schema field by field, lines as values. Pure.

What is not flat, an object inside of another or a list, is typed as JSON. Whether a value is
allowed is the runtime's decision; only what cannot be read at all is judged here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from pydantic import JsonValue

from rungent.demo.progress import visible
from rungent.demo.questions import Choice, Option, Text, Unreadable

__all__ = ["DataField", "fields_of", "read_field", "read_json"]

_SCALARS = (str, int, float, bool)
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_HINTS = {"date": "YYYY-MM-DD"}


@dataclass(frozen=True, slots=True)
class DataField:
    """One field: how it is asked, and what its answer becomes."""

    name: str
    type: str
    question: Text | Choice
    # What the options of a choice stand for, in their order.
    values: tuple[JsonValue, ...] = ()


def fields_of(schema: Mapping[str, Any]) -> tuple[DataField, ...] | None:
    """The fields of an object of texts, numbers, booleans and choices; None for other schemas."""
    properties: object = schema.get("properties")
    if schema.get("type") != "object" or not _is_object(properties):
        return None
    if schema.get("additionalProperties", False) is not False:
        return None
    required: Sequence[str] = schema.get("required", ())
    fields = [
        _field(schema, name, rules, name in required)
        for name, rules in properties.items()
        if _is_object(rules)
    ]
    known = tuple(field for field in fields if field is not None)
    return known if len(known) == len(properties) else None


def read_field(field: DataField, answer: JsonValue) -> dict[str, JsonValue]:
    """The asker's answer as a part of the object; empty where the field is left out.

    Raises Unreadable for what is no number.
    """
    if isinstance(field.question, Choice):
        selected = answer.get("selected") if isinstance(answer, dict) else None
        if not isinstance(selected, list) or not selected:
            return {}
        return {field.name: field.values[int(str(selected[0]))]}
    line = str(answer or "")
    if field.type == "string":
        return {field.name: line} if line or field.question.required else {}
    return {field.name: _number(field.type, line.strip())} if line.strip() else {}


def read_json(answer: JsonValue) -> JsonValue:
    """A line as JSON. Raises Unreadable."""
    try:
        value: JsonValue = json.loads(str(answer), parse_constant=_no_number)
    except (ValueError, RecursionError) as reason:
        raise Unreadable("That is no JSON.") from reason
    return value


def _no_number(word: str) -> None:
    raise ValueError(word)


def _number(kind: str, word: str) -> JsonValue:
    if kind == "integer":
        # Beyond this Python refuses to read it, and nobody means it.
        if re.fullmatch(r"[+-]?\d{1,1000}", word, re.ASCII) is None:
            raise Unreadable("Please type a whole number.")
        return int(word)
    number = float(word) if _NUMBER.fullmatch(word) else math.inf
    if not math.isfinite(number):
        raise Unreadable("Please type a number.")
    return number


def _field(
    schema: Mapping[str, Any], name: str, rules: Mapping[str, Any], required: bool
) -> DataField | None:
    inner = _without_null(schema, rules)
    if inner is None or "pattern" in inner:
        return None
    told = {**inner, **rules}
    default: object = rules.get("default")
    title = visible(str(told.get("title") or name.replace("_", " ").capitalize()))
    values: object = [inner["const"]] if "const" in inner else inner.get("enum")
    kind = str(inner.get("type"))
    if _are_scalars(values) or kind == "boolean":
        offered = tuple(values) if _are_scalars(values) else (True, False)
        options = tuple(Option(str(i), _word(value)) for i, value in enumerate(offered))
        skip = "Leave it open" if default is None else f"Keep {_word(default)}"
        prompt = _prompt(title, told, None)
        choice = Choice(prompt, options, skip=None if required else skip, required=required)
        return DataField(name, kind, choice, offered)
    if values is not None or kind not in ("string", "number", "integer"):
        return None
    return DataField(name, kind, Text(_prompt(title, told, default), required))


def _without_null(schema: Mapping[str, Any], rules: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The rules of a property beside null, a reference followed once; None for alternatives."""
    variants = rules.get("anyOf", [rules])
    others = [one for one in variants if not (_is_object(one) and one.get("type") == "null")]
    if len(others) != 1 or not _is_object(others[0]):
        return None
    only = others[0]
    if "$ref" not in only:
        return only
    found: object = schema.get("$defs", {}).get(str(only["$ref"]).removeprefix("#/$defs/"))
    return found if _is_object(found) else None


def _prompt(title: str, told: Mapping[str, Any], default: object) -> str:
    """The title with everything that helps to answer."""
    limits = [
        f"{word} {told[key]:,}{unit}"
        for key, word, unit in (
            ("minimum", "at least", ""),
            ("maximum", "at most", ""),
            ("minLength", "at least", " characters"),
            ("maxLength", "at most", " characters"),
        )
        if isinstance(told.get(key), int | float)
    ]
    form = str(told.get("format", ""))
    hints = [str(told.get("description", "")), *limits, _HINTS.get(form, form)]
    if default not in (None, ""):
        hints.append(f"blank: {default}")
    text = "; ".join(visible(hint) for hint in hints if hint)
    return f"{title} ({text})" if text else title


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "Yes" if value else "No"
    return visible(str(value))


def _are_scalars(values: object) -> TypeGuard[list[JsonValue]]:
    return isinstance(values, list) and all(isinstance(one, _SCALARS) for one in values)  # pyright: ignore[reportUnknownVariableType]


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)
