"""Tool calls over MCP: this adapter beside the official SDK's server with the same tool.

Each server is a process of its own behind the same web server; the client is the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import trio

from tests.benchmarks.figures import Column, Sheet
from tests.benchmarks.processes import resident_kib
from tests.mcp.calling import META, MODERN, message
from tests.mcp.serving import free_socket

HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": MODERN,
    "Mcp-Method": "tools/call",
    "Mcp-Name": "add",
}
PARAMS: dict[str, Any] = {
    "name": "add",
    "arguments": {"a": 1, "b": 2},
    "_meta": {META + "protocolVersion": MODERN, META + "clientCapabilities": {}},
}
BODY = json.dumps(message("tools/call", PARAMS)).encode()


@dataclass(frozen=True)
class Size:
    """Calls of each pass, of the warm-up, and at once."""

    calls: int = 1_500
    warm_up: int = 100
    at_once: int = 16


FULL = Size()
TINY = Size(calls=4, warm_up=1, at_once=2)


async def measure(size: Size = FULL) -> list[Sheet]:
    """Calls a second and memory of both servers."""
    rows: list[list[str | float]] = []
    for kind in ("ours", "official"):
        async with _served(kind) as (url, pid):
            idle = resident_kib(str(pid)) / 1024
            async with httpx.AsyncClient(headers=HEADERS) as client:
                await _rate(client, url, 1, size.warm_up)
                alone = await _rate(client, url, 1, size.calls)
                together = await _rate(client, url, size.at_once, size.calls)
            rows.append([kind, idle, resident_kib(str(pid)) / 1024, alone, together])
    headings = ("server", "MB idle", "MB after", "calls/s", f"calls/s, {size.at_once} at once")
    title = f"tools/call, {size.calls:,} calls, one process"
    return [Sheet(title, [Column(heading) for heading in headings], rows)]


@asynccontextmanager
async def _served(kind: str) -> AsyncGenerator[tuple[str, int]]:
    with free_socket() as listening:
        port = listening.getsockname()[1]
    command = [sys.executable, "-m", "tests.benchmarks.mcp_server", kind, str(port)]
    process = await trio.lowlevel.open_process(command, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}/"
        with trio.fail_after(30):
            async with httpx.AsyncClient(headers=HEADERS) as client:
                await _first(client, url)
        yield url, process.pid
    finally:
        process.kill()
        with trio.move_on_after(5, shield=True):
            await process.wait()


async def _first(client: httpx.AsyncClient, url: str) -> None:
    """Wait until the server answers, and see that it answers rightly."""
    while True:
        try:
            answer = await client.post(url, content=BODY)
        except httpx.ConnectError:
            await trio.sleep(0.1)
            continue
        if answer.json()["result"]["isError"]:
            raise RuntimeError(answer.text)
        return


async def _rate(client: httpx.AsyncClient, url: str, at_once: int, calls: int) -> float:
    async def call() -> None:
        for _ in range(calls // at_once):
            answer = await client.post(url, content=BODY)
            answer.raise_for_status()

    began = time.perf_counter()
    async with trio.open_nursery() as nursery:
        for _ in range(at_once):
            nursery.start_soon(call)
    return calls / (time.perf_counter() - began)
