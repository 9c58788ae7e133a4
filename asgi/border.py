"""Calls over the border between an asyncio loop and a trio run, in both directions.

A call is one task on the other side. It takes the caller's context variables with it, hands back
its result or its exception, and ends before its caller goes on: also when that is cancelled, which
cancels the task. Nothing is buffered. Source: docs/hosts.md#asyncio.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import outcome
import trio

from rungent.asgi.host import called

__all__ = ["Border", "BorderClosed"]


class BorderClosed(Exception):
    """There is nobody on the other side, or not any more."""


class Border:
    """A loop and a nursery that call each other. Made on the trio side."""

    def __init__(self, loop: asyncio.AbstractEventLoop, nursery: trio.Nursery) -> None:
        self._loop = loop
        self._nursery = nursery
        self._token = trio.lowlevel.current_trio_token()
        self._guests: set[_Guest] = set()
        self._open = True

    def close(self) -> None:
        """Cancel every call from the loop and take no more; for the trio side."""
        self._open = False
        for guest in self._guests:
            guest.scope.cancel()

    def enter(self, action: Callable[[], object]) -> None:
        """Run `action` soon on the trio side; safe in threads and signal handlers.

        Raises BorderClosed when the trio run has ended.
        """
        try:
            self._token.run_sync_soon(action)
        except trio.RunFinishedError:
            raise BorderClosed() from None

    async def to_trio(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """What `work` returns or raises, awaited in a trio task; for tasks of the loop.

        Raises BorderClosed when the trio side does not begin it, or gives it up.
        """
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError("an embedded runtime is used on the event loop that entered it")
        guest = _Guest(self, work, self._loop.create_future())
        self.enter(guest.begin)
        cancelled: asyncio.CancelledError | None = None
        while not guest.over.done():
            try:
                # It waits and leaves the future alone, whoever is cancelled.
                await asyncio.wait([guest.over])
            except asyncio.CancelledError as error:  # noqa: ASYNC103 - raised below
                cancelled = cancelled or error
                with suppress(BorderClosed):
                    self.enter(guest.scope.cancel)
        if cancelled is not None:
            raise cancelled
        return guest.over.result().unwrap()

    async def to_host(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What `function` returns or raises on the loop, sync or async; for trio tasks.

        Raises BorderClosed when the loop is gone or cancels it on its own.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        errand = _Errand(self, partial(called, function, *args, **kwargs))
        try:
            self._loop.call_soon_threadsafe(errand.begin)
        except RuntimeError:
            raise BorderClosed() from None
        return await trio.lowlevel.wait_task_rescheduled(errand.abort)

    # --- for guests and errands ------------------------------------------------------------------

    def admit(self, guest: _Guest) -> bool:
        """Begin a guest's task in the guest's context, unless the border is closed."""
        if self._open:
            self._guests.add(guest)
            guest.context.run(self._nursery.start_soon, guest.stay)
        return self._open

    def leave(self, guest: _Guest) -> None:
        """Tell the loop that a guest's task is over."""
        self._guests.discard(guest)
        self.tell_loop(guest.arrive)

    def tell_loop(self, action: Callable[[], object]) -> None:
        """Run `action` soon on the loop; nothing when that is closed."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(action)

    def begin_task(
        self, work: Callable[[], Awaitable[Any]], context: contextvars.Context
    ) -> asyncio.Task[Any]:
        """A task of the loop."""
        return self._loop.create_task(called(work), context=context)


class _Guest:
    """One call from the loop into trio."""

    def __init__(
        self,
        border: Border,
        work: Callable[[], Awaitable[Any]],
        over: asyncio.Future[outcome.Outcome[Any]],
    ) -> None:
        self.context = contextvars.copy_context()
        self.scope = trio.CancelScope()
        self.over = over
        self._border = border
        self._work = work
        self._result: outcome.Outcome[Any] = outcome.Error(BorderClosed())

    def begin(self) -> None:
        if not self._border.admit(self):
            self._border.leave(self)

    async def stay(self) -> None:
        try:
            with self.scope:
                self._result = outcome.Value(await self._work())
        except Exception as error:  # noqa: BLE001 - raised again on the other side
            self._result = outcome.Error(error)
        finally:
            self._border.leave(self)

    def arrive(self) -> None:
        self.over.set_result(self._result)


class _Errand:
    """One call from trio into the loop."""

    def __init__(self, border: Border, work: Callable[[], Awaitable[Any]]) -> None:
        self._border = border
        self._work = work
        self._waiter = trio.lowlevel.current_task()
        self._context = contextvars.copy_context()
        self._task: asyncio.Task[Any] | None = None
        self._raise_cancel: Callable[[], Any] | None = None

    def begin(self) -> None:
        self._task = self._border.begin_task(self._work, self._context)
        self._task.add_done_callback(self._done)

    def abort(self, raise_cancel: Callable[[], Any]) -> trio.lowlevel.Abort:
        self._raise_cancel = raise_cancel
        self._border.tell_loop(self._cancel)
        return trio.lowlevel.Abort.FAILED

    def _cancel(self) -> None:
        assert self._task is not None, "begun before, in the order of the loop"
        self._task.cancel()

    def _done(self, task: asyncio.Task[Any]) -> None:
        result: outcome.Outcome[Any] = outcome.Error(BorderClosed())
        if not task.cancelled():
            error = task.exception()
            if error is None:
                result = outcome.Value(task.result())
            elif isinstance(error, Exception):
                result = outcome.Error(error)
        with suppress(BorderClosed):
            self._border.enter(partial(self._resume, task.cancelled(), result))

    def _resume(self, cancelled: bool, result: outcome.Outcome[Any]) -> None:
        if cancelled and self._raise_cancel is not None:
            result = outcome.capture(self._raise_cancel)
        trio.lowlevel.reschedule(self._waiter, result)
