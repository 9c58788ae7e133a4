"""Where database work runs: a worker thread, a private asyncio loop, or the caller's own thread.

A job is a plain function of a synchronous SQLAlchemy engine. Whichever executor runs it, a job
that was begun is finished and its result delivered; nothing is ever abandoned half-way, and no
connection is thrown away because somebody stopped waiting. This is the only module that knows
asyncio. Source: docs/persistence.md#executors.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

import outcome
import trio
from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession
from sqlalchemy.pool import QueuePool, SingletonThreadPool

from rungent.persistence.sqlite import in_memory

__all__ = ["AsyncioExecutor", "Executor", "InlineExecutor", "ThreadExecutor", "choose_executor"]

T = TypeVar("T")
Job = Callable[[Engine], T]
DEFAULT_CONNECTIONS = 5


class Executor(Protocol):
    """Runs jobs. `start` and `stop` bracket a period of use and may alternate any number of times.

    `run` may be called only in between. It is a checkpoint; once the job was begun, a
    cancellation waits for its end.
    """

    def start(self) -> None:
        """Get ready; takes a moment at most."""
        ...

    async def run(self, job: Job[T]) -> T:
        """The result of `job(engine)`, or the exception it raised."""
        ...

    async def stop(self) -> None:
        """End threads and loops."""
        ...


class ThreadExecutor:
    """Jobs for an ordinary engine, each in a worker thread of trio's."""

    def __init__(self, engine: Engine, connections: int) -> None:
        self._engine = engine
        # Waiting for a connection happens here, where it can be cancelled, not in the pool.
        self._limiter = trio.CapacityLimiter(connections)

    def start(self) -> None:
        """Nothing: trio keeps the threads."""

    async def run(self, job: Job[T]) -> T:
        """The result of the job."""
        return await trio.to_thread.run_sync(job, self._engine, limiter=self._limiter)

    async def stop(self) -> None:
        """Nothing: trio keeps the threads."""


class InlineExecutor:
    """Jobs on trio's own thread: blocks everything, so that time and order are exact in tests."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def start(self) -> None:
        """Nothing."""

    async def run(self, job: Job[T]) -> T:
        """The result of the job."""
        await trio.lowlevel.checkpoint()
        return job(self._engine)

    async def stop(self) -> None:
        """Nothing."""


class AsyncioExecutor:
    """Jobs for an asyncio engine, on one private event loop in a daemon thread.

    SQLAlchemy's `run_sync` lets the synchronous job use the engine there.
    """

    def __init__(self, engine: AsyncEngine, connections: int) -> None:
        self._engine = engine.sync_engine
        # Never opened; it is SQLAlchemy's public way to run a synchronous function on a loop.
        self._session = AsyncSession(engine)
        self._limiter = trio.CapacityLimiter(connections)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread and wait until its loop runs."""
        ready = threading.Event()
        self._thread = threading.Thread(
            target=self._serve, args=(ready,), name="rungent-store", daemon=True
        )
        self._thread.start()
        ready.wait()

    async def run(self, job: Job[T]) -> T:
        """The result of the job. Blocking calls in it are awaited by the loop."""
        async with self._limiter:
            return await self._call(lambda: self._session.run_sync(lambda _: job(self._engine)))

    async def stop(self) -> None:
        """End the loop and join the thread."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        self._loop = self._thread = None
        loop.call_soon_threadsafe(loop.stop)
        await trio.to_thread.run_sync(thread.join, limiter=self._limiter)

    def _serve(self, ready: threading.Event) -> None:
        try:
            with asyncio.Runner() as runner:
                loop = self._loop = runner.get_loop()
                loop.call_soon(ready.set)
                loop.run_forever()
        finally:
            # Also without a loop: whoever waits must find out instead of hanging.
            ready.set()

    async def _call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run the coroutine on the loop and wait for it, whatever happens to the caller."""
        loop = self._loop
        if loop is None:
            raise RuntimeError("the store is closed")
        await trio.lowlevel.checkpoint_if_cancelled()
        waiter = trio.lowlevel.current_task()
        token = trio.lowlevel.current_trio_token()
        kept: list[asyncio.Task[None]] = []

        async def perform() -> None:
            result = await outcome.acapture(work)
            token.run_sync_soon(trio.lowlevel.reschedule, waiter, result)

        # The loop itself keeps only a weak reference to a task.
        loop.call_soon_threadsafe(lambda: kept.append(loop.create_task(perform())))
        result: T = await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.FAILED)
        return result


def choose_executor(engine: Engine | AsyncEngine, *, inline: bool) -> Executor:
    """The executor for an engine. ValueError when the two cannot work together."""
    if isinstance(engine, AsyncEngine):
        if inline:
            raise ValueError("inline needs a synchronous engine")
        return AsyncioExecutor(engine, _connections(engine.sync_engine))
    if inline:
        return InlineExecutor(engine)
    connection_per_thread = isinstance(engine.pool, SingletonThreadPool)
    if connection_per_thread:
        raise ValueError("a database in memory has one connection a thread: pass a StaticPool")
    return ThreadExecutor(engine, _connections(engine))


def _connections(engine: Engine) -> int:
    if in_memory(engine):
        return 1
    size = engine.pool.size() if isinstance(engine.pool, QueuePool) else 0
    return size if size > 0 else DEFAULT_CONNECTIONS
