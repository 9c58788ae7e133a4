"""One request between server and framework: what no router can read, and the order of its end.

The framework takes every target for a path and every `Host` for a name, and fails on those that
are none. It also gives up on a request as soon as the server says that the request is over,
which the server says in the middle of ending it. Source: docs/http.md#requests.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import trio

from rungent.asgi.dispatch import AsgiApp
from rungent.asgi.problems import refuse
from rungent.errors import InvalidRequest, NotFound, RungentError

__all__ = ["Orderly"]


@dataclass(frozen=True, slots=True)
class Orderly:
    """An application behind a rim that refuses what it cannot read, and lets answers end."""

    app: AsgiApp

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one connection."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        try:
            checked = _checked(scope)
        except RungentError as error:
            return await _refuse(scope, error, receive, send)
        if scope["type"] != "http":
            return await self.app(checked, receive, send)
        end = _End(receive, send)
        return await self.app(checked, end.receive, end.send)


class _End:
    """Keeps the disconnect back while the last message of the answer is on its way.

    The server reports the disconnect before it closes the connection or keeps it for the next
    request. An application that was cancelled there would leave it open for ever.
    """

    def __init__(self, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Any]) -> None:
        self._receive = receive
        self._send = send
        self._sent = trio.Event()
        self._sent.set()

    async def receive(self) -> Any:
        """The next message for the application."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            await self._sent.wait()
        return message

    async def send(self, message: Mapping[str, Any]) -> None:
        """Pass a message of the application on."""
        if message["type"] != "http.response.body" or message.get("more_body", False):
            await self._send(message)
            return
        self._sent = trio.Event()
        try:
            await self._send(message)
        finally:
            self._sent.set()


def _checked(scope: Mapping[str, Any]) -> dict[str, Any]:
    """The scope with a path that begins with a slash. Raises NotFound or InvalidRequest."""
    path: str = scope["path"]
    if not path.startswith("/"):
        path = _path_of(path)
    for name, value in scope["headers"]:
        if name.lower() == b"host" and not _is_name(value):
            raise InvalidRequest.at("header", "host", message="Host must be a name or an address")
    return {**scope, "path": path}


def _path_of(target: str) -> str:
    """The path in a target that names its server, too, as clients of proxies send it."""
    scheme, separator, rest = target.partition("://")
    if not separator or scheme.lower() not in ("http", "https", "ws", "wss"):
        raise NotFound()
    return "/" + rest.partition("/")[2]


def _is_name(host: bytes) -> bool:
    try:
        host.decode("latin-1").lower().encode("idna")
    except UnicodeError:
        return False
    return True


async def _refuse(scope: Mapping[str, Any], error: RungentError, receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        await refuse(error, send)
        return
    await receive()
    await send({"type": "websocket.close", "code": 1008})
