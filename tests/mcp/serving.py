"""An ASGI application behind a real socket, for as long as a block lasts."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio
from hypercorn.config import Config
from hypercorn.trio import serve  # pyright: ignore[reportUnknownVariableType]

from rungent.testing.asgi import AsgiApp


@asynccontextmanager
async def served(app: AsgiApp, listener: socket.socket | None = None) -> AsyncGenerator[str]:
    """The address of the application, without a slash at its end."""
    listening = listener or free_socket()
    url = address(listening)
    config = Config()
    # The server closes it.
    config.bind = [f"fd://{listening.detach()}"]
    config.graceful_timeout = 0
    config.accesslog = None
    config.errorlog = None
    ending = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_serve, app, config, ending)
        try:
            yield url
        finally:
            ending.set()


async def _serve(app: AsgiApp, config: Config, ending: trio.Event) -> None:
    await serve(app, config, shutdown_trigger=ending.wait)


def free_socket() -> socket.socket:
    """A listening socket on a free port of this machine."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(64)
    return listening


def address(listening: socket.socket) -> str:
    """Where a socket is reached."""
    return f"http://127.0.0.1:{listening.getsockname()[1]}"
