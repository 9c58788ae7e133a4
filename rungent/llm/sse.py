"""Decode the bytes of an event stream into events, without I/O and in linear time.

Only CR, LF and CRLF end a line. Bytes are split into lines before they are decoded, so that
a character cut over two reads needs no care: UTF-8 never uses the bytes of CR and LF inside
a character. Source: docs/model-adapter.md
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .port import ModelFailure

__all__ = ["DONE", "MAX_RESPONSE_BYTES", "DocumentDecoder", "EventDecoder", "ServerEvent"]

MAX_RESPONSE_BYTES = 16 * 1024 * 1024
DONE = "[DONE]"

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event that carried data. `name` is empty unless an `event` field named it."""

    data: str
    name: str = ""


class EventDecoder:
    """Incremental decoder of one response: `feed` bytes as they come, `close` at a clean end.

    The events do not depend on how the bytes were cut. Both methods raise
    ModelFailure("invalid_response") once the response exceeds `max_bytes`; events that
    were complete within the limit are returned first.
    """

    def __init__(self, *, max_bytes: int = MAX_RESPONSE_BYTES) -> None:
        self._room = max_bytes
        self._overflowed = False
        self._at_start = True
        self._after_cr = False
        self._line = bytearray()
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that `chunk` completes."""
        self._check_size()
        if len(chunk) > self._room:
            chunk = chunk[: self._room]
            self._overflowed = True
        self._room -= len(chunk)
        if self._after_cr and chunk:
            # This LF belongs to the CR that ended the previous chunk.
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        *complete, rest = _LINE_END.split(chunk)
        events: list[ServerEvent] = []
        for piece in complete:
            self._line += piece
            self._end_line(events)
        self._line += rest
        return events

    def close(self) -> list[ServerEvent]:
        """The last event, if the stream ended without the blank line after it."""
        self._check_size()
        events: list[ServerEvent] = []
        if self._line:
            self._end_line(events)
        self._end_event(events)
        return events

    def _check_size(self) -> None:
        if self._overflowed:
            raise ModelFailure("invalid_response")

    def _end_line(self, events: list[ServerEvent]) -> None:
        line = bytes(self._line)
        self._line.clear()
        if self._at_start:
            line = line.removeprefix(_BOM)
            self._at_start = False
        if not line:
            self._end_event(events)
            return
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        # A comment is a line whose field name is empty; unknown fields are skipped like it.
        if name == "data":
            self._data.append(value)
            if value.strip() == DONE and len(self._data) == 1:
                # Servers exist that hold the socket open after this line.
                self._end_event(events)
        elif name == "event":
            self._name = value

    def _end_event(self, events: list[ServerEvent]) -> None:
        data = "\n".join(self._data)
        if data.strip():
            events.append(ServerEvent(data, self._name))
        self._data.clear()
        self._name = ""


class DocumentDecoder:
    """Decoder of a response that is one JSON document: the whole body becomes one event.

    `feed` raises ModelFailure("invalid_response") once the body exceeds `max_bytes`.
    """

    def __init__(self, *, max_bytes: int = MAX_RESPONSE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._body = bytearray()

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Nothing: a document has no parts that mean something on their own."""
        self._body += chunk
        if len(self._body) > self._max_bytes:
            raise ModelFailure("invalid_response")
        return []

    def close(self) -> list[ServerEvent]:
        """The document, which may be empty."""
        return [ServerEvent(self._body.decode("utf-8-sig", "replace"))]
