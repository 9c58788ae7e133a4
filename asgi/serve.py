"""Serving an application over HTTP: the runtime outside, the server inside, an orderly end.

A crash of the runtime ends the server and the process with the real exception. A stop tells the
runtime first, so that open streams end by themselves. Source: docs/serving.md.
"""

from __future__ import annotations

import importlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import trio
from hypercorn.trio import serve as serve_http  # pyright: ignore[reportUnknownVariableType]
from hypercorn.typing import ASGIFramework

from rungent.asgi.dispatch import AsgiApp
from rungent.asgi.exchange import Orderly
from rungent.asgi.server_config import ServerConfig
from rungent.asgi.sockets import WRITE_TIMEOUT_SECONDS, cut_connections, open_listener
from rungent.asgi.tls import Tls
from rungent.runtime import Runtime

__all__ = ["load_app", "serve", "url_of"]


async def serve(
    app: AsgiApp,
    *,
    runtime: Runtime,
    host: str = "127.0.0.1",
    port: int = 8000,
    graceful_timeout: float = 5,
    write_timeout: float = WRITE_TIMEOUT_SECONDS,
    tls: Tls | None = None,
    shutdown: trio.Event | None = None,
    listener: socket.socket | None = None,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve `runtime` and `app` until SIGTERM, SIGINT or `runtime.stop()`.

    Reports the URL it listens on once requests are answered; port 0 takes any free port. Then
    new connections are refused, the runtime stops without cancelling a run, open streams end with
    a comment that asks clients to come back, and whatever is still connected after
    `graceful_timeout` is cut off. With `shutdown` that event takes the place of the signals; a
    bound `listener` takes that of `host`, `port` and `write_timeout`, and is closed at the end.

    A reader that takes nothing of what is sent to it for `write_timeout` seconds is cut off,
    where the system can do that (Linux). With `tls` the server speaks HTTPS.

    Raises OSError when the address cannot be bound or a file of `tls` cannot be used; in an ExceptionGroup whatever ends the
    runtime or prevents the application's start. Cancelling stops everything without grace.
    Source: docs/serving.md.
    """
    secure = None if tls is None else tls.context()
    with ExitStack() as stack:
        stopping = trio.Event()
        watch = partial(_await_event, shutdown)
        if shutdown is None:
            signals = stack.enter_context(trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT))
            watch = partial(_await_signal, signals)
        listener = stack.enter_context(
            listener or await open_listener(host, port, write_timeout=write_timeout)
        )
        url = url_of(host, listener.getsockname()[1], secure=tls is not None)
        config = ServerConfig(listener, graceful_timeout, secure)
        server = _Server(_Answering(Orderly(app)), config, listener, stopping)
        async with trio.open_nursery() as nursery:
            await nursery.start(_serve_runtime, runtime, server)
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
    if not all(name.split(".")):
        raise ValueError(f"{name!r} is not the whole name of a module")
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
    runtime: Runtime, server: _Server, *, task_status: trio.TaskStatus[None]
) -> None:
    await runtime.serve(task_status=task_status)
    # Perhaps somebody else stopped it: a server without it is of no use.
    server.stopping.set()
    server.useless.set()


async def _stop_runtime(runtime: Runtime, stopping: trio.Event) -> None:
    await stopping.wait()
    await runtime.stop()


async def _await_event(event: trio.Event | None) -> None:
    assert event is not None
    await event.wait()


async def _await_signal(signals: AsyncIterator[int]) -> None:
    async for _ in signals:
        return


class _Answering:
    """The application, and whether it answers anybody now."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app
        self._count = 0
        self._done = trio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        self._count += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._count -= 1
            self._done.set()

    async def wait_idle(self) -> None:
        """Wait until everything that was asked is answered."""
        while self._count:
            self._done = trio.Event()
            await self._done.wait()


@dataclass(frozen=True, slots=True)
class _Server:
    app: _Answering
    config: ServerConfig
    listener: socket.socket
    stopping: trio.Event
    useless: trio.Event = field(default_factory=trio.Event)

    async def run(
        self, watch: Callable[[], Awaitable[None]], *, task_status: trio.TaskStatus[list[str]]
    ) -> None:
        """Serve until `stopping` is set or `watch` returns, then end within the grace."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._stop_after, watch)
            nursery.start_soon(self._cut_off)
            await serve_http(
                cast("ASGIFramework", self.app),
                self.config,
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
            with trio.move_on_after(self.config.graceful_timeout):
                await self.useless.wait()
                await self.app.wait_idle()
            # What is left now are clients that keep a connection for later, or do not read.
        finally:
            # Also when all of this is cancelled, by a crash for example.
            cut_connections(port)


def url_of(host: str, port: int, *, secure: bool) -> str:
    """How clients of this machine reach the server."""
    name = f"[{host}]" if ":" in host else host
    return f"{'https' if secure else 'http'}://{name}:{port}"
