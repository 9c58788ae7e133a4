"""A served application as a process of its own, which says what it costs.

Followers are measured from outside: their own work must not count.
"""

from __future__ import annotations

import resource
import socket
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import trio
from sqlalchemy import create_engine

from rungent import Agent, Identity, Runtime
from rungent.asgi import create_app, serve
from rungent.llm import ModelCompleted, ModelRequest, RetryPolicy, TextDelta
from rungent.llm.port import ModelChunk
from rungent.sqlalchemy import SQLAlchemyStore
from tests.benchmarks.counting import counting
from tests.benchmarks.processes import ROOT, resident_kib

BURST_CHUNKS = 50
BURST_TEXT = "x" * 20_000
START_SECONDS = 30


class TalkingModel:
    """Says the time whenever it is told to; asked for a burst, it says much and ends."""

    def __init__(self) -> None:
        self.retry_policy = RetryPolicy()
        self._told = trio.Event()

    def tell(self) -> None:
        """Let every waiting reply go on."""
        self._told.set()
        self._told = trio.Event()

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelChunk]]:
        burst = "burst" in str(request.messages[-1])
        async with aclosing(self._burst() if burst else self._talk()) as chunks:
            yield chunks

    async def _talk(self) -> AsyncGenerator[ModelChunk]:
        while True:
            await self._told.wait()
            yield TextDelta(f"{time.perf_counter()} ")

    async def _burst(self) -> AsyncGenerator[ModelChunk]:
        await self._told.wait()
        for _ in range(BURST_CHUNKS):
            await trio.sleep(0.001)
            yield TextDelta(BURST_TEXT)
        yield ModelCompleted()


def _identify(request: object) -> Identity:
    del request
    return Identity("ada")


async def main(database: str) -> None:
    """Serve until a signal comes; the first line printed is the URL."""
    engine = create_engine(f"sqlite:///{database}")
    counts = counting(engine)
    store = SQLAlchemyStore(engine)
    await store.create_schema()
    model = TalkingModel()
    agent = Agent(name="planner", instructions="-")
    runtime = Runtime(
        agents=[agent], model=model, store=store, model_wait_progress_after_seconds=86_400
    )
    app = create_app(runtime, identity_resolver=_identify)

    @app.get("/cost")
    async def cost() -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction]
        await trio.lowlevel.checkpoint()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return {
            "kib": resident_kib(),
            "peak_kib": peak,
            "cpu": time.process_time(),
            "reads": counts.reads,
        }

    @app.post("/tell")
    async def tell() -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction]
        await trio.lowlevel.checkpoint()
        model.tell()
        return {}

    async with trio.open_nursery() as nursery:
        url = await nursery.start(partial(serve, app, runtime=runtime, port=0))
        print(url, flush=True)


@asynccontextmanager
async def served(database: Path) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of a new server over this database."""
    command = [sys.executable, "-m", "tests.benchmarks.served", str(database)]
    process = await trio.lowlevel.open_process(command, stdout=-1, cwd=ROOT)
    assert process.stdout is not None
    try:
        with trio.fail_after(START_SECONDS):
            url = (await process.stdout.receive_some()).decode().strip()
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
            yield client
    finally:
        process.terminate()
        with trio.move_on_after(30, shield=True):
            await process.wait()


async def started(client: httpx.AsyncClient, text: str) -> str:
    """A new run of a new session."""
    session = (await client.post("/sessions", json={})).json()
    run = await client.post(f"/sessions/{session['id']}/runs", json={"input": text})
    return str(run.json()["run_id"])


def connected(url: httpx.URL, run_id: str, *, receive_buffer: int | None = None) -> socket.socket:
    """A connection that has asked for the run's event stream."""
    plain = socket.socket()
    if receive_buffer is not None:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    plain.connect((url.host, url.port))
    plain.sendall(f"GET /runs/{run_id}/events/stream HTTP/1.1\r\nHost: bench\r\n\r\n".encode())
    return plain


def cost_between(before: dict[str, Any], after: dict[str, Any]) -> dict[str, float]:
    """What the server spent between two looks."""
    return {name: after[name] - before[name] for name in before}


if __name__ == "__main__":
    if hasattr(resource, "RLIMIT_NOFILE"):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    trio.run(main, sys.argv[1])
