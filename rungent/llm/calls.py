"""Collect the fragments of tool calls into whole calls.

Providers disagree about which fragment belongs to which call: some number the calls, some
only name them, some number all of them 0. The index is a key here and never a position.
Source: docs/model-adapter.md
"""

from __future__ import annotations

import json

from pydantic import JsonValue

from rungent.text import storable

from .arguments import is_complete, parse_arguments
from .port import JsonObject, ModelFailure, ToolCall
from .visible import join_surrogates
from .wire import usable_int

__all__ = ["CallCollector"]

_KNOWN = frozenset({"index", "id", "type", "function"})


class _Slot:
    """One call under construction."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.unknown: dict[str, JsonValue] = {}
        self._arguments: list[str] = []

    def add(self, identity: str, function: JsonObject) -> None:
        self.id = self.id or identity
        name = function.get("name")
        if isinstance(name, str) and name.strip() != self.name.strip():
            self.name += name
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            self._arguments.append(arguments)
        elif arguments is not None:
            # As text an object meets the same rules as one that came in pieces.
            self._arguments = [_json_text(arguments)]

    def is_complete(self) -> bool:
        return bool(self.name) and is_complete("".join(self._arguments))

    def finish(self) -> ToolCall:
        name = storable(join_surrogates(self.name)).strip()
        if not name:
            raise ModelFailure("invalid_tool_arguments")
        try:
            arguments = parse_arguments("".join(self._arguments))
        except ValueError:
            arguments = None
        if arguments is None:
            raise ModelFailure("invalid_tool_arguments", tool_name=name)
        return ToolCall(name, arguments, storable(join_surrogates(self.id)) or None)


class CallCollector:
    """The calls of one attempt, in order of first appearance."""

    def __init__(self) -> None:
        self._slots: list[_Slot] = []
        self._by_index: dict[int, _Slot] = {}
        self._by_index_and_id: dict[tuple[int, str], _Slot] = {}
        self._by_id: dict[str, _Slot] = {}
        self._legacy: _Slot | None = None

    def __bool__(self) -> bool:
        return bool(self._slots) or self._legacy is not None

    def add(self, fragment: JsonObject) -> None:
        """Take a fragment of the `tool_calls` list."""
        given = fragment.get("id")
        identity = given if isinstance(given, str) else ""
        inner = fragment.get("function")
        function: JsonObject = inner if isinstance(inner, dict) else {}
        unknown = {k: v for k, v in fragment.items() if k not in _KNOWN and v is not None}
        if not (identity or unknown or function.get("name") or function.get("arguments")):
            # All fields null or empty: a placeholder, no call.
            return
        slot = self._slot(usable_int(fragment.get("index")), identity, bool(function.get("name")))
        slot.add(identity, function)
        slot.unknown.update(unknown)

    def add_legacy(self, function: JsonObject) -> None:
        """Take a fragment of the older `function_call` field, which can hold one call only."""
        if self._legacy is None:
            if not (function.get("name") or function.get("arguments")):
                return
            self._legacy = _Slot()
        self._legacy.add("", function)

    def finish(self) -> tuple[ToolCall, ...]:
        """The calls. Raises ModelFailure("invalid_tool_arguments") if one is not whole."""
        return tuple(slot.finish() for slot in self._all())

    def unknown(self) -> tuple[JsonObject, ...]:
        """The keys of each call that this module does not know, in call order."""
        return tuple(slot.unknown for slot in self._all())

    def last_name(self) -> str | None:
        """The name of the call that came last: the one that a length limit cut."""
        slots = self._all()
        name = storable(join_surrogates(slots[-1].name)).strip() if slots else ""
        return name or None

    def _all(self) -> list[_Slot]:
        # Some servers send the one call in both forms: it must not run twice.
        return self._slots or ([self._legacy] if self._legacy is not None else [])

    def _slot(self, index: int | None, identity: str, named: bool) -> _Slot:
        if index is not None:
            return self._slot_at(index, identity)
        if identity:
            return self._by_id.get(identity) or self._open(None, identity)
        if not self._slots or (named and self._slots[-1].is_complete()):
            return self._open(None, "")
        return self._slots[-1]

    def _slot_at(self, index: int, identity: str) -> _Slot:
        current = self._by_index.get(index)
        if current is None:
            return self._open(index, identity)
        if not identity or not current.id or current.id == identity:
            self._note(current, index, identity)
            return current
        # The same number and another id: a call of its own, unless it was begun before.
        begun = self._by_index_and_id.get((index, identity))
        if begun is None:
            return self._open(index, identity)
        self._note(begun, index, identity)
        return begun

    def _open(self, index: int | None, identity: str) -> _Slot:
        slot = _Slot()
        self._slots.append(slot)
        self._note(slot, index, identity)
        return slot

    def _note(self, slot: _Slot, index: int | None, identity: str) -> None:
        if index is not None:
            self._by_index[index] = slot
        if identity:
            self._by_id[identity] = slot
            if index is not None:
                self._by_index_and_id[index, identity] = slot


def _json_text(value: JsonValue) -> str:
    try:
        return json.dumps(value)
    except RecursionError:
        # No JSON document, so that it is refused with the other malformed arguments.
        return "{"
