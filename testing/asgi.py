"""An ASGI client in the same process: real back-pressure, real disconnects, any clock.

Nothing is buffered between application and test: the application's `send` returns when the test
took the chunk. Source: docs/testing.md#http.
"""

from __future__ import annotations

import json as json_module
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias
from urllib.parse import unquote

import trio

__all__ = ["AsgiApp", "AsgiClient", "AsgiResponse", "AsgiStream"]

AsgiApp: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class AsgiResponse:
    """A whole response. Header names are lower-case; of repeated ones the last counts."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON. Raises ValueError when it is none."""
        return json_module.loads(self.body)


class AsgiStream:
    """A response that is read chunk by chunk: `async for chunk in stream`."""

    def __init__(self, chunks: trio.MemoryReceiveChannel[bytes], gone: trio.Event) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._chunks = chunks
        self._gone = gone

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        """The next chunk. Ends with the response, also when the application broke it off."""
        try:
            return await self._chunks.receive()
        except trio.EndOfChannel:
            raise StopAsyncIteration from None

    def disconnect(self) -> None:
        """Go away: the application learns of it, and whatever it still sends is lost."""
        self._gone.set()
        self._chunks.close()


class AsgiClient:
    """Sends requests to an application whose lifespan it runs: `async with AsgiClient(app)`.

    With `lifespan=False` the application is used as a mounted one is. Entering raises
    RuntimeError when the application does not start. What the application raises while it
    answers is raised by `request` and by leaving `stream`.
    Source: docs/testing.md#http.
    """

    def __init__(
        self,
        app: AsgiApp,
        *,
        headers: Mapping[str, str] | None = None,
        root_path: str = "",
        lifespan: bool = True,
    ) -> None:
        self._app = app
        self._headers = dict(headers or {})
        self._root_path = root_path
        self._lifespan = lifespan
        self._nursery: trio.Nursery | None = None
        self._life: AbstractAsyncContextManager[None] | None = None

    async def __aenter__(self) -> Self:
        self._life = self._living()
        await self._life.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        life, self._life = self._life, None
        assert life is not None
        return await life.__aexit__(kind, error, trace)  # noqa: ASYNC102 - the test bounds it

    @asynccontextmanager
    async def _living(self) -> AsyncIterator[None]:
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            life = _Lifespan(self._app)
            if self._lifespan:
                await nursery.start(life.run)
            try:
                yield
            finally:
                self._nursery = None
                life.ending.set()

    async def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = _ABSENT,
        content: bytes | Sequence[bytes] = b"",
        headers: Mapping[str, str] | None = None,
    ) -> AsgiResponse:
        """Send a request and read the whole answer. `json` is sent as `application/json`.

        `path` may hold a query. A `content` of several pieces arrives piece by piece. A
        cancelled caller disconnects.
        """
        if json is not _ABSENT:
            content = json_module.dumps(json).encode()
            headers = {"content-type": "application/json", **(headers or {})}
        async with self.stream(method, path, content=content, headers=headers) as stream:
            body = b"".join([chunk async for chunk in stream])
        return AsgiResponse(stream.status, stream.headers, body)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        content: bytes | Sequence[bytes] = b"",
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[AsgiStream]:
        """Send a request and hold its response, status and headers first; leaving disconnects."""
        if self._nursery is None:
            raise RuntimeError("use the client as an async context manager")
        send, receive = trio.open_memory_channel[bytes](0)
        gone = trio.Event()
        stream = AsgiStream(receive, gone)
        pieces = [content] if isinstance(content, bytes) else list(content)
        exchange = _Exchange(stream, send, pieces, gone)
        scope = _http_scope(method, path, self._root_path, {**self._headers, **(headers or {})})
        self._nursery.start_soon(exchange.run, self._app, scope)
        try:
            await exchange.begun.wait()
            yield stream
        finally:
            stream.disconnect()
            with trio.CancelScope(shield=True), trio.move_on_after(10):
                # An application that is told that its client left has no reason to stay.
                await exchange.over.wait()
        if exchange.failure is not None:
            raise exchange.failure


class _Exchange:
    """One request and the application's call for it."""

    def __init__(
        self,
        stream: AsgiStream,
        send: trio.MemorySendChannel[bytes],
        pieces: list[bytes],
        gone: trio.Event,
    ) -> None:
        self.begun = trio.Event()
        self.over = trio.Event()
        self.failure: Exception | None = None
        self._stream = stream
        self._send = send
        self._pieces = pieces
        self._gone = gone

    async def run(self, app: AsgiApp, scope: dict[str, Any]) -> None:
        """Call the application and keep what it raises."""
        try:
            with self._send:
                await app(scope, self._receive, self._respond)
        except Exception as error:  # noqa: BLE001 - handed to whoever asked
            self.failure = error
        finally:
            self.begun.set()
            self.over.set()

    async def _receive(self) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        if self._pieces:
            piece = self._pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(self._pieces)}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _respond(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._stream.status = message["status"]
            self._stream.headers.update(
                (bytes(name).decode("latin-1").lower(), bytes(value).decode("latin-1"))
                for name, value in message["headers"]
            )
            self.begun.set()
        elif message.get("body"):
            try:
                await self._send.send(bytes(message["body"]))
            except trio.BrokenResourceError:
                await trio.lowlevel.checkpoint()
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self._send.close()


class _Lifespan:
    """The application's lifespan, from its start to the end of the client."""

    def __init__(self, app: AsgiApp) -> None:
        self.ending = trio.Event()
        self._app = app
        self._begun = False
        self._failure: str | None = None

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Start the application, and end it when `ending` is set."""
        answered = trio.Event()

        async def receive() -> dict[str, Any]:
            if not self._begun:
                self._begun = True
                return {"type": "lifespan.startup"}
            await self.ending.wait()
            return {"type": "lifespan.shutdown"}

        async def send(message: Mapping[str, Any]) -> None:
            await trio.lowlevel.checkpoint()
            if message["type"].endswith(".failed"):
                raise RuntimeError(f"{message['type']}: {message.get('message', '')}")
            if message["type"] == "lifespan.startup.complete":
                answered.set()
                task_status.started()

        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}}
        await self._app({**scope, "state": {}}, receive, send)
        if not answered.is_set():
            # It returned without a word: an application without a lifespan.
            task_status.started()


def _http_scope(
    method: str, path: str, root_path: str, headers: Mapping[str, str]
) -> dict[str, Any]:
    target, _, query = path.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": root_path + unquote(target),
        "raw_path": (root_path + target).encode("ascii"),
        "query_string": query.encode("ascii"),
        "root_path": root_path,
        "headers": [
            (b"host", b"testserver"),
            *((n.lower().encode("latin-1"), v.encode("latin-1")) for n, v in headers.items()),
        ],
        "client": ("127.0.0.1", 50_000),
        "server": ("testserver", 80),
        "state": {},
        "extensions": {},
    }
