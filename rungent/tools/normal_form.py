"""The one JSON form of argument values: storable, finite, in fixed order, and comparable.

Source: docs/tools.md.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel, JsonValue, RootModel

from rungent.text import canonical_json, to_json_value

__all__ = [
    "NoNormalForm",
    "digest",
    "fingerprint",
    "normal_form",
    "plain_arguments",
    "same_value",
]

logger = logging.getLogger(__name__)

MAX_DEPTH = 64


class NoNormalForm(ValueError):
    """A value that cannot be written as JSON. The text names no value."""


def fingerprint(arguments: Mapping[str, object]) -> str:
    """64 hex digits that are equal for equal arguments, normalised or raw."""
    try:
        text = canonical_json(to_json_value(arguments))
    except (ValueError, RecursionError):
        # Numbers of thousands of digits and endless nesting have no canonical text.
        text = "unrepresentable"
    return digest(text)


def digest(canonical: str) -> str:
    """The fingerprint of arguments whose canonical text this is."""
    return hashlib.sha256(canonical.encode()).hexdigest()


def plain_arguments(arguments: Mapping[str, object]) -> JsonValue:
    """`arguments` as storable JSON. Raises NoNormalForm where they are nested too deeply."""
    level: list[object] = [arguments]
    for _ in range(MAX_DEPTH):
        level = [child for value in level for child in _children(value)]
        if not level:
            break
    else:
        raise NoNormalForm(f"Nested deeper than {MAX_DEPTH} levels.")
    try:
        return to_json_value(arguments)
    except Exception as exc:  # an object of the application without a string form
        raise NoNormalForm("The value has no JSON form.") from exc


def _children(value: object) -> list[object]:
    if isinstance(value, Mapping):
        return list(cast("Mapping[object, object]", value).values())
    if isinstance(value, (list, tuple)):
        return list(cast("Sequence[object]", value))
    return []


def normal_form(instance: BaseModel) -> tuple[dict[str, JsonValue], str]:
    """The fields of `instance` by alias, with sorted keys, and their text. Raises NoNormalForm."""
    try:
        dumped = instance.model_dump(mode="json", by_alias=True, round_trip=True, warnings="error")
        made = _sorted(to_json_value(_settled(instance, dumped)))
        text = canonical_json(made)  # a number of thousands of digits has none
    except Exception as exc:  # a serialiser of the application broke
        raise NoNormalForm("The value has no JSON form.") from exc
    assert isinstance(made, dict)
    return made, text


def _settled(value: object, dumped: object) -> Any:
    """`dumped` with the members of sets in a fixed order: hashing shuffles texts per process."""
    if isinstance(value, RootModel):
        value = cast("RootModel[object]", value).root
    if isinstance(dumped, list):
        items = cast("list[object]", dumped)
        if not isinstance(value, (set, frozenset, list, tuple)):
            return items
        parts = cast("Iterable[object]", value)
        members = [_settled(*pair) for pair in zip(parts, items, strict=True)]
        return (
            sorted(members, key=canonical_json) if isinstance(value, (set, frozenset)) else members
        )
    if isinstance(dumped, dict):
        entries = cast("dict[str, object]", dumped)
        if isinstance(value, dict):
            # A dictionary is dumped in its own order, whatever becomes of its keys.
            inner = dict(zip(entries, cast("dict[Any, object]", value).values(), strict=False))
        else:
            inner = _fields(value)
        return {key: _settled(inner.get(key), item) for key, item in entries.items()}
    return dumped


def _fields(value: object) -> dict[str, object]:
    """The fields of a model or dataclass, by the key that each has in its JSON form."""
    if isinstance(value, BaseModel):
        return {
            info.serialization_alias or name: getattr(value, name)
            for name, info in type(value).model_fields.items()
        }
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {}


def _sorted(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    return value


def same_value(left: object, right: object) -> bool:
    """True when two Python values are equal, a list counting as equal to a like tuple."""
    try:
        return _same(left, right)
    except Exception:  # an application's `__eq__`
        logger.exception("argument values could not be compared")
        return False


def _same(left: Any, right: Any) -> bool:
    if left == right:
        return True
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return _all_same(cast("Sequence[Any]", left), cast("Sequence[Any]", right))
    if isinstance(left, dict) and isinstance(right, dict):
        return _same_entries(cast("Mapping[Any, Any]", left), cast("Mapping[Any, Any]", right))
    return _same_fields(cast("object", left), cast("object", right))


def _same_entries(left: Mapping[Any, Any], right: Mapping[Any, Any]) -> bool:
    return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)


def _same_fields(left: object, right: object) -> bool:
    inner = _fields(left)
    return bool(inner) and type(left) is type(right) and _same_entries(inner, _fields(right))


def _all_same(left: Sequence[Any], right: Sequence[Any]) -> bool:
    return len(left) == len(right) and all(map(_same, left, right))
