"""One period in which a runtime is served on trio beside an asyncio loop.

Trio runs in a thread of its own, or as a guest of the loop. Source: docs/hosts.md#asyncio.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, cast

import outcome
import trio

from rungent.asgi.border import Border, BorderClosed
from rungent.runtime import Runtime

__all__ = ["TrioRun"]

logger = logging.getLogger("rungent")

STOP_MARGIN_SECONDS = 10.0


class TrioRun:
    """One period of serving: the trio run, and how the loop follows it."""

    def __init__(self, runtime: Runtime, crashed: Callable[[Exception], None]) -> None:
        self._runtime = runtime
        self._crashed = crashed
        self._grace = runtime.options.shutdown_grace_seconds
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._over: asyncio.Future[outcome.Outcome[None]] = self._loop.create_future()
        self._draining = trio.Event()
        self._leaving = trio.Event()
        self._scope = trio.CancelScope()
        self._border: Border | None = None
        self._abandoned = False
        self._thread: threading.Thread | None = None

    @property
    def border(self) -> Border:
        """Raises BorderClosed until there is a trio side."""
        if self._border is None:
            raise BorderClosed()
        return self._border

    async def start(self, *, guest: bool) -> None:
        """Run trio until the runtime is served. Raises what prevents that."""
        # Nothing of the host's context may get into what outlives its requests.
        context = contextvars.Context()
        if guest:
            context.run(
                partial(
                    trio.lowlevel.start_guest_run,
                    self._run,
                    run_sync_soon_threadsafe=self._loop.call_soon_threadsafe,
                    run_sync_soon_not_threadsafe=self._loop.call_soon,
                    done_callback=self._ended,
                    host_uses_signal_set_wakeup_fd=True,
                )
            )
        else:
            # A daemon: a host that never leaves can still exit. Leases tell who goes on.
            self._thread = threading.Thread(
                target=context.run, args=(self._in_thread,), name="rungent", daemon=True
            )
            self._thread.start()
        either: list[asyncio.Future[Any]] = [self._ready, self._over]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.end(graceful=False)  # noqa: ASYNC102 - bounded inside
            raise
        if not self._ready.done():
            self._over.result().unwrap()

    def drain(self) -> None:
        """Begin to stop the runtime."""
        self._enter(self._draining.set)

    async def end(self, *, graceful: bool) -> None:
        """Stop and wait until that is over. A cancelled caller ends the grace and waits, too."""
        if graceful:
            self._enter(self._leaving.set)
        else:
            self._abandon()
        cancelled: asyncio.CancelledError | None = None
        deadline = self._loop.time() + self._grace + 2 * STOP_MARGIN_SECONDS
        while not self._over.done() and self._loop.time() < deadline:
            try:
                await asyncio.wait([self._over], timeout=deadline - self._loop.time())
            except asyncio.CancelledError as error:  # noqa: ASYNC103 - raised below
                cancelled = cancelled or error
                self._abandon()
        if not self._over.done():
            logger.error("the embedded runtime did not end in time")
        if cancelled is not None:
            raise cancelled

    async def settle(self) -> None:
        """Wait a moment for the end of a trio run that takes no more calls."""
        await asyncio.wait([self._over], timeout=STOP_MARGIN_SECONDS)

    def _enter(self, action: Callable[[], object]) -> None:
        with suppress(BorderClosed):
            self.border.enter(action)

    def _abandon(self) -> None:
        # Noted before the border is looked for, while the other side looks in the opposite order.
        self._abandoned = True
        self._enter(self._scope.cancel)

    # --- the trio side ---------------------------------------------------------------------------

    async def _run(self) -> None:
        with self._scope:
            async with trio.open_nursery() as nursery:
                border = self._border = Border(self._loop, nursery)
                if self._abandoned:
                    self._scope.cancel()
                try:
                    await nursery.start(self._runtime.serve)
                    border.tell_loop(partial(self._ready.set_result, None))
                    await self._until_left(nursery)
                finally:
                    border.close()
                nursery.cancel_scope.cancel()

    async def _until_left(self, nursery: trio.Nursery) -> None:
        stopped = trio.Event()

        async def stop() -> None:
            await self._draining.wait()
            await self._runtime.stop()
            stopped.set()

        nursery.start_soon(stop)
        await self._leaving.wait()
        self._draining.set()
        with trio.move_on_after(self._grace + STOP_MARGIN_SECONDS):
            await stopped.wait()

    def _in_thread(self) -> None:
        result = outcome.capture(trio.run, self._run)
        try:
            self._loop.call_soon_threadsafe(self._ended, result)
        except RuntimeError:
            logger.warning("the host's event loop was closed before the embedded runtime ended")

    def _ended(self, result: outcome.Outcome[None]) -> None:
        if self._thread is not None:
            # Telling this was the last thing it had to do.
            self._thread.join()
        if not isinstance(result, outcome.Error):
            self._over.set_result(result)
            return
        error = _reason(result.error)
        # First, because what the host does about a crash may fail. Nobody sees it before that.
        self._over.set_result(outcome.Error(error))
        if self._ready.done():
            self._crashed(error)


def _reason(error: BaseException) -> Exception:
    """The one error inside groups that nurseries made around it."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        if len(group.exceptions) == 1:
            return _reason(group.exceptions[0])
        return ExceptionGroup(group.message, [_reason(inner) for inner in group.exceptions])
    if isinstance(error, Exception):
        return error
    return RuntimeError("the trio run was ended from inside")
