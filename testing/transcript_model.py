"""A model that sees from the request alone how far the exchange is, so that any worker may ask it.

Source: docs/simulation.md#scenarios.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any

import trio

from rungent.llm.port import ModelChunk, ModelCompleted, ModelRequest, RetryPolicy, TextDelta
from rungent.records import ToolCall

__all__ = ["TranscriptModel"]


class TranscriptModel:
    """Gives the n-th of `replies` when the exchange holds n - 1 of them; then the last again.

    A reply is a final text, or `ModelCompleted` with calls. Calls get ids by which they are found
    again in the transcript, so the model has no state: lose the worker, and the next one goes on.
    Every message of the user starts with the first reply.
    """

    def __init__(
        self, replies: Sequence[str | ModelCompleted], *, retry_policy: RetryPolicy | None = None
    ) -> None:
        if not replies:
            raise ValueError("a model needs a reply")
        self._replies = tuple(
            ModelCompleted(reply) if isinstance(reply, str) else reply for reply in replies
        )
        self.retry_policy = retry_policy or RetryPolicy(3, 0.5, jitter=0)

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelChunk]]:
        """One attempt: the reply that comes next in the transcript."""
        await trio.lowlevel.checkpoint()
        async with aclosing(_play(self._next(request))) as chunks:
            yield chunks

    def _next(self, request: ModelRequest) -> ModelCompleted:
        asked = sum(message.get("role") == "user" for message in request.messages)
        prefix = f"{asked}-"
        made: list[Any] = [message.get("tool_calls") or [] for message in request.messages]
        ids = {str(call["id"]) for calls in made for call in calls}
        done = {name.split("-")[1] for name in ids if name.startswith(prefix)}
        reply = self._replies[min(len(done), len(self._replies) - 1)]
        calls = tuple(
            ToolCall(call.name, call.arguments, f"{prefix}{len(done)}-{place}")
            for place, call in enumerate(reply.tool_calls)
        )
        return replace(reply, tool_calls=calls)


async def _play(reply: ModelCompleted) -> AsyncGenerator[ModelChunk]:
    words = reply.text.split(" ") if reply.text else []
    for place, word in enumerate(words):
        await trio.lowlevel.checkpoint()
        yield TextDelta(word if place == 0 else f" {word}")
    await trio.lowlevel.checkpoint()
    yield reply
