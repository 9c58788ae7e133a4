"""The listening socket of a server, and the connections that outstay its shutdown.

Source: docs/serving.md.
"""

from __future__ import annotations

import math
import os
import socket
import stat

import trio

__all__ = ["WRITE_TIMEOUT_SECONDS", "cut_connections", "open_listener"]

WRITE_TIMEOUT_SECONDS = 20.0
# What the system can hold: 24 days.
MAX_MILLISECONDS = 2**31 - 1


async def open_listener(
    host: str, port: int, *, write_timeout: float = WRITE_TIMEOUT_SECONDS
) -> socket.socket:
    """A bound socket, not yet listening. Port 0 takes any free one. Raises OSError.

    Where the system can (Linux), its connections are given up `write_timeout` seconds after a
    peer that is written to stopped reading or vanished. Elsewhere the system's own, longer limits apply.
    """
    try:
        found = await trio.socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except UnicodeError:
        raise OSError("this is no name of a host") from None
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            # Accepted connections inherit it. Without it a reader that stops reading holds its
            # connection for ever, because the server does not give up on a send.
            milliseconds = min(math.ceil(write_timeout * 1000), MAX_MILLISECONDS)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
        listener.setblocking(False)
        listener.bind(address)
    except BaseException:
        listener.close()
        raise
    return listener


def cut_connections(port: int) -> None:
    """Break this process's accepted connections on a local port, whatever they are busy with.

    The server sends in a scope that no cancellation reaches; only a broken connection ends it.
    It hands out no connections, so they are found among the open files. Does nothing where the
    system does not list those.
    """
    try:
        numbers = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        return
    for number in numbers:
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                _cut(number, port)
        except OSError:
            # Closed meanwhile, no TCP socket, or without a peer: nothing to break.
            continue


def _cut(number: int, port: int) -> None:
    # A copy, so that what is looked at and what is broken are the same.
    with socket.socket(fileno=os.dup(number)) as copy:
        if copy.family not in (socket.AF_INET, socket.AF_INET6):
            return
        if copy.type == socket.SOCK_STREAM and copy.getsockname()[1] == port:
            copy.shutdown(socket.SHUT_RDWR)
