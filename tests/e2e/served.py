"""A served demo as a process of its own, spoken to over HTTP."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import trio

API = "/api/assistant"
DEADLINE_SECONDS = 60


@dataclass(frozen=True)
class Demo:
    """A running demo: its process and a client for it."""

    process: trio.Process
    client: httpx.AsyncClient
    printed: str

    async def run(self, text: str) -> tuple[str, list[dict[str, Any]]]:
        """Send `text` in a new session; the run's id, and its events as they were streamed."""
        session = (await self.client.post(f"{API}/sessions", json=SESSION)).json()
        response = await self.client.post(
            f"{API}/sessions/{session['id']}/runs", json={"input": text}
        )
        assert response.status_code == 202, response.text
        run_id: str = response.json()["run_id"]
        return run_id, await self.events(run_id)

    async def events(self, run_id: str, after: int = 0) -> list[dict[str, Any]]:
        """What the event stream sends until it ends."""
        path = f"{API}/runs/{run_id}/events/stream?after_seq={after}"
        async with self.client.stream("GET", path) as response:
            assert response.status_code == 200
            body = b"".join([chunk async for chunk in response.aiter_bytes()])
        frames = re.findall(r"^data: (.*)$", body.decode(), re.MULTILINE)
        return [json.loads(frame) for frame in frames]

    async def day_of(self, place: str) -> int | None:
        """The day on which the trip has a place now."""
        trip = (await self.client.get("/trip")).json()
        for day in trip["days"]:
            if any(shown["name"] == place for shown in day["places"]):
                number: int = day["number"]
                return number
        return None

    def end(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        self.process.send_signal(number)


SESSION = {"resource": {"trip_id": "tokyo"}}


@asynccontextmanager
async def demo(database: Path, *options: str) -> AsyncGenerator[Demo]:
    """`rungent demo` on a free port, ready when the body begins; killed when it ends."""
    command = [sys.executable, "-m", "rungent", "demo", "--db", str(database), "--port", "0"]
    process = await trio.lowlevel.open_process(
        [*command, *options], stdout=-1, env={**_environment()}
    )
    try:
        with trio.fail_after(DEADLINE_SECONDS):
            printed = await _printed_until_ready(process)
            url = re.search(r"http://[0-9.]+:\d+", printed)
            assert url is not None, printed
            timeout = httpx.Timeout(DEADLINE_SECONDS)
            async with httpx.AsyncClient(
                base_url=url[0], trust_env=False, timeout=timeout
            ) as client:
                yield Demo(process, client, printed)
    finally:
        process.kill()
        with trio.move_on_after(10, shield=True):
            await process.wait()


def _environment() -> dict[str, str]:
    hidden = ("OPENAI_", "HTTP", "http", "ALL_PROXY", "all_proxy")
    return {k: v for k, v in os.environ.items() if not k.startswith(hidden)}


async def _printed_until_ready(process: trio.Process) -> str:
    assert process.stdout is not None
    printed = b""
    while b"/trip" not in printed:
        chunk = await process.stdout.receive_some(4096)
        assert chunk, f"the demo ended: {printed.decode()}"
        printed += chunk
    return printed.decode()
