"""From a chunk of the provider's socket to the bytes of the event stream, over loopback."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
import trio

from rungent import Agent, Identity, Runtime
from rungent.asgi import create_app
from rungent.asgi.serve import serve
from rungent.llm import OpenAICompatibleModel
from tests.benchmarks.figures import Column, Sheet, Value
from tests.benchmarks.workload import STORES, USER

GAP_SECONDS = 0.004


@dataclass(frozen=True)
class Size:
    """Chunks of the one run."""

    chunks: int = 400


FULL = Size()
TINY = Size(chunks=10)


async def measure(size: Size = FULL) -> list[Sheet]:
    """One run, a chunk every few milliseconds."""
    rows: list[list[Value]] = []
    for name in STORES:
        delays = sorted(await _round(name, size.chunks))
        cuts = statistics.quantiles(delays, n=100)
        rows.append([name, cuts[49], cuts[98], delays[-1]])
    columns = [Column("store"), *(Column(f"{name} ms", 2) for name in ("p50", "p99", "max"))]
    title = f"Provider chunk to event-stream bytes, {size.chunks} chunks, one run"
    return [Sheet(title, columns, rows)]


async def _round(name: str, chunks: int) -> list[float]:
    async with STORES[name]() as store, trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listeners[0].socket.getsockname()[1]
        provide = partial(_provide, chunks)
        nursery.start_soon(partial(trio.serve_listeners, provide, listeners))
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


async def _provide(chunks: int, stream: trio.SocketStream) -> None:
    """A provider whose every chunk says when it was sent."""
    await stream.receive_some(65_536)
    await stream.send_all(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    )
    for _ in range(chunks):
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
