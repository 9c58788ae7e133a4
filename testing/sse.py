"""Reading an event stream in tests: whole frames out of bytes that were cut anywhere.

Source: docs/testing.md#http.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["SseFrame", "SseReader"]


@dataclass(frozen=True, slots=True)
class SseFrame:
    """One frame of an event stream: fields, or a comment."""

    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    comment: str | None = None

    @property
    def seq(self) -> int | None:
        """The number of the event, for frames that carry one."""
        return int(self.fields["id"]) if "id" in self.fields else None

    @property
    def event(self) -> Any:
        """The event, or None for other frames."""
        return json.loads(self.fields["data"]) if "data" in self.fields else None


class SseReader:
    """Turns bytes into whole frames, however they are cut; half a frame is never handed out."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[SseFrame]:
        """The frames that `data` completes."""
        *frames, self._rest = (self._rest + data).split(b"\n\n")
        return [_frame(frame.decode()) for frame in frames]

    async def frames(self, chunks: AsyncIterator[bytes], limit: float = math.inf) -> list[SseFrame]:
        """The frames of a stream until it ends, or until there are `limit`."""
        found: list[SseFrame] = []
        while len(found) < limit:
            try:
                chunk = await anext(chunks)
            except StopAsyncIteration:
                break
            found += self.feed(chunk)
        return found


def _frame(text: str) -> SseFrame:
    lines = [line for line in text.split("\n") if line]
    comments = [line[1:].strip() for line in lines if line.startswith(":")]
    pairs = [line.partition(":") for line in lines if not line.startswith(":")]
    fields = {name: value.removeprefix(" ") for name, _, value in pairs}
    return SseFrame(fields, "\n".join(comments) if comments else None)
