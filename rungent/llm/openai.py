"""Speak to an OpenAI-compatible `chat/completions` server over HTTP.

The only module that knows httpx. It moves bytes and nothing else: what they mean is
decided by `sse`, `assembly` and `classify`. Every error of httpx becomes a ModelFailure outside its
handler, so that no chained exception carries a header or a body into a log.
Source: docs/model-adapter.md
"""

from __future__ import annotations

import json
import logging
import math
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Self

import httpx
import trio
from pydantic import JsonValue

from rungent.ids import system_now
from rungent.text import dump_json, storable

from .assembly import ReplyAssembler
from .classify import body_kind, classify_status
from .outgoing import RESERVED_KEYS, request_body
from .port import JsonObject, ModelChunk, ModelFailure, ModelRequest, RetryPolicy
from .sse import MAX_RESPONSE_BYTES, DocumentDecoder, EventDecoder

__all__ = ["OpenAICompatibleModel"]

logger = logging.getLogger(__name__)

_CONNECT_SECONDS = 10.0
_CLOSE_SECONDS = 5.0
_MAX_ERROR_BYTES = 1024 * 1024


class OpenAICompatibleModel:
    """A model behind `POST <base_url>/chat/completions`.

    `api_key` is sent as a bearer token; None sends none. `timeout_seconds` bounds each wait for
    bytes, and connecting to at most ten seconds of it. `max_retries` and `retry_backoff_seconds`
    (seconds) become the `retry_policy`. `extra_body` adds keys to every request body; the six
    that the adapter writes are not allowed. `strip_think` hides a `<think>` block at the start of a
    reply. `client` stays the host's to close. Without it the model makes its own on
    `async with`, which the serving runtime does, and may be entered again after it was left.

    Raises ValueError for values out of these bounds. Redirects are never followed, since
    they would carry the key elsewhere. Source: docs/model-adapter.md
    """

    def __init__(
        self,
        *,
        api_key: str | None,
        base_url: str,
        model: str,
        timeout_seconds: float = 120,
        max_retries: int = 3,
        retry_backoff_seconds: float = 0.5,
        extra_body: Mapping[str, JsonValue] | None = None,
        tool_choice: JsonValue = "auto",
        strip_think: bool = True,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        if not model.strip():
            raise ValueError("model must not be blank")
        if not (math.isfinite(timeout_seconds) and timeout_seconds > 0):
            raise ValueError("timeout_seconds must be finite and positive")
        self.model = model
        self.retry_policy = RetryPolicy(
            max_retries=max_retries, backoff_seconds=retry_backoff_seconds
        )
        self._url = _endpoint(base_url)
        self._headers = _headers(api_key)
        self._extra_body = _checked_extra(extra_body or {})
        self._tool_choice = tool_choice
        self._strip_think = strip_think
        self._timeout = httpx.Timeout(
            timeout_seconds, connect=min(_CONNECT_SECONDS, timeout_seconds)
        )
        self._host_client = client
        self._own_client: httpx.AsyncClient | None = None
        self._entered = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r}, host={self._url.host!r})"

    async def __aenter__(self) -> Self:
        """Make the client, unless the host gave one. A checkpoint."""
        await trio.lowlevel.checkpoint()
        if self._host_client is None and self._own_client is None:
            # Runs are bounded by the runtime; a second bound here would only time out.
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
            self._own_client = httpx.AsyncClient(timeout=self._timeout, limits=limits)
        self._entered += 1
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the own client with the last of several users, also when cancelled."""
        self._entered -= 1
        if self._entered == 0 and self._own_client is not None:
            client, self._own_client = self._own_client, None
            with trio.move_on_after(_CLOSE_SECONDS, shield=True):
                await client.aclose()

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[AsyncIterator[ModelChunk], None]:
        """One attempt, as described by `Model.stream`.

        Raises RuntimeError when the model has no client because it was not entered. A provider's
        refusal raises ModelFailure on entering, everything later while iterating.
        """
        body = _Body(await self._send(request))
        try:
            yield await self._read_head(body)
        finally:
            with trio.move_on_after(_CLOSE_SECONDS, shield=True):
                await body.aclose()

    async def _send(self, request: ModelRequest) -> httpx.Response:
        client = self._host_client or self._own_client
        if client is None:
            raise RuntimeError("enter the model with 'async with' first, or give it a client")
        content = request_body(
            request,
            model=self.model,
            tool_choice=self._tool_choice,
            extra_body=self._extra_body,
        )
        prepared = client.build_request(
            "POST", self._url, content=content, headers=self._headers, timeout=self._timeout
        )
        try:
            return await client.send(prepared, stream=True, follow_redirects=False)
        except httpx.RequestError as error:
            failure = ModelFailure(
                "timeout" if isinstance(error, httpx.TimeoutException) else "network"
            )
        raise failure

    async def _read_head(self, body: _Body) -> _Chunks:
        response = body.response
        if not response.is_success:
            failure = classify_status(
                response.status_code, response.headers, await body.read_error(), system_now()
            )
            logger.info("provider answered %d: %s", response.status_code, failure.reason)
            raise failure
        kind = body_kind(response.headers.get("content-type", ""))
        if kind is None:
            raise ModelFailure("invalid_response")
        decoder = EventDecoder() if kind == "events" else DocumentDecoder()
        return _Chunks(body, decoder, ReplyAssembler(strip_think=self._strip_think))


class _Body:
    """The bytes of one response, and the orderly end of reading them."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._bytes = response.aiter_bytes()

    async def read(self) -> bytes:
        """The next bytes, empty at a clean end. Raises ModelFailure."""
        try:
            return await anext(self._bytes, b"")
        except httpx.TimeoutException:
            failure = ModelFailure("timeout")
        except httpx.DecodingError:
            failure = ModelFailure("invalid_response")
        except httpx.RequestError:
            failure = ModelFailure("stream_incomplete")
        raise failure

    async def read_error(self) -> bytes:
        """What can be read of the body of a refusal; too much or broken off is nothing."""
        body = bytearray()
        with suppress(ModelFailure):
            while chunk := await self.read():
                body += chunk
                if len(body) > _MAX_ERROR_BYTES:
                    return b""
        return bytes(body)

    async def aclose(self) -> None:
        """Release the connection without waiting for what the server might still send.

        Leaving the nested generators of httpx unfinished would leave them to the garbage
        collector, which trio rightly reports. In a cancelled scope they take what was
        received already, which often completes the response and saves the connection, and are
        unwound where they would have to wait.
        """
        with trio.CancelScope() as scope, suppress(httpx.RequestError, httpx.StreamError):
            scope.cancel()
            left = MAX_RESPONSE_BYTES
            while left > 0 and (chunk := await anext(self._bytes, b"")):
                left -= len(chunk)
        with suppress(httpx.RequestError):
            await self.response.aclose()


