"""Collect the private fields of a reply that the provider wants back unchanged.

Source: docs/model-adapter.md
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import JsonValue

from rungent.text import to_json_value

from .port import Echo, JsonObject

__all__ = ["ReasoningFields", "build_echo"]

_STREAMED_KEYS = frozenset({"text", "summary", "thinking"})


class ReasoningFields:
    """The reasoning fields of a message, put together from its deltas.

    Strings are appended. Lists are appended too, and an entry that continues the last one (same
    type and index) is joined with it, so that the list is the one a whole message would have had.
    """

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._entries: dict[str, list[JsonValue]] = {}
        self._values: dict[str, JsonValue] = {}

    def add(self, fields: JsonObject) -> None:
        """Take the reasoning fields of one delta."""
        for name, value in fields.items():
            if isinstance(value, str):
                self._texts.setdefault(name, []).append(value)
            elif isinstance(value, list):
                entries = self._entries.setdefault(name, [])
                for entry in value:
                    _append(entries, entry)
            else:
                self._values[name] = value

    def joined(self) -> dict[str, JsonValue]:
        """The fields as a whole message would hold them."""
        texts: dict[str, JsonValue] = {name: "".join(t) for name, t in self._texts.items()}
        entries: dict[str, JsonValue] = {name: e for name, e in self._entries.items() if e}
        return {**self._values, **entries, **{name: text for name, text in texts.items() if text}}


def _append(entries: list[JsonValue], entry: JsonValue) -> None:
    last = entries[-1] if entries else None
    if not (isinstance(last, dict) and isinstance(entry, dict) and _continues(last, entry)):
        entries.append(dict(entry) if isinstance(entry, dict) else entry)
        return
    for key, value in entry.items():
        before = last.get(key)
        if key in _STREAMED_KEYS and isinstance(before, str) and isinstance(value, str):
            last[key] = before + value
        elif value is not None:
            last[key] = value


def _continues(last: JsonObject, entry: JsonObject) -> bool:
    same_place = all(last.get(key) == entry.get(key) for key in ("type", "index"))
    return same_place and any(isinstance(entry.get(key), str) for key in _STREAMED_KEYS)


def build_echo(reasoning: JsonObject, calls: Sequence[JsonObject]) -> Echo | None:
    """The echo of a reply, or None when there is nothing to send back."""
    has_calls = any(calls)
    if not reasoning and not has_calls:
        return None
    return Echo(_sendable(reasoning), tuple(map(_sendable, calls)) if has_calls else ())


def _sendable(fields: JsonObject) -> dict[str, JsonValue]:
    """`fields` without what no request body can hold: half characters, non-finite numbers."""
    try:
        # Writing and reading it once joins the halves of characters that came apart.
        joined = json.loads(json.dumps(dict(fields)))
        return {str(to_json_value(name)): to_json_value(value) for name, value in joined.items()}
    except (RecursionError, ValueError):
        return {}
