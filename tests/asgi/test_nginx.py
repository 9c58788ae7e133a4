"""Behind a real nginx, configured as the documentation says."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import h11
import pytest
import trio

from rungent import Runtime
from rungent.llm import ModelCompleted, TextDelta
from rungent.testing import ScriptedModel
from rungent.testing.scripted import Response
from rungent.testing.sse import SseFrame, SseReader
from tests.asgi.apps import GatedModel, app_of, runtime_with
from tests.asgi.test_serve import open_stream, read_to_end, serving, start_run
from tests.asgi.wire import Wire, connect_to_file
from tests.docs.pages import blocks

CUT_SECONDS = 1
PATIENCE = 20
MAIN = """
daemon off;
master_process off;
pid {folder}/pid;
error_log stderr crit;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{site}
}}
"""
Connect = Callable[[], AbstractAsyncContextManager[Wire]]


def configured(folder: Path, upstream: str) -> str:
    """The page's block; only places and the time of a cut are the test's."""
    [block] = blocks("docs/nginx.md", "text")
    site = block.text
    for written, wanted in (
        ("127.0.0.1:8000", upstream),
        ("listen 80;", f"listen unix:{folder}/socket;"),
        ("proxy_read_timeout 60s;", f"proxy_read_timeout {CUT_SECONDS}s;"),
    ):
        assert site.count(written) == 1
        site = site.replace(written, wanted)
    return MAIN.format(folder=folder, site=site)


@asynccontextmanager
async def behind_nginx(
    folder: Path, runtime: Runtime, **app_options: Any
) -> AsyncGenerator[Connect]:
    """How to connect to an nginx in front of a server."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program is not None, "tests/system_packages.sh installs it"
    async with serving(runtime, app=app_of(runtime, **app_options)) as url:
        (folder / "conf").write_text(configured(folder, url.removeprefix("http://")))
        command = [program, "-p", str(folder), "-c", str(folder / "conf"), "-e", "stderr"]
        process = await trio.lowlevel.open_process(command)
        try:
            with trio.fail_after(PATIENCE):
                await until_it_listens(process, folder / "socket")
                yield partial(connect_to_file, folder / "socket")
        finally:
            process.terminate()
            with trio.move_on_after(PATIENCE, shield=True):
                await process.wait()


async def until_it_listens(process: trio.Process, path: Path) -> None:
    while True:
        await trio.lowlevel.checkpoint()
        assert process.poll() is None, "nginx ended"
        try:
            async with connect_to_file(path):
                return
        except (FileNotFoundError, ConnectionRefusedError):
            continue


async def read_until(wire: Wire, wanted: bytes) -> bytes:
    data = b""
    while wanted not in data:
        piece = await wire.data()
        assert piece is not None, data
        data += piece
    return data


async def log_of(wire: Wire, run_id: str) -> list[dict[str, Any]]:
    return list(json.loads((await wire.request("GET", f"/runs/{run_id}/events")).body))


def events_in(data: bytes) -> list[dict[str, Any]]:
    frames: list[SseFrame] = SseReader().feed(data)
    return [frame.event for frame in frames if frame.event]


async def test_events_arrive_one_by_one_while_the_run_goes_on(tmp_path: Path) -> None:
    model = GatedModel()
    async with (
        behind_nginx(tmp_path, runtime_with(model)) as connect,
        connect() as wire,
        connect() as reader,
    ):
        run_id = await start_run(wire)
        await open_stream(reader, run_id)
        early = await read_until(reader, b'"delta":"a"')
        # Nothing but this lets the run go on.
        model.gate.set()
        events = events_in(early + await read_to_end(reader))
        assert events == await log_of(wire, run_id)
        assert events[-1]["type"] == "run.completed"


async def test_keep_alives_hold_an_idle_stream_open_beyond_the_proxys_timeout(
    tmp_path: Path,
) -> None:
    model = GatedModel()
    every = CUT_SECONDS / 5
    async with (
        behind_nginx(tmp_path, runtime_with(model), keepalive_seconds=every) as connect,
        connect() as wire,
        connect() as reader,
    ):
        await open_stream(reader, await start_run(wire))
        data = b""
        while data.count(b": keep-alive\n\n") * every <= 1.5 * CUT_SECONDS:
            data += await reader.data() or b""
        model.gate.set()
        assert events_in(data + await read_to_end(reader))[-1]["type"] == "run.completed"


async def test_a_silent_stream_is_cut_by_the_proxy_and_resumed_by_its_last_number(
    tmp_path: Path,
) -> None:
    model = GatedModel()
    async with (
        behind_nginx(tmp_path, runtime_with(model), keepalive_seconds=60) as connect,
        connect() as wire,
        connect() as reader,
        connect() as again,
    ):
        run_id = await start_run(wire)
        await open_stream(reader, run_id)
        seen = events_in(await read_until(reader, b'"delta":"a"'))
        with pytest.raises(h11.RemoteProtocolError):
            await read_to_end(reader)
        model.gate.set()
        headers = {"last-event-id": str(seen[-1]["seq"])}
        await again.send("GET", f"/runs/{run_id}/events/stream", headers=headers)
        assert (await again.head()).status_code == 200
        seen += events_in(await read_to_end(again))
        assert seen == await log_of(wire, run_id)


async def test_a_reader_may_leave_the_proxy_at_any_byte_and_come_back(tmp_path: Path) -> None:
    script: list[Response] = [[*map(TextDelta, ("Grüße ", "aus ", "Rom")), ModelCompleted()]]
    async with (
        behind_nginx(tmp_path, runtime_with(ScriptedModel(script))) as connect,
        connect() as wire,
    ):
        run_id = await start_run(wire)
        seen: list[dict[str, Any]] = []
        for cut in (1, 200, 501, 502, 900, None):
            async with connect() as reader:
                headers = {"last-event-id": str(seen[-1]["seq"])} if seen else {}
                await reader.send("GET", f"/runs/{run_id}/events/stream", headers=headers)
                await reader.head()
                data = b""
                while cut is None or len(data) < cut:
                    piece = await reader.data()
                    if piece is None:
                        break
                    data += piece
                seen += events_in(data[:cut])
        assert seen == await log_of(wire, run_id)


async def test_large_bodies_are_refused_and_change_nothing(tmp_path: Path) -> None:
    runtime = runtime_with(ScriptedModel([]))
    async with behind_nginx(tmp_path, runtime) as connect, connect() as wire:
        for size, ours in ((1_100_000, True), (3_000_000, False)):
            async with connect() as large:
                body = b'{"title": "' + b"x" * size + b'"}'
                headers = {"content-type": "application/json"}
                await large.send("POST", "/sessions", body, headers)
                assert (await large.head()).status_code == 413
                assert (b"payload_too_large" in await read_to_end(large)) == ours
        assert json.loads((await wire.request("GET", "/sessions")).body) == []