class _Chunks:
    """The chunks of one attempt. Every step is a checkpoint."""

    def __init__(
        self, body: _Body, decoder: EventDecoder | DocumentDecoder, assembler: ReplyAssembler
    ) -> None:
        self._body = body
        self._decoder = decoder
        self._assembler = assembler
        self._ready: deque[ModelChunk] = deque()
        self._failure: ModelFailure | None = None
        self._over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ModelChunk:
        await trio.lowlevel.checkpoint()
        while not self._ready:
            # Chunks that came before a failure are given out before it.
            if self._failure is not None:
                raise self._failure
            if self._over:
                raise StopAsyncIteration
            await self._read_more()
        return self._ready.popleft()

    async def _read_more(self) -> None:
        data: bytes | None = None
        try:
            data = await self._body.read()
        except ModelFailure as failure:
            # The reply may be whole already; then the break took nothing away.
            if not self._assembler.ended:
                self._failure = failure
                return
        try:
            self._take(data)
        except ModelFailure as failure:
            self._failure = failure

    def _take(self, data: bytes | None) -> None:
        """Take the bytes of one read: empty at a clean end, None after a break."""
        if data is None:
            self._finish()
            return
        for event in self._decoder.feed(data) if data else self._decoder.close():
            self._ready.extend(self._assembler.feed(event))
            if self._assembler.done:
                break
        if not data or self._assembler.done:
            self._finish()

    def _finish(self) -> None:
        self._over = True
        self._ready.extend(self._assembler.finish(_request_id(self._body.response.headers)))


def _request_id(headers: httpx.Headers) -> str | None:
    given = headers.get("x-request-id") or headers.get("request-id")
    return storable(given) if given else None


def _endpoint(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url.rstrip("/") + "/chat/completions")
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("base_url must be an absolute http or https URL")
    return url


def _headers(api_key: str | None) -> dict[str, str]:
    # Compression gains nothing on small events, and some proxies buffer to compress.
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    if api_key is not None:
        if not (api_key.isascii() and api_key.isprintable()) or api_key != api_key.strip():
            # Checked here because the error of the HTTP library would show the key.
            raise ValueError("api_key must be printable ASCII without blanks around it")
        if not api_key:
            raise ValueError("api_key must not be blank; None sends no key")
        headers["Authorization"] = f"Bearer {api_key}"
    return headers


def _checked_extra(extra_body: Mapping[str, JsonValue]) -> JsonObject:
    if any(not key.strip() for key in extra_body):
        raise ValueError("extra_body must not have a blank key")
    reserved = sorted(RESERVED_KEYS & extra_body.keys())
    if reserved:
        raise ValueError(f"extra_body must not set {', '.join(reserved)}")
    try:
        copy: dict[str, JsonValue] = json.loads(dump_json(dict(extra_body)))
    except TypeError:
        raise ValueError("extra_body must be JSON") from None
    return copy
