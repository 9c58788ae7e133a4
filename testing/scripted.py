"""A model that plays a script: what each attempt says, in order and in trio's time.

```python
model = ScriptedModel([
    ModelCompleted(tool_calls=(ToolCall("look", {"city": "Rome"}),)),
    [TextDelta("It "), Delay(4), ModelFailure("network")],  # this attempt fails: a retry follows
    "It rains.",
])
```

Source: docs/testing.md#scripted-model.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

import trio

from rungent.llm.port import (
    Heartbeat,
    ModelChunk,
    ModelCompleted,
    ModelRequest,
    RetryPolicy,
    TextDelta,
)

__all__ = ["Delay", "Part", "Response", "ScriptedModel"]


@dataclass(frozen=True, slots=True)
class Delay:
    """The provider is silent for this long, in trio's time."""

    seconds: float


Part: TypeAlias = TextDelta | Heartbeat | Delay | ModelCompleted | Exception
Reply: TypeAlias = str | ModelCompleted | Exception | Sequence[Part]
Response: TypeAlias = Reply | Callable[[ModelRequest], Reply]

_PARTS = (TextDelta, Heartbeat, Delay, ModelCompleted, Exception)


class ScriptedModel:
    """Plays one item of `responses` per attempt; retries wait without jitter.

    An item is a final text, a `ModelCompleted` (its text goes ahead as one delta), an exception
    (raised), a list of parts played in order, or a function of the request that returns one of
    these. A list that ends without `ModelCompleted` is an incomplete stream. `requests` holds
    what was asked. An attempt without an item left raises AssertionError.

    Raises TypeError for an item that is none of these.
    """

    def __init__(
        self,
        responses: Iterable[Response],
        *,
        max_retries: int = 3,
        retry_backoff_seconds: float = 0.5,
    ) -> None:
        self._script = tuple(responses)
        for position, item in enumerate(self._script, start=1):
            _check(item, position)
        self._played = 0
        self.requests: list[ModelRequest] = []
        self.retry_policy = RetryPolicy(max_retries, retry_backoff_seconds, jitter=0)

    def __repr__(self) -> str:
        return f"<ScriptedModel: {self._played} of {len(self._script)} items played>"

    @property
    def remaining(self) -> int:
        """How many items were not played yet."""
        return len(self._script) - self._played

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelChunk]]:
        """One attempt: the next item of the script."""
        await trio.lowlevel.checkpoint()
        self.requests.append(request)
        async with aclosing(_play(self._next(request))) as chunks:
            yield chunks

    def _next(self, request: ModelRequest) -> Sequence[Part]:
        if not self.remaining:
            raise AssertionError(
                f"the script is over after {len(self._script)} items, but the model was asked "
                f"once more; the request ends with {_last(request)}"
            )
        item = self._script[self._played]
        self._played += 1
        if not callable(item):
            return _parts(item)
        reply = cast("object", item(request))
        if callable(reply):
            raise TypeError(f"item {self._played} of the script returned a function")
        _check(reply, self._played)
        return _parts(cast("Reply", reply))


def _check(item: object, position: int) -> None:
    if isinstance(item, (str, ModelCompleted, Exception)) or callable(item):
        return
    parts = cast("Sequence[object]", item) if isinstance(item, (list, tuple)) else (item,)
    for part in parts:
        if isinstance(item, (list, tuple)) and isinstance(part, _PARTS):
            continue
        raise TypeError(f"item {position} of the script cannot be played: {part!r}")


def _parts(reply: Reply) -> Sequence[Part]:
    if isinstance(reply, str):
        reply = ModelCompleted(reply)
    if isinstance(reply, ModelCompleted):
        return (TextDelta(reply.text), reply) if reply.text else (reply,)
    return (reply,) if isinstance(reply, Exception) else reply


async def _play(parts: Sequence[Part]) -> AsyncGenerator[ModelChunk]:
    said = ""
    for part in parts:
        await trio.lowlevel.checkpoint()
        if isinstance(part, Exception):
            raise part
        if isinstance(part, Delay):
            await trio.sleep(part.seconds)
        elif isinstance(part, ModelCompleted):
            yield replace(part, text=part.text or said)
        else:
            said += part.text if isinstance(part, TextDelta) else ""
            yield part
            # With the one above: whoever writes this begins before the next part is there, so
            # that a log does not depend on whose turn comes first.
            await trio.lowlevel.checkpoint()


def _last(request: ModelRequest) -> str:
    if not request.messages:
        return "no message"
    message = request.messages[-1]
    return f"the {message.get('role')} message {str(message.get('content'))[:80]!r}"
