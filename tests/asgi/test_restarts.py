"""Readers who are cut off anywhere, over servers that are restarted: together they get the log."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine
from trio.testing import MockClock

from rungent.llm import ModelCompleted, TextDelta
from rungent.sqlalchemy import SQLAlchemyStore
from rungent.testing import Delay
from rungent.testing.asgi import AsgiStream
from rungent.testing.clock import virtual_now
from rungent.testing.scripted import Response
from rungent.testing.sse import SseReader
from tests.asgi.apps import World, world
from tests.asgi.wire import Wire, connect
from tests.helpers import START

PATIENCE = 60
RUNS = 20
STREAMS = 200
GRACE = 5

Cut = tuple[int, bool]


@dataclass
class Reader:
    """A client that keeps whole frames only and comes back with the last number it has."""

    run_id: str
    found: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def last(self) -> int:
        return int(self.found[-1]["seq"]) if self.found else 0

    @property
    def path(self) -> str:
        return f"/runs/{self.run_id}/events/stream"

    def take(self, data: bytes) -> None:
        self.found += [frame.event for frame in SseReader().feed(data) if frame.event]


async def first_bytes(stream: AsgiStream, cut: int | None) -> bytes:
    data = b""
    async for chunk in stream:
        data += chunk
        if cut is not None and len(data) >= cut:
            break
    return data[:cut]


@settings(max_examples=12, deadline=None)
@given(
    cuts=st.lists(st.tuples(st.integers(0, 4000), st.booleans()), max_size=5),
    by_header=st.booleans(),
)
def test_cut_anywhere_and_across_restarts_the_stream_is_the_log(
    cuts: list[Cut], by_header: bool
) -> None:
    """The file is all that the applications have in common."""
    reply: list[Response] = [
        [TextDelta("Grüße "), Delay(20), TextDelta("aus Rom"), ModelCompleted()]
    ]

    async def main(database: Path) -> None:
        now = virtual_now(START)

        @asynccontextmanager
        async def restarted() -> AsyncGenerator[World]:
            store = SQLAlchemyStore(create_engine(f"sqlite:///{database}"), inline=True)
            await store.create_schema()
            options = {"store": store, "now": now, "max_recoveries": 99}
            async with world(reply * 9, runtime_options=options) as w:
                yield w

        async def read(w: World, cut: int | None) -> None:
            query = "" if by_header else f"?after_seq={reader.last}"
            headers = {"Last-Event-ID": str(reader.last)} if by_header else {}
            async with w.client.stream("GET", reader.path + query, headers=headers) as stream:
                reader.take(await first_bytes(stream, cut))

        left: list[Cut] = list(cuts)
        async with restarted() as w:
            reader = Reader(await w.started())
        while True:
            async with restarted() as w:
                restart = False
                while left and not restart:
                    cut, restart = left.pop(0)
                    await read(w, cut)
                if not left and not restart:
                    await read(w, None)
                    answer = await w.client.request("GET", f"/runs/{reader.run_id}/events")
                    break
        assert reader.found == answer.json()
        assert reader.found[-1]["type"] == "run.completed"

    with tempfile.TemporaryDirectory() as folder:
        trio.run(main, Path(folder) / "runs.db", clock=MockClock(autojump_threshold=0))


APP = """
import os

from sqlalchemy import create_engine

from rungent import Agent, Identity, Runtime
from rungent.asgi import create_app
from rungent.llm import TextDelta
from rungent.sqlalchemy import SQLAlchemyStore
from rungent.testing import Delay, ScriptedModel

