"""Several worker processes behind one listening socket, kept alive until told to stop.

Each worker serves the same application with a runtime of its own; they share the database and
nothing else, so any of them answers, follows or cancels any run. Source: docs/serving.md#workers.
"""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import AsyncIterator, Sequence

import trio

__all__ = ["WorkersFailed", "serve_workers"]

logger = logging.getLogger("rungent")

RESTART_SECONDS = 1.0
QUICK_SECONDS = 5.0
QUICK_DEATHS = 3
KILL_SECONDS = 10.0


class WorkersFailed(Exception):
    """Workers die as soon as they start; restarting them is of no use."""


async def serve_workers(
    command: Sequence[str], count: int, listener: socket.socket, *, grace_seconds: float
) -> None:
    """Run `count` processes of `command` until SIGTERM or SIGINT, restarting those that die.

    The workers inherit `listener`. When told to stop, all are told so, and those that are still
    there after `grace_seconds` and a margin are killed. Raises WorkersFailed when a worker dies
    three times in a row within seconds. Cancelling kills the workers.
    """
    keeper = _Keeper(command, listener)
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with trio.open_nursery() as nursery:
            for _ in range(count):
                nursery.start_soon(keeper.keep, nursery.cancel_scope)
            nursery.start_soon(keeper.stop_after, signals, grace_seconds + KILL_SECONDS)
            await keeper.over.wait()
            nursery.cancel_scope.cancel()
    if keeper.failed:
        raise WorkersFailed("the workers end as soon as they start")


class _Keeper:
    def __init__(self, command: Sequence[str], listener: socket.socket) -> None:
        self._command = list(command)
        self._fd = listener.fileno()
        self._processes: set[trio.Process] = set()
        self._told = trio.Event()
        self.failed = False
        self.over = trio.Event()

    async def keep(self, scope: trio.CancelScope) -> None:
        """One worker, and the ones that take its place."""
        deaths = 0
        while not self._told.is_set():
            begun = trio.current_time()
            code = await self._run_one()
            if self._told.is_set():
                return
            quick = trio.current_time() - begun < QUICK_SECONDS
            deaths = deaths + 1 if quick else 1
            logger.error("a worker ended with code %s", code)
            if deaths >= QUICK_DEATHS:
                self.failed = True
                scope.cancel()
            await trio.sleep(RESTART_SECONDS)

    async def _run_one(self) -> int:
        process = await trio.lowlevel.open_process(self._command, pass_fds=[self._fd])
        self._processes.add(process)
        try:
            return await process.wait()
        finally:
            self._processes.discard(process)
            if process.returncode is None:
                process.kill()
            if not self._processes and self._told.is_set():
                self.over.set()

    async def stop_after(self, signals: AsyncIterator[int], limit: float) -> None:
        """Pass the first signal on to every worker; kill what is left after `limit` seconds."""
        async for _ in signals:
            self._told.set()
            for process in self._processes:
                process.send_signal(signal.SIGTERM)
            break
        if not self._processes:
            self.over.set()
        await trio.sleep(limit)
        self.over.set()
