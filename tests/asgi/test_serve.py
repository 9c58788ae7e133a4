"""Serving over a real socket: keep-alive, readers that stop reading, signals, crashes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import h11
import pytest
import trio
from sqlalchemy import create_engine

from rungent import Identity, Runtime
from rungent.asgi import create_app, load_app, serve
from rungent.llm import ModelCompleted, TextDelta
from rungent.sqlalchemy import SQLAlchemyStore
from rungent.testing import ScriptedModel
from rungent.testing.asgi import AsgiApp
from tests.asgi.apps import GatedModel, app_of, identify, runtime_with
from tests.asgi.test_application import CrashingStore
from tests.asgi.wire import Wire, connect

ROOT = Path(__file__).resolve().parent.parent.parent
ADA = Identity("ada")
PATIENCE = 20


@asynccontextmanager
async def serving(
    runtime: Runtime,
    shutdown: trio.Event | None = None,
    app: AsgiApp | None = None,
    **options: Any,
) -> AsyncGenerator[str]:
    """The URL of a server that ends in order when the body is left."""
    shutdown = trio.Event() if shutdown is None else shutdown
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            served = app or app_of(runtime)
            run = partial(serve, served, runtime=runtime, port=0, shutdown=shutdown, **options)
            yield await nursery.start(run)
            shutdown.set()


async def start_run(wire: Wire) -> str:
    session = json.loads((await wire.request("POST", "/sessions")).body)
    answer = await wire.request(
        "POST",
        f"/sessions/{session['id']}/runs",
        b'{"input": "Hi"}',
        content_type="application/json",
    )
    assert answer.status == 202
    return str(json.loads(answer.body)["run_id"])


async def open_stream(wire: Wire, run_id: str) -> None:
    await wire.send("GET", f"/runs/{run_id}/events/stream")
    assert (await wire.head()).status_code == 200


async def read_to_end(wire: Wire) -> bytes:
    data = b""
    while (piece := await wire.data()) is not None:
        data += piece
    return data


async def test_a_run_is_followed_over_a_socket() -> None:
    async with serving(runtime_with(ScriptedModel(["Rome."]))) as url, connect(url) as wire:
        run_id = await start_run(wire)
        await open_stream(wire, run_id)
        assert b'"type":"run.completed"' in await read_to_end(wire)


async def test_a_connection_stays_usable_after_every_early_refusal() -> None:
    large = b"[" * 3_000_000
    refused: list[tuple[int, str, str, bytes, dict[str, str]]] = [
        (404, "POST", "/nowhere", large, {}),
        (405, "PUT", "/sessions", large, {}),
        (401, "POST", "/sessions", large, {"x_user": "refused"}),
        (415, "POST", "/sessions", large[:500_000], {"content_type": "text/plain"}),
        (413, "POST", "/sessions", large, {"content_type": "application/json"}),
        (422, "POST", "/sessions", large[:500_000], {"content_type": "application/json"}),
        (404, "GET", "/sessions/ses_x", large, {}),
        (200, "GET", "/sessions", large, {}),
    ]
    async with serving(runtime_with(ScriptedModel([]))) as url, connect(url) as wire:
        for status, method, path, body, headers in refused:
            assert (await wire.request(method, path, body, **headers)).status == status
            assert (await wire.request("GET", "/sessions")).status == 200


async def test_a_shutdown_ends_streams_by_a_comment_and_lets_runs_finish() -> None:
    model, shutdown = GatedModel(), trio.Event()
    runtime = runtime_with(model)
    async with serving(runtime, shutdown) as url, connect(url) as wire, connect(url) as reader:
        run_id = await start_run(wire)
        await open_stream(reader, run_id)
        await model.asked.wait()
        shutdown.set()
        assert (await read_to_end(reader)).endswith(b"\n\n: reconnect\n\n")
        while await accepts(url):
            # The listener closes in its own task.
            await trio.lowlevel.checkpoint()
        model.gate.set()
    assert await status_of(runtime, run_id) == "completed"


async def accepts(url: str) -> bool:
    try:
        async with connect(url):
            return True
    except ConnectionRefusedError:
        return False


async def status_of(runtime: Runtime, run_id: str) -> str:
    return (await runtime.get_run(run_id, identity=ADA)).status


async def test_a_run_that_outlasts_the_grace_is_left_to_the_next_worker() -> None:
    model = GatedModel()
    runtime = runtime_with(model, shutdown_grace_seconds=0.1)
    async with serving(runtime) as url, connect(url) as wire:
        run_id = await start_run(wire)
        await model.asked.wait()
    run = await runtime.get_run(run_id, identity=ADA)
    assert (run.status, run.lease) == ("running", None)


async def test_a_connection_that_is_kept_for_later_does_not_hold_the_process() -> None:
    runtime = runtime_with(ScriptedModel([]))
    with trio.fail_after(PATIENCE):
        async with (
            AsyncExitStack() as clients,
            # Longer than the test may take: only an end at once passes.
            serving(runtime, graceful_timeout=PATIENCE * 2) as url,
        ):
            idle = await clients.enter_async_context(connect(url))
            assert (await idle.request("GET", "/sessions")).status == 200


async def test_a_reader_that_stopped_reading_does_not_hold_the_process() -> None:
    text = "x" * 1_000_000
    script = [[TextDelta(text) for _ in range(30)] + [ModelCompleted()]]
    runtime, shutdown = runtime_with(ScriptedModel(script)), trio.Event()
    async with AsyncExitStack() as readers:
        async with serving(runtime, shutdown, graceful_timeout=0.2) as url:
            async with connect(url) as wire:
                run_id = await start_run(wire)
            async for _ in runtime.stream_events(run_id, identity=ADA):
                pass
            stuck = await readers.enter_async_context(connect(url, receive_buffer=4096))
            await open_stream(stuck, run_id)
            await stuck.data()
        # The server ended while this connection was open and full.
        with pytest.raises((h11.RemoteProtocolError, OSError, trio.BrokenResourceError)):
            await read_to_end(stuck)


async def test_a_reader_that_stops_reading_is_cut_after_the_write_timeout() -> None:
    text = "x" * 1_000_000
    script = [[TextDelta(text) for _ in range(30)] + [ModelCompleted()]]
    runtime = runtime_with(ScriptedModel(script))
    app, given_up = app_of(runtime), trio.Event()

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        try:
            await app(scope, receive, send)
        finally:
            if scope.get("query_string") == b"after_seq=1":
                given_up.set()

    async with serving(runtime, app=watched, write_timeout=0.5) as url:
        async with connect(url) as wire:
            run_id = await start_run(wire)
        async for _ in runtime.stream_events(run_id, identity=ADA):
            pass
        async with connect(url, receive_buffer=4096) as stuck, connect(url) as healthy:
            await stuck.send("GET", f"/runs/{run_id}/events/stream?after_seq=1")
            # Nothing else ends it: the client stays, and so does the server.
            await given_up.wait()
            assert (await healthy.request("GET", "/sessions")).status == 200


async def test_a_crash_of_the_runtime_ends_the_server_with_its_reason() -> None:
    store = CrashingStore()
    runtime = runtime_with(ScriptedModel([]), store=store)

    async def crash(url: str) -> None:
        async with connect(url) as wire:
            assert (await wire.request("GET", "/sessions")).status == 200
        store.crash.set()

    with (
        trio.fail_after(PATIENCE),
        pytest.RaisesGroup(
            pytest.RaisesExc(OSError, match="the disk is gone"), flatten_subgroups=True
        ),
    ):
        async with trio.open_nursery() as nursery:
            run = partial(serve, app_of(runtime), runtime=runtime, port=0, shutdown=trio.Event())
            await crash(await nursery.start(run))


async def test_a_runtime_that_is_stopped_by_its_host_ends_the_server() -> None:
    runtime = runtime_with(ScriptedModel([]))
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            run = partial(serve, app_of(runtime), runtime=runtime, port=0, shutdown=trio.Event())
            await nursery.start(run)
            await runtime.stop()


async def test_a_port_that_is_taken_is_an_error_before_anything_starts() -> None:
    async with serving(runtime_with(ScriptedModel([]))) as url:
        runtime = runtime_with(ScriptedModel([]))
        port = int(url.rpartition(":")[2])
        with pytest.raises(OSError, match="in use"):
            await serve(app_of(runtime), runtime=runtime, port=port, shutdown=trio.Event())
        assert not runtime.serving


@pytest.fixture
def process(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.asgi.process", str(tmp_path / "runs.db"), "0.5"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield server
        finally:
            server.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_process_and_leaves_the_run_to_others(
    process: subprocess.Popen[str], tmp_path: Path, number: signal.Signals
) -> None:
    assert process.stdout is not None
    with trio.fail_after(PATIENCE):
        url = (await trio.to_thread.run_sync(process.stdout.readline)).strip()
        async with connect(url) as wire, connect(url) as reader, connect(url) as idle:
            assert (await idle.request("GET", "/sessions")).status == 200
            run_id = await start_run(wire)
            await open_stream(reader, run_id)
            data = b""
            while b"message.delta" not in data:
                data += await reader.data() or b""
            process.send_signal(number)
            assert (await read_to_end(reader)).endswith(b": reconnect\n\n")
            assert await trio.to_thread.run_sync(process.wait) == 0
    runtime = runtime_with(
        ScriptedModel([]), store=SQLAlchemyStore(create_engine(f"sqlite:///{tmp_path}/runs.db"))
    )
    run = await runtime.get_run(run_id, identity=ADA)
    assert (run.status, run.lease) == ("running", None)


def test_an_application_is_loaded_from_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loaded_here.py").write_text("class site:\n    app = 7\n")
    (tmp_path / "broken_here.py").write_text("import module_that_is_missing\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert load_app("loaded_here:site.app") == 7
    with pytest.raises(ValueError, match="module:attribute"):
        load_app("loaded_here")
    with pytest.raises(ValueError, match="no attribute 'nothing'"):
        load_app("loaded_here:nothing")
    with pytest.raises(ValueError, match="whole name"):
        load_app(".loaded_here:site")
    for name in ("not_here", "not_here.deeper"):
        with pytest.raises(ValueError, match="no module"):
            load_app(f"{name}:app")
    with pytest.raises(ModuleNotFoundError, match="module_that_is_missing"):
        load_app("broken_here:app")


async def test_an_application_that_cannot_start_ends_the_server() -> None:
    runtime = runtime_with(ScriptedModel([]))
    app = create_app(runtime, identity_resolver=identify)

    async def fail() -> None:
        await trio.lowlevel.checkpoint()
        raise OSError("the cache is gone")

    app.before_serving(fail)
    with pytest.RaisesGroup(
        pytest.RaisesExc(Exception, match="the cache is gone"), flatten_subgroups=True
    ):
        await serve(app, runtime=runtime, port=0, shutdown=trio.Event())
    assert not runtime.serving
