"""The server's settings: one socket, HTTP/1.1 alone, and log lines that clients cannot forge.

Source: docs/serving.md.
"""

from __future__ import annotations

import logging
import re
import ssl
from collections.abc import Mapping
from typing import Any

import h11
from hypercorn.config import Config, Sockets
from hypercorn.events import Updated
from hypercorn.logging import Logger
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.protocol.ws_stream import Handshake
from typing_extensions import override

__all__ = ["ServerConfig"]

NO_LIMIT = 10**9
access_log = logging.getLogger("hypercorn.access")
error_log = logging.getLogger("hypercorn.error")

# What ends a line, moves a terminal's cursor, or ends a quoted part.
_UNPRINTABLE = re.compile('[\x00-\x1f\x7f-\x9f\u2028\u2029"\\\\]')


class _Logger(Logger):
    """Access lines with everything that a client sent made printable, and without referrers."""

    @override
    def atoms(self, request: Any, response: Any, request_time: float) -> Mapping[str, str]:
        """The parts of an access line."""
        atoms: Any = super().atoms(request, response, request_time)
        for name, value in list(atoms.items()):
            if isinstance(value, str):
                atoms[name] = _UNPRINTABLE.sub(_escaped, value)
        # Another site's address may hold secrets of its user.
        atoms["f"] = "-"
        return atoms  # type: ignore[no-any-return]


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


class ServerConfig(Config):
    """The server's settings, and the one socket it serves."""

    def __init__(
        self, listener: Any, graceful_timeout: float, secure: ssl.SSLContext | None
    ) -> None:
        super().__init__()
        self._listener = listener
        self._secure = secure
        self.graceful_timeout = graceful_timeout
        # Its HTTP/2 buffers without bound for a reader that does not read.
        self.alpn_protocols = ["http/1.1"]
        self.keep_alive_max_requests = NO_LIMIT
        self.include_server_header = False
        self.logger_class = _Logger
        # Loggers of the host's, not handlers of its own. Access lines cost too much to make them
        # for nobody.
        self.errorlog = error_log
        self.accesslog = access_log if access_log.isEnabledFor(logging.INFO) else None

    @override
    def create_sockets(self) -> Sockets:
        listeners = [self._listener]
        return Sockets([], listeners, []) if self._secure is None else Sockets(listeners, [], [])

    @override
    def create_ssl_context(self) -> ssl.SSLContext | None:
        return self._secure


_check_protocol = H11Protocol._check_protocol  # pyright: ignore[reportPrivateUsage]


async def _stay_with_http_1(self: H11Protocol, event: h11.Request) -> None:
    """Ignore offers of HTTP/2, which the server otherwise accepts without TLS.

    It has no setting for that. Servers of the host's in this process are left as they are.
    """
    if not isinstance(self.config, ServerConfig):
        await _check_protocol(self, event)
    elif _fails_as_websocket(event):
        # The server refuses it and then forgets the connection: let that end as an idle one.
        await self.send(Updated(idle=True))


def _fails_as_websocket(event: h11.Request) -> bool:
    headers = list(event.headers)
    last = {name: value.strip().lower() for name, value in headers}
    tokens = [token.strip() for token in last.get(b"connection", b"").split(b",")]
    # Anything else is an ordinary request, however long its answer takes.
    wanted = (
        event.method == b"GET" and last.get(b"upgrade") == b"websocket" and b"upgrade" in tokens
    )
    return wanted and not Handshake(headers, event.http_version.decode()).is_valid()


H11Protocol._check_protocol = _stay_with_http_1  # type: ignore[method-assign]  # pyright: ignore[reportPrivateUsage]
