"""An embedded runtime under uvicorn: signals, readers that leave or stop reading."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import trio
from sqlalchemy import create_engine

from rungent import Identity
from rungent.sqlalchemy import SQLAlchemyStore
from rungent.testing.sse import SseFrame
from tests.asgi.apps import GatedModel, runtime_with
from tests.hosts.servers import API, Server, client, frames, served, start_run

MODES = {"thread": "0", "guest": "1"}


def host(database: Path, mode: str) -> AbstractContextManager[Server]:
    environment = {"HOST_GUEST": MODES[mode], "HOST_DATABASE": str(database)}
    return served("uvicorn", "tests.hosts.asyncio_host:app", environment=environment)


@pytest.fixture(scope="module", params=MODES)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    with host(tmp_path_factory.mktemp("host") / "host.db", request.param) as running:
        yield running


@pytest.mark.parametrize("mode", MODES)
def test_sigterm_ends_streams_by_a_comment_and_gives_runs_back(mode: str, tmp_path: Path) -> None:
    database = tmp_path / "host.db"
    with host(database, mode) as server:
        runs = streams_until_sigterm(server)
        output, _ = server.process.communicate(timeout=120)
    assert server.process.returncode == -signal.SIGTERM
    assert "Application shutdown complete" in output
    assert "Traceback" not in output
    assert [state_of(database, run) for run in runs] == [("running", None)] * 2


def streams_until_sigterm(server: Server) -> list[str]:
    with client(server, {}) as http:
        runs = [start_run(http), start_run(http, api="/mounted")]
        with (
            http.stream("GET", f"{runs[0]}/events/stream") as first,
            http.stream("GET", f"{runs[1]}/events/stream") as second,
        ):
            streams = [frames(first), frames(second)]
            for stream in streams:
                until_the_model_speaks(stream)
            os.kill(server.process.pid, signal.SIGTERM)
            rest = [list(stream) for stream in streams]
            assert [last[-1].comment for last in rest] == ["reconnect"] * 2
    return runs


def until_the_model_speaks(stream: Iterator[SseFrame]) -> None:
    assert any(frame.event and frame.event["type"] == "message.delta" for frame in stream)


def state_of(database: Path, run: str) -> tuple[str, object]:
    engine = create_engine(f"sqlite:///{database}")
    store = SQLAlchemyStore(engine)
    runtime = runtime_with(GatedModel(), store=store)

    async def look() -> tuple[str, object]:
        async with store.open():
            found = await runtime.get_run(run.rpartition("/")[2], identity=Identity("ada"))
        return found.status, found.lease

    try:
        return trio.run(look)
    finally:
        engine.dispose()


def test_a_client_that_leaves_is_noticed(server: Server) -> None:
    with client(server, {}) as http:
        with http.stream("GET", "/endless/") as stream:
            next(stream.iter_raw())
        assert when_over(http)["left"]


def test_a_reader_that_stops_reading_stops_the_application(server: Server) -> None:
    parts = urlsplit(server.url)
    with socket.socket() as plain, client(server, {}) as http:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.connect((parts.hostname, parts.port))
        plain.sendall(b"GET /endless/ HTTP/1.1\r\nHost: test\r\n\r\n")
        plain.recv(100)
        last, unchanged = 0, 0
        # It goes on until the buffers on the way are full, which are a few megabytes.
        while unchanged < 30:
            now = http.get("/sent").json()["sent"]
            last, unchanged = now, unchanged + 1 if now == last > 0 else 0
        assert last < 2000
    with client(server, {}) as http:
        assert when_over(http)["left"]


def when_over(http: httpx.Client) -> dict[str, Any]:
    while not (told := http.get("/sent").json())["over"]:
        pass
    return dict(told)


def test_a_mount_and_the_router_are_one_interface(server: Server) -> None:
    with client(server, {}) as http:
        for api in (API, "/mounted"):
            session = http.post(f"{api}/sessions", json={"title": api}).json()
            assert http.get(f"/mounted/sessions/{session['id']}").json()["title"] == api
            page = http.get(f"{api}/sessions", params={"limit": 1})
            if "link" in page.headers:
                assert page.links["next"]["url"].startswith(f"{api}/sessions?")
            assert http.get(f"{api}/openapi.json").json()["servers"] == [{"url": api}]
        refused = [http.put(f"{api}/runs/x/retry") for api in (API, "/mounted")]
        assert refused[0].json() == refused[1].json()
        assert {answer.status_code for answer in refused} == {405}
