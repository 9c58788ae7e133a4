"""Tool calls over MCP: this adapter beside the official SDK's server with the same tool.

Each server is a process of its own behind the same web server; the client is the same.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import trio
from rich.table import Table

from tests.mcp.calling import META, MODERN, message
from tests.mcp.serving import free_socket

CALLS = 1_500
AT_ONCE = 16
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


async def table() -> Table:
    """Calls a second and memory of both servers."""
    shown = Table(title=f"tools/call, {CALLS:,} calls, one process")
    for heading in ("server", "MB idle", "MB after", "calls/s", f"calls/s, {AT_ONCE} at once"):
        shown.add_column(heading, justify="left" if heading == "server" else "right")
    for kind in ("ours", "official"):
        async with _served(kind) as (url, pid):
            idle = _memory(pid)
            async with httpx.AsyncClient(headers=HEADERS) as client:
                await _rate(client, url, 1, 100)
                alone = await _rate(client, url, 1, CALLS)
                together = await _rate(client, url, AT_ONCE, CALLS)
            after = _memory(pid)
        shown.add_row(kind, f"{idle:.0f}", f"{after:.0f}", f"{alone:,.0f}", f"{together:,.0f}")
    return shown


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


def _memory(pid: int) -> float:
    """Resident memory in MB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = re.search(r"^VmRSS:\s+(\d+)", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024
