"""Models of the baseline: the offline planner without its server, and scripts for what it lacks.

Pure stand-ins: they see the request and nothing else.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from types import TracebackType
from typing import Any, Self

import trio

from rungent import ToolCall
from rungent.demo.planner import plan
from rungent.llm import (
    Model,
    ModelCompleted,
    ModelFailure,
    ModelRequest,
    RetryPolicy,
    TextDelta,
)
from rungent.llm.port import ModelChunk
from rungent.testing.transcript_model import TranscriptModel

__all__ = ["PlannerModel", "ScriptBook", "last_text"]


class PlannerModel:
    """The offline planner as a model of its own."""

    retry_policy = RetryPolicy(3, 0.05, jitter=0)

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelChunk]]:
        """One attempt: the planner's reply."""
        await trio.lowlevel.checkpoint()
        async with aclosing(self._chunks(request)) as chunks:
            yield chunks

    async def _chunks(self, request: ModelRequest) -> AsyncGenerator[ModelChunk]:
        reply = plan(request.messages, [_name(tool) for tool in request.tools])
        calls = tuple(ToolCall(call.name, call.arguments) for call in reply.calls)
        if reply.text:
            yield TextDelta(reply.text)
        yield ModelCompleted(reply.text, tool_calls=calls)


class ScriptBook:
    """Plays a script where the last text of the user has one, and asks `model` for the rest.

    The first attempt after a text in `flaky` breaks off, as providers do. Enters the model if it
    holds a connection.
    """

    def __init__(
        self,
        model: Model,
        scripts: Mapping[str, Sequence[str | ModelCompleted]],
        flaky: Collection[str] = (),
    ) -> None:
        self._model = model
        self._scripts = {text: TranscriptModel(replies) for text, replies in scripts.items()}
        self._flaky = set(flaky)
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        enter: Any = getattr(self._model, "__aenter__", None)
        if enter is not None:
            context: Any = self._model
            await self._open.enter_async_context(context)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._open.aclose()  # noqa: ASYNC102 - the model bounds it

    @property
    def retry_policy(self) -> RetryPolicy:
        """The model's own."""
        return self._model.retry_policy

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelChunk]]:
        """One attempt of the script or the model."""
        text = last_text(request)
        if text in self._flaky:
            self._flaky.discard(text)
            raise ModelFailure("network")
        async with self._scripts.get(text, self._model).stream(request) as chunks:
            yield chunks


def last_text(request: ModelRequest) -> str:
    """What the user said last."""
    said = [message for message in request.messages if message.get("role") == "user"]
    return str(said[-1].get("content")) if said else ""


def _name(tool: Mapping[str, Any]) -> str:
    return str(tool["function"]["name"])
