"""One HTTP/1.1 connection over a real socket, which shows what really was sent."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import h11
import trio

from rungent.testing.asgi import AsgiResponse


@dataclass
class Wire:
    """A connection; `request` may be called again and again on it."""

    stream: trio.SocketStream
    state: Any

    async def send(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> None:
        head = list({"host": "test", "x-user": "ada", **(headers or {})}.items())
        if body:
            head.append(("content-length", str(len(body))))
        await self._send(h11.Request(method=method, target=path, headers=head))
        if body:
            await self._send(h11.Data(data=body))
        await self._send(h11.EndOfMessage())

    async def request(self, method: str, path: str, body: bytes = b"", **headers: str) -> Any:
        """The whole response; the connection is ready for the next request afterwards."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        await self.send(method, path, body, names)
        head = await self.head()
        data = b""
        while (piece := await self.data()) is not None:
            data += piece
        self.state.start_next_cycle()
        return AsgiResponse(head.status_code, {}, data)

    async def head(self) -> h11.Response:
        event = await self._event()
        assert isinstance(event, h11.Response)
        return event

    async def data(self) -> bytes | None:
        """The next piece of the body; None at its orderly end."""
        event = await self._event()
        if isinstance(event, h11.Data):
            return bytes(event.data)
        assert isinstance(event, h11.EndOfMessage), event
        return None

    async def _send(self, event: Any) -> None:
        data: bytes | None = self.state.send(event)
        assert data is not None
        await self.stream.send_all(data)

    async def _event(self) -> Any:
        while (event := self.state.next_event()) is h11.NEED_DATA:
            self.state.receive_data(await self.stream.receive_some())
        return event


@asynccontextmanager
async def connect_to_file(path: Path) -> AsyncGenerator[Wire]:
    """A connection to a server that listens on a socket in the file system."""
    async with await trio.open_unix_socket(str(path)) as stream:
        yield Wire(stream, h11.Connection(h11.CLIENT))


@asynccontextmanager
async def connect(url: str, *, receive_buffer: int | None = None) -> AsyncGenerator[Wire]:
    """A connection to a server. A small receive buffer makes a reader that stops felt soon."""
    parts = urlsplit(url)
    plain = trio.socket.socket()
    if receive_buffer is not None:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    try:
        await plain.connect((parts.hostname, parts.port))
    except BaseException:
        plain.close()
        raise
    async with trio.SocketStream(plain) as stream:
        yield Wire(stream, h11.Connection(h11.CLIENT))
