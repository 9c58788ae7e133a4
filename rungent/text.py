"""Text and JSON that every store and every wire can hold.

PostgreSQL refuses U+0000, UTF-8 refuses lone surrogates, and JSON has no NaN. Both characters
become U+FFFD, non-finite numbers become null, and what has no JSON form becomes its string
form, before anything is used or stored. Source: docs/events.md#text.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Collection, Mapping
from enum import Enum
from json.encoder import encode_basestring
from typing import Any, cast

from pydantic import BaseModel, JsonValue
from pydantic_core import PydanticSerializationError, to_jsonable_python

__all__ = ["canonical_json", "dump_json", "dump_text", "storable", "to_json_value"]

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_MAX_DEPTH = 100
_SCALARS = (bool, int, float, str)


def storable(text: str) -> str:
    """`text` with U+0000 and lone surrogates replaced by U+FFFD."""
    if text.isascii() and "\x00" not in text:
        return text
    return _UNSTORABLE.sub("�", text)


def dump_json(value: JsonValue | Mapping[str, Any]) -> str:
    """Compact JSON text with non-ASCII characters unescaped.

    Raises ValueError for NaN and infinities.
    """
    return _compact(value)


def dump_text(value: str) -> str:
    """As `dump_json`, of a text alone and faster."""
    return encode_basestring(value)


def canonical_json(value: JsonValue | Mapping[str, Any]) -> str:
    """As `dump_json`, with the keys of every object sorted: equal values give equal text."""
    return _sorted(value)


# Made once: `json.dumps` makes an encoder for each call.
_compact = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_sorted = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True
).encode


def to_json_value(value: object, *, depth: int = 0) -> JsonValue:
    """The JSON form of any Python value, storable and finite.

    Mappings, sequences, sets, dataclasses, enums and pydantic models are converted; whatever
    has no JSON form, or lies deeper than 100 levels, becomes its string form.
    Raises what the value's own `__str__` raises.
    """
    kind = type(value)
    if kind is str:
        # The usual kinds first: the checks below are for every other, and cost many times more.
        return storable(cast("str", value))
    if value is None or kind is bool or kind is int:
        return cast("int | None", value)
    if isinstance(value, Enum):
        return to_json_value(value.value, depth=depth + 1)
    if isinstance(value, str):
        return storable(str(value))
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if depth >= _MAX_DEPTH:
        return storable(str(value))
    return _container(value, depth + 1)


def _container(value: object, depth: int) -> JsonValue:
    if type(value) is dict:
        return _object(cast("dict[object, object]", value), depth)
    if isinstance(value, BaseModel):
        return to_json_value(value.model_dump(mode="python", by_alias=True), depth=depth)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return to_json_value(fields, depth=depth)
    if isinstance(value, Mapping):
        return _object(cast("Mapping[object, object]", value), depth)
    if isinstance(value, (list, tuple, set, frozenset)):
        items = cast("Collection[object]", value)
        return [to_json_value(item, depth=depth) for item in items]
    return _foreign(value, depth)


def _object(mapping: Mapping[object, object], depth: int) -> dict[str, JsonValue]:
    return {_key(key): to_json_value(item, depth=depth) for key, item in mapping.items()}


def _key(key: object) -> str:
    if type(key) is str:
        return storable(key)
    if key is None or isinstance(key, bool):
        return json.dumps(key)
    return storable(str(key.value if isinstance(key, Enum) else key))


def _foreign(value: object, depth: int) -> JsonValue:
    """Dates, UUIDs, decimals and the like, in pydantic's own JSON form."""
    if hasattr(value, "__next__"):
        # A generator is somebody's half-done work: show what it is, never run it.
        return storable(str(value))
    try:
        simple: object = to_jsonable_python(value)
    except (PydanticSerializationError, ValueError, TypeError, RecursionError):
        return storable(str(value))
    if simple is None or isinstance(simple, _SCALARS):
        return to_json_value(simple, depth=depth)
    return storable(str(value))
