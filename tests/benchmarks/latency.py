"""From a chunk of the provider's socket to the bytes of the event stream, over loopback."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, cast

import httpx
import trio
from rich.table import Table

from rungent import Agent, Identity, Runtime
from rungent.asgi import create_app
from rungent.asgi.serve import serve
from rungent.llm import OpenAICompatibleModel
from rungent.store import Store
from tests.benchmarks.workload import STORES, USER

CHUNKS = 400
GAP_SECONDS = 0.004


async def table() -> Table:
    """The table of this benchmark: one run, a chunk every few milliseconds."""
    shown = Table(title=f"Provider chunk to event-stream bytes, {CHUNKS} chunks, one run")
    shown.add_column("store")
    for heading in ("p50 ms", "p99 ms", "max ms"):
        shown.add_column(heading, justify="right")
    for name, factory in STORES.items():
        delays = sorted(await _measure(factory))
        cuts = statistics.quantiles(delays, n=100)
        shown.add_row(name, f"{cuts[49]:.2f}", f"{cuts[98]:.2f}", f"{delays[-1]:.2f}")
    return shown


async def _measure(factory: Callable[[], object]) -> list[float]:
    opened = cast("AbstractAsyncContextManager[Store]", factory())
    async with opened as store, trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listeners[0].socket.getsockname()[1]
        nursery.start_soon(partial(trio.serve_listeners, _provide, listeners))
        model = OpenAICompatibleModel(
            api_key=None, base_url=f"http://127.0.0.1:{port}/v1", model="clock"
        )
        runtime = Runtime(agents=[Agent(name="bench", instructions="-")], model=model, store=store)
        app = create_app(runtime, identity_resolver=_identity)
        url = await nursery.start(partial(serve, app, runtime=runtime, port=0))
        delays = [delay async for delay in _delays(url)]
        nursery.cancel_scope.cancel()
    return delays


def _identity(request: object) -> Identity:
    del request
    return USER


async def _provide(stream: trio.SocketStream) -> None:
    """A provider whose every chunk says when it was sent."""
    await stream.receive_some(65_536)
    await stream.send_all(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    )
    for _ in range(CHUNKS):
        await trio.sleep(GAP_SECONDS)
        delta = {"choices": [{"index": 0, "delta": {"content": f"{time.perf_counter()} "}}]}
        await stream.send_all(f"data: {json.dumps(delta)}\n\n".encode())
    finish: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    await stream.send_all(f"data: {json.dumps(finish)}\n\ndata: [DONE]\n\n".encode())
    await stream.aclose()


async def _delays(url: str) -> AsyncGenerator[float]:
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as client:
        session = (await client.post("/sessions", json={})).json()
        run = (await client.post(f"/sessions/{session['id']}/runs", json={"input": "go"})).json()
        async with client.stream("GET", f"/runs/{run['run_id']}/events/stream") as response:
            async for line in response.aiter_lines():
                received = time.perf_counter()
                if not line.startswith("data: ") or "message.delta" not in line:
                    continue
                # Joined chunks: the first one waited longest.
                sent = json.loads(line[6:])["data"]["delta"].split()
                for moment in sent:
                    yield (received - float(moment)) * 1000