slow = [TextDelta("One moment"), Delay(3600)]
model = ScriptedModel(["Done."] * 99 if os.environ["APP_MODEL"] == "quick" else [slow] * 99)
store = SQLAlchemyStore(create_engine(os.environ["APP_DATABASE"]))
agents = [Agent(name="helper", instructions="Help.")]
runtime = Runtime(agents=agents, model=model, store=store, shutdown_grace_seconds=0.5)
app = create_app(runtime, identity_resolver=lambda request: Identity("ada"))
"""


@asynccontextmanager
async def process(folder: Path, database: str, model: str) -> AsyncGenerator[tuple[Any, str]]:
    """`rungent serve`, and its URL."""
    command = [sys.executable, "-m", "rungent", "serve", "host_app:app", "--port", "0"]
    command += ["--graceful-timeout", str(GRACE), "--log-level", "warning"]
    environment = {**os.environ, "APP_DATABASE": database, "APP_MODEL": model}
    server = await trio.lowlevel.open_process(command, stdout=-1, cwd=folder, env=environment)
    try:
        assert server.stdout is not None
        printed = (await server.stdout.receive_some()).decode()
        url = re.search(r"http://[^\s/]+", printed)
        assert url is not None, printed
        yield server, url[0]
    finally:
        server.kill()
        with trio.move_on_after(10, shield=True):
            await server.wait()


async def ask(wire: Wire, method: str, path: str, body: Any = None) -> Any:
    content = b"" if body is None else json.dumps(body).encode()
    answer = await wire.request(method, path, content, content_type="application/json")
    assert answer.status < 300, answer.body
    return json.loads(answer.body)


async def new_run(wire: Wire) -> str:
    session = await ask(wire, "POST", "/sessions", {})
    made = await ask(wire, "POST", f"/sessions/{session['id']}/runs", {"input": "Hi"})
    return str(made["run_id"])


async def follow(url: str, reader: Reader, opened: list[Reader]) -> None:
    """Read one response to its end."""
    async with connect(url) as wire:
        headers = {"last-event-id": str(reader.last)}
        await wire.send("GET", f"{reader.path}?until=terminal", headers=headers)
        assert (await wire.head()).status_code == 200
        data = b""
        while (piece := await wire.data()) is not None:
            if b"message.delta" not in data and b"message.delta" in data + piece:
                opened.append(reader)
            data += piece
        reader.take(data)


async def follow_all(url: str, readers: list[Reader], opened: list[Reader]) -> None:
    async with trio.open_nursery() as nursery:
        for reader in readers:
            nursery.start_soon(follow, url, reader, opened)


async def statuses(database: str, run_ids: list[str]) -> set[tuple[str, bool]]:
    """How the runs stand, and whether somebody holds them."""
    store = SQLAlchemyStore(create_engine(database))
    async with store.open():
        runs = [await store.get_run(run_id) for run_id in run_ids]
    return {(run.status, run.lease is not None) for run in runs}


async def test_a_stop_with_many_streams_and_runs_loses_nothing(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'runs.db'}"
    await SQLAlchemyStore(create_engine(database)).create_schema()
    (tmp_path / "host_app.py").write_text(APP)
    opened: list[Reader] = []
    with trio.fail_after(PATIENCE):
        async with process(tmp_path, database, "slow") as (server, url), connect(url) as wire:
            run_ids = [await new_run(wire) for _ in range(RUNS)]
            readers = [Reader(run_ids[n % RUNS]) for n in range(STREAMS)]
            async with trio.open_nursery() as nursery:
                nursery.start_soon(follow_all, url, readers, opened)
                while len(opened) < STREAMS:
                    await trio.testing.wait_all_tasks_blocked(0.01)
                server.send_signal(signal.SIGTERM)
                with trio.fail_after(GRACE):
                    assert await server.wait() == 0
        assert await statuses(database, run_ids) == {("running", False)}
        async with process(tmp_path, database, "quick") as (server, url), connect(url) as wire:
            await follow_all(url, readers, opened)
            logs = {run_id: await ask(wire, "GET", f"/runs/{run_id}/events") for run_id in run_ids}
            server.send_signal(signal.SIGTERM)
            assert await server.wait() == 0
    assert await statuses(database, run_ids) == {("completed", False)}
    for reader in readers:
        assert reader.found == logs[reader.run_id]
    for log in logs.values():
        assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
        assert log[-1]["type"] == "run.completed"
