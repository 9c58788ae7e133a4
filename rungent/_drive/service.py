"""Serving a runtime: what lives as long as it is served, and stopping it in order.

Source: docs/runtime.md#serving.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import cast

import trio

from rungent._drive.closing import Closer
from rungent._drive.journal import Desk
from rungent._drive.supervisor import Supervisor
from rungent.llm.port import Model
from rungent.store.feed import EventFeed

__all__ = ["Service"]

logger = logging.getLogger("rungent")

WATCH_RETRY_SECONDS = 1.0
STOP_MARGIN_SECONDS = 10.0


class Service:
    """The long-lived tasks of one runtime: drives, sweep, the store's watcher, the model."""

    def __init__(
        self, desk: Desk, feed: EventFeed, supervisor: Supervisor, closer: Closer, model: Model
    ) -> None:
        self._desk = desk
        self._feed = feed
        self._supervisor = supervisor
        self._closer = closer
        self._model = model
        self._scope: trio.CancelScope | None = None
        self._over = trio.Event()
        self._entered: AbstractAsyncContextManager[None] | None = None

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until `stop()`. Raises RuntimeError when served already."""
        if self._scope is not None:
            raise RuntimeError("the runtime is served already")
        self._scope, self._over = trio.CancelScope(), trio.Event()
        self._feed.open()
        try:
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(self._desk.store.open())
                await self._enter_model(stack)
                with self._scope:
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(self._watch)
                        await nursery.start(self._supervisor.run)
                        nursery.start_soon(self._closer.run)
                        task_status.started()
        finally:
            self._scope = None
            self._feed.close()
            self._over.set()

    async def stop(self, grace_seconds: float | None) -> None:
        """End streams, let drives finish or give them back, and wait until `serve` has ended."""
        scope = self._scope
        if scope is None:
            return
        grace = grace_seconds
        if grace is None:
            grace = self._desk.options.shutdown_grace_seconds
        deadline = trio.current_time() + grace
        self._feed.close()
        over = self._over
        try:
            await self._supervisor.drain(grace)
            with trio.CancelScope(deadline=deadline):
                await self._closer.settle()
        finally:
            # A stop that is cut short is one without grace.
            scope.cancel()
        await over.wait()

    async def enter(self) -> None:
        """Serve until `leave`."""
        self._entered = self._serving()
        await self._entered.__aenter__()

    async def leave(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        """Stop what `enter` began; the body's own error passes as it is."""
        entered, self._entered = self._entered, None
        assert entered is not None, "left once for each time it is entered"
        return await entered.__aexit__(kind, error, trace)

    @asynccontextmanager
    async def _serving(self) -> AsyncGenerator[None]:
        failed: Exception | None = None
        async with trio.open_nursery() as nursery:
            await nursery.start(self.serve)
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised again below
                # Carried over the nursery's edge as a value, which would wrap it in a group.
                failed = error
            finally:
                limit = self._desk.options.shutdown_grace_seconds + STOP_MARGIN_SECONDS
                with trio.move_on_after(limit, shield=True):
                    await self.stop(None)
        if failed is not None:
            raise failed

    async def _enter_model(self, stack: AsyncExitStack) -> None:
        if isinstance(self._model, AbstractAsyncContextManager):
            await stack.enter_async_context(
                cast("AbstractAsyncContextManager[object]", self._model)
            )

    def _woken(self, run_id: str | None) -> None:
        if self._desk.announcer.heard(run_id):
            self._supervisor.suspect(run_id)

    async def _watch(self) -> None:
        """Learn of events that other processes commit."""
        options = self._desk.options
        while True:
            try:
                await self._desk.store.watch(self._woken, options.follow_poll_seconds)
            except Exception:
                logger.exception("watching the store failed")
                self._feed.notify(None)
            await trio.sleep(WATCH_RETRY_SECONDS)
