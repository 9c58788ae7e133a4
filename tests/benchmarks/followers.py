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
from dataclasses import dataclass
from pathlib import Path
from typing import Self, cast

import httpx
import trio

from tests.benchmarks.figures import Column, Sheet
from tests.benchmarks.served import connected, cost_between, served, started

SILENCE_SECONDS = 30
_TIME = re.compile(rb'"delta":"([0-9.]+) ')


@dataclass(frozen=True)
class Size:
    """Followers of each part, seconds of silence, and repetitions."""

    idle: int = 2_000
    idle_seconds: float = 10
    sharing: int = 1_000
    told: int = 10
    healthy: int = 200
    rounds: int = 5
    warm_up: int = 50


FULL = Size()
TINY = Size(idle=5, idle_seconds=0.1, sharing=5, told=1, healthy=3, rounds=1, warm_up=1)


async def measure(size: Size = FULL) -> list[Sheet]:
    """Idle followers, an event that all of them get, and a reader that stopped reading."""
    return [await _idle(size), await _shared(size), await _stuck(size)]


async def _idle(size: Size) -> Sheet:
    with tempfile.TemporaryDirectory() as folder:
        async with served(Path(folder) / "idle.db") as client:
            run_id = await started(client, "talk")
            with await trio.to_thread.run_sync(_following, client.base_url, run_id, size.warm_up):
                pass
            before = (await client.get("/cost")).json()
            followers = await trio.to_thread.run_sync(
                _following, client.base_url, run_id, size.idle
            )
            with followers:
                await trio.sleep(size.idle_seconds / 10)
                begun = (await client.get("/cost")).json()
                await trio.sleep(size.idle_seconds)
                ended = (await client.get("/cost")).json()
                delays = await _tell(client, followers)
    idle = cost_between(begun, ended)
    columns = (
        Column("followers"),
        Column("KiB each", 1),
        Column("CPU %", 2),
        Column("reads/s", 1),
        Column("until all have one event, ms"),
    )
    row = (
        f"{size.idle:,}",
        (begun["kib"] - before["kib"]) / size.idle,
        idle["cpu"] / size.idle_seconds * 100,
        idle["reads"] / size.idle_seconds,
        max(delays),
    )
    return Sheet(f"Idle followers of one run on SQLite, {size.idle_seconds:g} s", columns, [row])


async def _shared(size: Size) -> Sheet:
    with tempfile.TemporaryDirectory() as folder:
        async with served(Path(folder) / "shared.db") as client:
            run_id = await started(client, "talk")
            followers = await trio.to_thread.run_sync(
                _following, client.base_url, run_id, size.sharing
            )
            with followers:
                await _tell(client, followers)
                before = (await client.get("/cost")).json()
                rounds = [await _tell(client, followers) for _ in range(size.told)]
                after = (await client.get("/cost")).json()
    cuts = [statistics.quantiles(delays, n=100) for delays in rounds]
    row = (
        f"{size.sharing:,}",
        statistics.median(cut[49] for cut in cuts),
        statistics.median(cut[98] for cut in cuts),
        statistics.median(max(delays) for delays in rounds),
        cost_between(before, after)["reads"] / size.told,
    )
    headings = ("followers", "p50 ms", "p99 ms", "last ms", "reads each time")
    title = f"One event for all followers of its run, {size.told} times"
    return Sheet(title, [Column(heading) for heading in headings], [row])


async def _stuck(size: Size) -> Sheet:
    found: dict[int, list[tuple[float, float]]] = {0: [], 1: []}
    with tempfile.TemporaryDirectory() as folder:
        async with served(Path(folder) / "stuck.db") as client:
            await _burst(client, 0, size.healthy)
            for _ in range(size.rounds):
                for stuck, seen in found.items():
                    seen.append(await _burst(client, stuck, size.healthy))
    rows: list[tuple[str, float, float]] = []
    for stuck, seen in found.items():
        took, grown = (statistics.median(column) for column in zip(*seen, strict=True))
        rows.append((str(stuck), took * 1000, grown))
    headings = ("stuck readers", "run ms", "server's growth KiB")
    title = f"Length of a 1 MB run with {size.healthy} readers; medians of {size.rounds} rounds"
    return Sheet(title, [Column(heading) for heading in headings], rows)


async def _burst(client: httpx.AsyncClient, stuck: int, healthy: int) -> tuple[float, float]:
    run_id = await started(client, "burst")
    with ExitStack() as stack:
        for _ in range(stuck):
            stack.enter_context(connected(client.base_url, run_id, receive_buffer=4096))
        followers = await trio.to_thread.run_sync(_following, client.base_url, run_id, healthy)
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
