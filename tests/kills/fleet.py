"""Worker processes that come and go, and requests to whichever of them is alive."""

from __future__ import annotations

import itertools
import json
import random
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio

__all__ = ["Fleet", "Gone", "Refused", "Worker"]

ROOT = Path(__file__).parents[2]


class Gone(Exception):
    """The worker died before it answered."""


class Refused(Exception):
    """The worker answered with an error, which this names."""


@dataclass
class Worker:
    """One process. Replies are handed to the requests that wait for them."""

    process: trio.Process
    log: Path
    alive: bool = True
    over: trio.Event = field(default_factory=trio.Event)
    _sending: trio.Lock = field(default_factory=trio.Lock)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _waiting: dict[int, trio.MemorySendChannel[dict[str, Any]]] = field(
        default_factory=dict[int, trio.MemorySendChannel[dict[str, Any]]]
    )

    async def send(self, **request: Any) -> AsyncGenerator[dict[str, Any]]:
        """Send a request; gives what it replies, ending with the result. Raises Gone, Refused."""
        number = next(self._numbers)
        send, receive = trio.open_memory_channel[dict[str, Any]](1000)
        self._waiting[number] = send
        assert self.process.stdin is not None
        try:
            if not self.alive:
                raise Gone
            line = json.dumps({"id": number, **request}).encode() + b"\n"
            async with self._sending:
                await self.process.stdin.send_all(line)
            async for reply in receive:
                if "error" in reply:
                    raise Refused(reply["error"])
                yield reply
                if "result" in reply:
                    return
            raise Gone
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise Gone from None
        finally:
            self._waiting.pop(number, None)

    async def listen(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Read what the process says, until it is gone; started once it is ready."""
        assert self.process.stdout is not None
        rest = b""
        try:
            async for chunk in self.process.stdout:
                *whole, rest = (rest + chunk).split(b"\n")
                for message in map(json.loads, whole):
                    if "ready" in message:
                        task_status.started()
                    elif message["id"] in self._waiting:
                        await self._waiting[message["id"]].send(message)
        except trio.Cancelled:
            # Its end is waited for below, and while it starts nobody else knows of it.
            self.process.kill()
            raise
        finally:
            self.alive = False
            for waiting in self._waiting.values():
                waiting.close()
            with trio.CancelScope(shield=True):
                await self.process.wait()
            self.over.set()


class Fleet:
    """Some workers over one database, each replaced when it goes."""

    def __init__(
        self,
        kinds: list[str],
        folder: Path,
        postgres: str,
        choice: random.Random,
        *,
        effects_postgres: str,
    ) -> None:
        self._kinds = itertools.cycle(kinds)
        self._size = len(kinds)
        self._folder = folder
        self._postgres = postgres
        self._effects_postgres = effects_postgres
        self._choice = choice
        self._nursery: trio.Nursery | None = None
        self._changed = trio.Event()
        self.workers: list[Worker] = []
        self.started = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the processes for the length of the block."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            async with trio.open_nursery() as starting:
                for _ in range(self._size):
                    starting.start_soon(self.start)
            try:
                yield
            finally:
                nursery.cancel_scope.cancel()

    async def start(self) -> None:
        """Start one more worker; returns when it serves."""
        assert self._nursery is not None
        self.started += 1
        log = self._folder / f"worker-{self.started}.log"
        arguments = [next(self._kinds), str(self._folder), self._postgres, self._effects_postgres]
        with log.open("wb") as errors:
            process = await trio.lowlevel.open_process(
                [sys.executable, "-W", "error", "-m", "tests.kills.worker", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=ROOT,
            )
        worker = Worker(process, log)
        await self._nursery.start(worker.listen)
        self.workers.append(worker)
        self._changed.set()
        self._changed = trio.Event()

    async def kill(self) -> None:
        """Kill one without warning; another one is started, but nobody waits for it."""
        assert self._nursery is not None
        worker = await self._present()
        self.workers.remove(worker)
        worker.process.kill()
        await worker.over.wait()
        self._nursery.start_soon(self.start)

    async def replace(self) -> int:
        """Ask the oldest one to stop while another one starts; returns the exit code."""
        await self._present()
        worker = self.workers.pop(0)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.start)
            worker.process.send_signal(signal.SIGTERM)
            await worker.over.wait()
        assert worker.process.returncode is not None
        return worker.process.returncode

    @property
    def size(self) -> int:
        """How many workers there are, apart from the moments after a death."""
        return self._size

    async def ask(self, **request: Any) -> Any:
        """The result of a request to any worker. Raises Gone, Refused."""
        result = None
        async with aclosing(self.send(**request)) as replies:
            async for reply in replies:
                result = reply["result"]
        return result

    async def send(self, **request: Any) -> AsyncGenerator[dict[str, Any]]:
        """The replies of any worker, when there is one. Raises Gone, Refused."""
        worker = await self._present()
        async with aclosing(worker.send(**request)) as replies:
            async for reply in replies:
                yield reply

    async def _present(self) -> Worker:
        """Any worker; waits until there is one."""
        while not self.workers:
            await self._changed.wait()
        return self._choice.choice(self.workers)
