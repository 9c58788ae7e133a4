"""Where database work runs: threads of the store, a private asyncio loop, or the caller's own thread.

A job is a plain function of a synchronous SQLAlchemy engine. Whichever executor runs it, a job
that was begun is finished and its result delivered; nothing is ever abandoned half-way, and no
connection is thrown away because somebody stopped waiting. This is the only module that knows
asyncio. Source: docs/persistence.md#executors.
"""

from __future__ import annotations

import asyncio
import queue
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
Answer = Callable[[outcome.Outcome[T]], None]
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
    """Jobs for an ordinary engine, in threads of its own, as many as jobs were ever at once.

    A trip to them and back costs about two thirds of one to trio's worker threads.
    """

    def __init__(self, engine: Engine, connections: int) -> None:
        self._engine = engine
        # Waiting for a connection happens here, where it can be cancelled, not in the pool.
        self._limiter = trio.CapacityLimiter(connections)
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Nothing: threads are started when there is work for them."""

    async def run(self, job: Job[T]) -> T:
        """The result of the job."""
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            self._limiter.acquire_nowait()
        except trio.WouldBlock:
            await self._limiter.acquire()
        try:
            if self._limiter.borrowed_tokens > len(self._threads):
                self._add_thread()
            return await _answer(
                lambda answer: self._jobs.put(lambda: answer(outcome.capture(job, self._engine)))
            )
        finally:
            self._limiter.release()

    async def stop(self) -> None:
        """End the threads."""
        threads, self._threads = self._threads, []
        for _ in threads:
            self._jobs.put(None)
        for thread in threads:
            await trio.to_thread.run_sync(thread.join, limiter=self._limiter)

    def _add_thread(self) -> None:
        thread = threading.Thread(target=self._serve, name="rungent-store", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self) -> None:
        while (work := self._jobs.get()) is not None:
            work()


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
        kept: list[asyncio.Task[None]] = []

        def begin(answer: Answer[T]) -> None:
            async def perform() -> None:
                answer(await outcome.acapture(work))

            # The loop itself keeps only a weak reference to a task.
            loop.call_soon_threadsafe(lambda: kept.append(loop.create_task(perform())))

        return await _answer(begin)


async def _answer(begin: Callable[[Answer[T]], None]) -> T:
    """What `begin` causes to be answered from another thread, however long that takes."""
    waiter = trio.lowlevel.current_task()
    token = trio.lowlevel.current_trio_token()
    begin(lambda result: token.run_sync_soon(trio.lowlevel.reschedule, waiter, result))
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
