"""Many readers of one run: what an idle one costs, how soon all hear, whom a stuck one hurts."""

from __future__ import annotations

import re
import selectors
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self, cast

import httpx
import trio
from rich.console import Group
from rich.table import Table

from tests.benchmarks.served import connected, cost_between, served, started

IDLE = 2_000
SHARING = 1_000
HEALTHY = 200
IDLE_SECONDS = 10
TOLD = 10
ROUNDS = 5
SILENCE_SECONDS = 30
_TIME = re.compile(rb'"delta":"([0-9.]+) ')


async def table() -> Group:
    """Idle followers, an event that all of them get, and a reader that stopped reading."""
    return Group(await _idle(), await _shared(), await _stuck())


async def _idle() -> Table:
    shown = Table(title=f"{IDLE:,} idle followers of one run on SQLite, {IDLE_SECONDS} s")
    for heading in ("KiB each", "CPU %", "queries/s", "until all have one event, ms"):
        shown.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        async with served(Path(folder) / "idle.db") as client:
            run_id = await started(client, "talk")
            with await trio.to_thread.run_sync(_following, client.base_url, run_id, 50):
                pass
            before = (await client.get("/cost")).json()
            followers = await trio.to_thread.run_sync(_following, client.base_url, run_id, IDLE)
            with followers:
                await trio.sleep(1)
                begun = (await client.get("/cost")).json()
                await trio.sleep(IDLE_SECONDS)
                ended = (await client.get("/cost")).json()
                delays = await _tell(client, followers)
    idle = cost_between(begun, ended)
    memory = (begun["kib"] - before["kib"]) / IDLE
    shown.add_row(
        f"{memory:.1f}",
        f"{idle['cpu'] / IDLE_SECONDS * 100:.2f}",
        f"{idle['queries'] / IDLE_SECONDS:.1f}",
        f"{max(delays):.0f}",
    )
    return shown


async def _shared() -> Table:
    shown = Table(title=f"One event for {SHARING:,} followers of its run, {TOLD} times; ms")
    for heading in ("p50", "p99", "last", "queries each time"):
        shown.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        async with served(Path(folder) / "shared.db") as client:
            run_id = await started(client, "talk")
            followers = await trio.to_thread.run_sync(_following, client.base_url, run_id, SHARING)
            with followers:
                await _tell(client, followers)
                before = (await client.get("/cost")).json()
                rounds = [await _tell(client, followers) for _ in range(TOLD)]
                after = (await client.get("/cost")).json()
    cuts = [statistics.quantiles(delays, n=100) for delays in rounds]
    shown.add_row(
        f"{statistics.median(cut[49] for cut in cuts):.0f}",
        f"{statistics.median(cut[98] for cut in cuts):.0f}",
        f"{statistics.median(max(delays) for delays in rounds):.0f}",
        f"{cost_between(before, after)['queries'] / TOLD:.0f}",
    )
    return shown


async def _stuck() -> Table:
    shown = Table(title=f"Length of a 1 MB run with {HEALTHY} readers; medians of {ROUNDS} rounds")
    shown.add_column("stuck readers", justify="right")
    for heading in ("run ms", "server's growth KiB"):
        shown.add_column(heading, justify="right")
    found: dict[int, list[tuple[float, float]]] = {0: [], 1: []}
    with tempfile.TemporaryDirectory() as folder:
        async with served(Path(folder) / "stuck.db") as client:
            await _burst(client, 0)
            for _ in range(ROUNDS):
                for stuck, seen in found.items():
                    seen.append(await _burst(client, stuck))
    for stuck, seen in found.items():
        took, grown = (statistics.median(column) for column in zip(*seen, strict=True))
        shown.add_row(str(stuck), f"{took * 1000:.0f}", f"{grown:,.0f}")
    return shown


async def _burst(client: httpx.AsyncClient, stuck: int) -> tuple[float, float]:
    run_id = await started(client, "burst")
    with ExitStack() as stack:
        for _ in range(stuck):
            stack.enter_context(connected(client.base_url, run_id, receive_buffer=4096))
        followers = await trio.to_thread.run_sync(_following, client.base_url, run_id, HEALTHY)
        stack.enter_context(followers)
        before = (await client.get("/cost")).json()
        began = time.perf_counter()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, followers.read_to_end)
            nursery.start_soon(client.post, "/tell")
        took = time.perf_counter() - began
        after = (await client.get("/cost")).json()
    return took, cost_between(before, after)["kib"]


async def _tell(client: httpx.AsyncClient, followers: Followers) -> list[float]:
    """Milliseconds from the model's word to each follower's socket."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.post, "/tell")
        delays = await trio.to_thread.run_sync(followers.hear)
    return delays


class Followers:
    """Sockets that read one run's stream, watched in one plain loop."""

    def __init__(self, sockets: Sequence[socket.socket]) -> None:
        self._sockets = sockets

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for plain in self._sockets:
            plain.close()

    def until(self, wanted: bytes) -> None:
        """Read until everybody has got these bytes."""
        for plain, data in self._arriving():
            data += plain.recv(65_536)
            if wanted in data:
                data[:] = b"!"

    def hear(self) -> list[float]:
        """Read until everybody has got one more word of the model; how late each was."""
        delays: list[float] = []
        for plain, data in self._arriving():
            data += plain.recv(65_536)
            if found := _TIME.search(data):
                delays.append((time.perf_counter() - float(found[1])) * 1000)
                data[:] = b"!"
        return delays

    def read_to_end(self) -> None:
        """Read until every response is complete."""
        for plain, data in self._arriving():
            read = plain.recv(1 << 18)
            if not read:
                raise RuntimeError("a stream broke off")
            data[:] = (data + read)[-5:]
            if data.endswith(b"0\r\n\r\n"):
                data[:] = b"!"

    def _arriving(self) -> Iterator[tuple[socket.socket, bytearray]]:
        """Who has something to read, until all have marked their data with "!"."""
        with selectors.DefaultSelector() as selector:
            for plain in self._sockets:
                selector.register(plain, selectors.EVENT_READ, bytearray())
            missing = len(self._sockets)
            while missing:
                ready = selector.select(SILENCE_SECONDS)
                if not ready:
                    raise RuntimeError(f"{missing} followers hear nothing")
                for key, _ in ready:
                    yield cast("socket.socket", key.fileobj), key.data
                    if key.data == b"!":
                        selector.unregister(key.fileobj)
                        missing -= 1


def _following(url: httpx.URL, run_id: str, count: int) -> Followers:
    """So many followers, each with everything that is stored."""
    followers = Followers([connected(url, run_id) for _ in range(count)])
    followers.until(b"model.started")
    return followers
