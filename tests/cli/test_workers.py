"""Several workers behind one address, over one database."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import trio

APP = """
import os

from sqlalchemy import create_engine

from rungent import Agent, Identity, Runtime
from rungent.asgi import create_app
from rungent.llm import TextDelta
from rungent.sqlalchemy import SQLAlchemyStore
from rungent.testing import Delay, ScriptedModel

agent = Agent(name="helper", instructions="Help.")
model = ScriptedModel([[TextDelta("One moment"), Delay(3600)]] * 100)
store = SQLAlchemyStore(create_engine(os.environ["APP_DATABASE"]))
runtime = Runtime(agents=[agent], model=model, store=store, lease_seconds=3, lease_renew_seconds=0.5)
app = create_app(runtime, identity_resolver=lambda request: Identity("somebody"))


@app.get("/pid")
async def pid() -> str:
    return str(os.getpid())
"""
DEADLINE_SECONDS = 300
WORKERS = 2


@asynccontextmanager
async def served(folder: Path, database: str) -> AsyncGenerator[tuple[trio.Process, str]]:
    (folder / "host_app.py").write_text(APP)
    command = [sys.executable, "-m", "rungent", "serve", "host_app:app", "--port", "0"]
    process = await trio.lowlevel.open_process(
        [*command, "--workers", str(WORKERS)],
        stdout=-1,
        cwd=folder,
        env={**os.environ, "APP_DATABASE": database},
    )
    try:
        with trio.fail_after(DEADLINE_SECONDS):
            assert process.stdout is not None
            printed = (await process.stdout.receive_some()).decode()
            url = re.search(r"http://\S+", printed)
            assert url is not None, printed
            yield process, url[0]
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        with trio.move_on_after(30, shield=True):
            await process.wait()


async def ask(url: str, method: str, path: str, body: object = None) -> httpx.Response:
    """One request over a connection of its own, which any worker may take."""
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=120) as client:
        return await client.request(method, path, json=body)


async def workers_of(url: str) -> set[int]:
    """The process ids of all workers, asked until each has answered."""
    found: set[int] = set()
    while len(found) < WORKERS:
        found.add(int((await ask(url, "GET", "/pid")).text))
    return found


@pytest.fixture
def database(empty_postgres: str) -> str:
    return f"postgresql+psycopg{empty_postgres}"


async def test_any_worker_follows_and_cancels_any_run(tmp_path: Path, database: str) -> None:
    async with served(tmp_path, database) as (process, url):
        await workers_of(url)
        for _ in range(4):
            session = (await ask(url, "POST", "/sessions", {})).json()
            path = f"/sessions/{session['id']}/runs"
            run = (await ask(url, "POST", path, {"input": "Hi"})).json()["run_id"]
            cancelled = await ask(url, "POST", f"/runs/{run}/cancel")
            assert cancelled.json()["status"] == "cancelled"
            stream = (await ask(url, "GET", f"/runs/{run}/events/stream")).text
            events = [
                json.loads(line) for line in re.findall(r"^data: (.*)$", stream, re.MULTILINE)
            ]
            assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
            assert events[-1]["type"] == "run.cancelled"
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0


async def test_a_worker_that_is_killed_is_replaced(tmp_path: Path, database: str) -> None:
    async with served(tmp_path, database) as (_, url):
        first = await workers_of(url)
        victim = first.pop()
        os.kill(victim, signal.SIGKILL)
        while victim in (now := await workers_of_or_none(url)) or not now - first:
            pass
        assert len(now) == WORKERS


async def workers_of_or_none(url: str) -> set[int]:
    """As `workers_of`; a connection that the dying worker had taken may break."""
    try:
        return await workers_of(url)
    except httpx.TransportError:
        return set()
