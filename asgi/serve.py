"""Serving an application over HTTP: the runtime outside, the server inside, an orderly end.

A crash of the runtime ends the server and the process with the real exception. A stop tells the
runtime first, so that open streams end by themselves. Source: docs/serving.md.
"""

from __future__ import annotations

import importlib
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import cast

import trio
from hypercorn.config import Config, Sockets
from hypercorn.trio import serve as serve_http  # pyright: ignore[reportUnknownVariableType]
from hypercorn.typing import ASGIFramework
from typing_extensions import override

from rungent.asgi.dispatch import AsgiApp
from rungent.asgi.sockets import cut_connections, open_listener
from rungent.runtime import Runtime

__all__ = ["load_app", "serve"]

NO_LIMIT = 10**9
access_log = logging.getLogger("hypercorn.access")
error_log = logging.getLogger("hypercorn.error")


async def serve(
    app: AsgiApp,
    *,
    runtime: Runtime,
    host: str = "127.0.0.1",
    port: int = 8000,
    graceful_timeout: float = 5,
    shutdown: trio.Event | None = None,
    listener: socket.socket | None = None,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve `runtime` and `app` until SIGTERM, SIGINT or `runtime.stop()`.

    Reports the URL it listens on once requests are answered; port 0 takes any free port. Then
    new connections are refused, the runtime stops without cancelling a run, open streams end with
    a comment that asks clients to come back, and whatever is still connected after
    `graceful_timeout` is cut off. With `shutdown` that event takes the place of the signals; a
    bound `listener` takes that of `host` and `port`, and is closed at the end.

    Raises OSError when the address cannot be bound; in an ExceptionGroup whatever ends the
    runtime or prevents the application's start. Cancelling stops everything without grace.
    Source: docs/serving.md.
    """
    with ExitStack() as stack:
        stopping = trio.Event()
        watch = partial(_await_event, shutdown)
        if shutdown is None:
            signals = stack.enter_context(trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT))
            watch = partial(_await_signal, signals)
        listener = stack.enter_context(listener or await open_listener(host, port))
        url = _url(host, listener.getsockname()[1])
        server = _Server(app, listener, graceful_timeout, stopping)
        async with trio.open_nursery() as nursery:
            await nursery.start(_serve_runtime, runtime, stopping)
            nursery.start_soon(_stop_runtime, runtime, stopping)
            await nursery.start(server.run, watch)
            task_status.started(url)


def load_app(target: str) -> object:
    """The attribute that `module:attribute` names; the current directory is importable.

    Raises ValueError with a text for users when there is no such thing; what the module itself
    raises passes.
    """
    name, _, attribute = target.partition(":")
    if not name or not attribute:
        raise ValueError(f"{target!r} must have the form module:attribute")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: object = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name + ".").startswith(error.name + "."):
            raise
        raise ValueError(f"there is no module {name!r}") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ValueError(f"{name!r} has no attribute {attribute!r}")
        found = cast("object", getattr(found, part))
    return found


async def _serve_runtime(
    runtime: Runtime, stopping: trio.Event, *, task_status: trio.TaskStatus[None]
) -> None:
    await runtime.serve(task_status=task_status)
    # Somebody else stopped it: a server without it is of no use.
    stopping.set()


async def _stop_runtime(runtime: Runtime, stopping: trio.Event) -> None:
    await stopping.wait()
    await runtime.stop()


async def _await_event(event: trio.Event | None) -> None:
    assert event is not None
    await event.wait()


async def _await_signal(signals: AsyncIterator[int]) -> None:
    async for _ in signals:
        return


class _Config(Config):
    """The server's settings, and the one socket it serves."""

    def __init__(self, listener: socket.socket, graceful_timeout: float) -> None:
        super().__init__()
        self._listener = listener
        self.graceful_timeout = graceful_timeout
        # Its HTTP/2 buffers without bound for a reader that does not read.
        self.alpn_protocols = ["http/1.1"]
        self.keep_alive_max_requests = NO_LIMIT
        self.include_server_header = False
        # Loggers of the host's, not handlers of its own. Access lines cost too much to make them
        # for nobody.
        self.errorlog = error_log
        self.accesslog = access_log if access_log.isEnabledFor(logging.INFO) else None

    @override
    def create_sockets(self) -> Sockets:
        return Sockets([], [self._listener], [])


@dataclass(frozen=True, slots=True)
class _Server:
    app: AsgiApp
    listener: socket.socket
    graceful_timeout: float
    stopping: trio.Event

    async def run(
        self, watch: Callable[[], Awaitable[None]], *, task_status: trio.TaskStatus[list[str]]
    ) -> None:
        """Serve until `stopping` is set or `watch` returns, then end within the grace."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._stop_after, watch)
            nursery.start_soon(self._cut_off)
            await serve_http(
                cast("ASGIFramework", self.app),
                _Config(self.listener, self.graceful_timeout),
                shutdown_trigger=self.stopping.wait,
                task_status=task_status,
                mode="asgi",
            )
            self.stopping.set()
            nursery.cancel_scope.cancel()

    async def _stop_after(self, watch: Callable[[], Awaitable[None]]) -> None:
        await watch()
        self.stopping.set()

    async def _cut_off(self) -> None:
        port = int(self.listener.getsockname()[1])
        try:
            await self.stopping.wait()
            await trio.sleep(self.graceful_timeout)
        finally:
            # Also when all of this is cancelled, by a crash for example.
            cut_connections(port)


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
