"""Ways to make one attempt: through the parts without I/O, and through the adapter."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any

import httpx

from rungent.llm import (
    ModelCompleted,
    ModelFailure,
    ModelRequest,
    OpenAICompatibleModel,
    TextDelta,
)
from rungent.llm.assembly import ReplyAssembler
from rungent.llm.classify import body_kind
from rungent.llm.port import ModelChunk
from rungent.llm.sse import DocumentDecoder, EventDecoder, ServerEvent

from .corpus import Outcome, failed, succeeded

KEY = "sk-canary-0123456789"
HELLO = ModelRequest([{"role": "user", "content": "hello"}])

Handler = Callable[[httpx.Request], httpx.Response]


class Pieces(httpx.AsyncByteStream):
    """A body that arrives in `pieces` and then ends, or breaks with `error`."""

    def __init__(self, pieces: Iterable[bytes], error: Exception | None = None) -> None:
        self._pieces = pieces
        self._error = error
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
        if self._error is not None:
            raise self._error

    async def aclose(self) -> None:
        self.closed = True


def model_at(handler: Handler, **options: Any) -> OpenAICompatibleModel:
    """The adapter with a fake transport; the client needs no closing."""
    given: dict[str, Any] = {
        "api_key": KEY,
        "base_url": "http://peer/v1",
        "model": "m",
        "client": httpx.AsyncClient(transport=httpx.MockTransport(handler)),
    }
    return OpenAICompatibleModel(**given | options)


def answering(
    body: httpx.AsyncByteStream, content_type: str | None = "text/event-stream"
) -> Handler:
    headers = {} if content_type is None else {"content-type": content_type}
    return lambda _: httpx.Response(200, headers=headers, stream=body)


async def chunks_of(
    model: OpenAICompatibleModel, request: ModelRequest = HELLO
) -> list[ModelChunk]:
    async with model.stream(request) as chunks:
        return [chunk async for chunk in chunks]


async def completed_of(
    model: OpenAICompatibleModel, request: ModelRequest = HELLO
) -> ModelCompleted:
    """The reply, after a check of what the port promises about chunks."""
    *before, last = await chunks_of(model, request)
    assert isinstance(last, ModelCompleted)
    assert not any(isinstance(chunk, ModelCompleted) for chunk in before)
    assert last.text == "".join(c.text for c in before if isinstance(c, TextDelta))
    return last


async def attempt(model: OpenAICompatibleModel, request: ModelRequest = HELLO) -> Outcome:
    deltas: list[str] = []
    completed: ModelCompleted | None = None
    try:
        async with model.stream(request) as chunks:
            async for chunk in chunks:
                assert completed is None, "nothing follows the completion"
                if isinstance(chunk, ModelCompleted):
                    completed = chunk
                elif isinstance(chunk, TextDelta):
                    deltas.append(chunk.text)
    except ModelFailure as failure:
        return failed(failure, deltas)
    assert completed is not None
    return succeeded(completed, deltas)


async def failure_of(model: OpenAICompatibleModel, request: ModelRequest = HELLO) -> ModelFailure:
    try:
        await chunks_of(model, request)
    except ModelFailure as failure:
        return failure
    raise AssertionError("the attempt succeeded")


def read_without_io(
    pieces: Iterable[bytes], content_type: str = "text/event-stream", *, reset: bool = False
) -> Outcome:
    """What the adapter does with the bytes of a 200 answer, minus the adapter."""
    kind = body_kind(content_type)
    if kind is None:
        return Outcome("retry", "invalid_response")
    decoder = EventDecoder() if kind == "events" else DocumentDecoder()
    return assemble(_events(decoder, pieces, reset=reset))


def _events(
    decoder: EventDecoder | DocumentDecoder, pieces: Iterable[bytes], *, reset: bool
) -> Iterator[ServerEvent]:
    for piece in pieces:
        yield from decoder.feed(piece)
    if not reset:
        yield from decoder.close()


def assemble(events: Iterable[ServerEvent], *, strip_think: bool = True) -> Outcome:
    assembler = ReplyAssembler(strip_think=strip_think)
    deltas: list[str] = []
    try:
        for event in events:
            deltas += [c.text for c in assembler.feed(event) if isinstance(c, TextDelta)]
            if assembler.done:
                break
        *late, completed = assembler.finish()
    except ModelFailure as failure:
        return failed(failure, deltas)
    deltas += [chunk.text for chunk in late if isinstance(chunk, TextDelta)]
    assert isinstance(completed, ModelCompleted)
    assert completed.text == "".join(deltas)
    return succeeded(completed, deltas)


def delta(finish: str | None = None, **fields: Any) -> ServerEvent:
    """An event with one choice, `fields` being its delta."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return ServerEvent(json.dumps({"choices": [choice]}))


def call(
    name: str | None = None, arguments: Any = None, *, finish: str | None = None, **keys: Any
) -> ServerEvent:
    """An event with one fragment of a tool call, `keys` being the fragment's other keys."""
    fragment = {**keys, "function": {"name": name, "arguments": arguments}}
    return delta(finish, tool_calls=[fragment])


def reply(*events: ServerEvent, strip_think: bool = True, finish: str = "stop") -> Outcome:
    """The outcome of `events` and a finish after them."""
    return assemble([*events, delta(finish)], strip_think=strip_think)


def calls_in(outcome: Outcome) -> list[tuple[str, Any]]:
    assert outcome.completed is not None, outcome.reason
    return [(made.name, made.arguments) for made in outcome.completed.tool_calls]


def sse(*objects: Any, done: bool = True) -> bytes:
    """An event-stream body of JSON objects."""
    texts: Sequence[str] = [json.dumps(value) for value in objects] + (["[DONE]"] if done else [])
    return "".join(f"data: {text}\n\n" for text in texts).encode()


def text_chunk(content: str, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": finish}]}


HI = sse(text_chunk("Hi", "stop"))
