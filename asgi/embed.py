"""A runtime inside an application that runs on asyncio: trio in a thread, or as a guest of the loop.

Source: docs/hosts.md#asyncio.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, overload

from rungent.asgi.border import BorderClosed
from rungent.asgi.dispatch import AsgiApp
from rungent.asgi.host import called
from rungent.asgi.problems import refuse
from rungent.asgi.signals import SignalChain
from rungent.asgi.trio_run import TrioRun
from rungent.errors import ShuttingDown
from rungent.runtime import Runtime

__all__ = ["Embedded"]

logger = logging.getLogger("rungent")

P = ParamSpec("P")
T = TypeVar("T")


class Embedded:
    """Serves a runtime on trio for a host on asyncio: `async with Embedded(runtime)`.

    The host enters it on its event loop, most often in its lifespan; entering raises what keeps
    the runtime from starting. Trio runs in a thread of its own, or with `guest=True` on the
    host's loop. `app(…)` makes applications for the host's server, `call(…)` calls the runtime,
    `host(…)` calls the host from a tool.

    `signals` puts a call of `drain` before the handlers that the host's server has for SIGTERM and
    SIGINT, because servers end their requests before they tell the application. When the
    runtime crashes, the crash is logged, `on_crash(error)` is called on the loop, requests get
    503, and leaving raises the error. Leaving stops the runtime as `runtime.stop()` does;
    cancelled, it stops without grace. Source: docs/hosts.md#asyncio.
    """

    def __init__(
        self,
        runtime: Runtime,
        *,
        guest: bool = False,
        signals: bool = True,
        on_crash: Callable[[Exception], object] | None = None,
    ) -> None:
        self.runtime = runtime
        self._guest = guest
        self._signals = SignalChain(self.drain) if signals else None
        self._on_crash = on_crash
        self._crash: Exception | None = None
        self._life: TrioRun | None = None

    @property
    def crash(self) -> Exception | None:
        """What ended the runtime, if it crashed."""
        return self._crash

    # --- for the host ----------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._life is not None:
            raise RuntimeError("the runtime is embedded already")
        self._crash = None
        life = self._life = TrioRun(self.runtime, self._crashed)
        try:
            await life.start(guest=self._guest)
        except BaseException:
            self._life = None
            raise
        if self._signals is not None:
            self._signals.install()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        life = self._life
        assert life is not None, "left once for each time it is entered"
        if self._signals is not None:
            self._signals.remove()
        try:
            await life.end(graceful=not isinstance(error, asyncio.CancelledError))
        finally:
            self._life = None
        if self._crash is not None and error is None:
            raise self._crash

    def drain(self) -> None:
        """Begin to stop the runtime: new work is refused, event streams end, drives get their
        grace. Returns at once; safe in threads and signal handlers, and without effect when
        nothing is served."""
        if self._life is not None:
            self._life.drain()

    @overload
    async def call(
        self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    async def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    async def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function on the trio side, most often a method of the runtime.

        Returns or raises what it does. A cancelled caller cancels it and waits for its end.
        Raises ShuttingDown when nothing is served; after a crash, which is then its cause.
        """
        life = self._life
        if life is not None:
            with suppress(BorderClosed):
                return await life.border.to_trio(partial(called, function, *args, **kwargs))
            # It ends because of a crash, perhaps: then that is the reason to give.
            await life.settle()
        raise ShuttingDown() from self._crash

    async def iterate(
        self, function: Callable[P, AsyncIterator[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncGenerator[T]:
        """The items of one of the runtime's streams: `embedded.iterate(runtime.stream_events, …)`.

        Each item is fetched when it is asked for. Leaving the iterator affects nothing.
        """
        items = await self.call(function, *args, **kwargs)
        while True:
            try:
                item = await self.call(items.__anext__)
            except StopAsyncIteration:
                return
            yield item

    def app(self, app: AsgiApp) -> AsgiApp:
        """An application on trio as one that runs on the host's loop.

        Requests, answers and the client's disconnect cross one message at a time. Served at the
        root of a server, its lifespan enters and leaves this object; mounted, the host does that.
        """
        return _HostedApp(self, app)

    # --- for tools and factories -----------------------------------------------------------------

    @overload
    async def host(
        self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    async def host(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    async def host(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function of the host on its loop, sync or async; for code on the trio side.

        Returns or raises what it does. A cancelled caller cancels it and waits for its end.
        Raises RuntimeError when the host's loop is gone.
        """
        life = self._life
        try:
            if life is None:
                raise BorderClosed()
            return await life.border.to_host(function, *args, **kwargs)
        except BorderClosed:
            raise RuntimeError("the host's event loop cannot be reached") from None

    def _crashed(self, error: Exception) -> None:
        self._crash = error
        logger.error("the embedded runtime crashed", exc_info=error)
        if self._on_crash is not None:
            self._on_crash(error)


class _HostedApp:
    """An application on trio, for the host's server."""

    def __init__(self, embedded: Embedded, app: AsgiApp) -> None:
        self._embedded = embedded
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one connection."""
        if scope["type"] == "lifespan":
            return await self._live(receive, send)
        begun = False

        async def answer(message: Mapping[str, Any]) -> None:
            nonlocal begun
            begun = True
            await send(message)

        host = self._embedded.host
        try:
            await self._embedded.call(
                self._app, dict(scope), partial(host, receive), partial(host, answer)
            )
        except ShuttingDown as error:
            if begun or scope["type"] != "http":
                raise
            await refuse(error, send)
        return None

    async def _live(self, receive: Any, send: Any) -> None:
        stage = "startup"
        await receive()
        try:
            async with self._embedded:
                await send({"type": "lifespan.startup.complete"})
                await receive()
                stage = "shutdown"
        except Exception:
            reason = traceback.format_exc()
            told = {"type": f"lifespan.{stage}.failed", "message": reason}
            await send(told)  # noqa: ASYNC120 - the server takes it at once
            raise
        await send({"type": "lifespan.shutdown.complete"})
