"""Clients that speak to the socket itself: odd targets, odd hosts, other protocols, forged logs."""

from __future__ import annotations

import json
import logging
from typing import Any
from urllib.parse import urlsplit

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rungent.asgi.exchange import Orderly
from rungent.asgi.server_config import ServerConfig
from rungent.asgi.sockets import open_listener
from rungent.testing import ScriptedModel
from tests.asgi.apps import app_of, runtime_with
from tests.asgi.test_serve import serving

HEAD = b"x-user: ada\r\n"


async def ask(url: str, head: bytes, body: bytes = b"") -> bytes:
    """All that the server says until it closes the connection."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    async with await trio.open_tcp_stream(parts.hostname, parts.port) as stream:
        await stream.send_all(head + b"\r\n\r\n" + body)
        said = b""
        while piece := await stream.receive_some():
            said += piece
        return said


async def get(url: str, target: bytes, headers: bytes = b"host: test\r\n") -> bytes:
    head = b"GET " + target + b" HTTP/1.1\r\n" + headers + HEAD + b"connection: close"
    return await ask(url, head)


async def test_what_no_router_can_read_is_refused_with_a_documented_error() -> None:
    hosts = (b"a" * 300, b"..", b"x." + b"b" * 64 + b":80")
    async with serving(runtime_with(ScriptedModel([]))) as url:
        for target in (b"?x", b"sessions", b"*", b"ftp://test/sessions", b"test:80"):
            answer = await get(url, target)
            assert answer.startswith(b"HTTP/1.1 404"), target
            assert b'"code":"not_found"' in answer
        for host in hosts:
            answer = await get(url, b"/sessions", b"host: " + host + b"\r\n")
            assert answer.startswith(b"HTTP/1.1 422"), host
            assert b'"loc":["header","host"]' in answer
            assert host not in answer


async def test_a_target_may_name_its_server() -> None:
    async def mounted(scope: Any, receive: Any, send: Any) -> None:
        del receive
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": scope["path"].encode()})

    runtime = runtime_with(ScriptedModel([]))
    async with serving(runtime, app=app_of(runtime, mounts={"/mcp": mounted})) as url:
        for target in (b"http://test/sessions", b"HTTPS://[::1/sessions"):
            assert (await get(url, target)).startswith(b"HTTP/1.1 200")
        assert (await get(url, b"http://test/mcp/x")).endswith(b"/x\r\n0\r\n\r\n")
        assert (await get(url, b"http://test")).startswith(b"HTTP/1.1 404")


@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_a_connection_ends_when_the_client_wants_only_one_answer(version: str) -> None:
    def head(method: str, path: str, body: bytes = b"") -> bytes:
        kind = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n" if body else ""
        line = f"{method} {path} HTTP/{version}\r\nhost: test\r\n{kind}connection: close\r\n"
        return (line + "x-user: ada").encode()

    async with serving(runtime_with(ScriptedModel(["Rome."]))) as url:
        answer = await ask(url, head("POST", "/sessions"))
        session_id = json.loads(answer.partition(b"\r\n\r\n")[2])["id"]
        body = b'{"input": "Hi"}'
        answer = await ask(url, head("POST", f"/sessions/{session_id}/runs", body), body)
        run_id = json.loads(answer.partition(b"\r\n\r\n")[2])["run_id"]
        answer = await ask(url, head("GET", f"/runs/{run_id}/events/stream"))
        assert b'"type":"run.completed"' in answer


async def test_a_disconnect_waits_for_the_end_of_the_answer(autojump_clock: MockClock) -> None:
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope

        async def watch() -> None:
            seen.append((await receive())["type"])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"x"})

    async def receive() -> dict[str, Any]:
        await closing.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.body":
            closing.set()
            await wait_all_tasks_blocked()
            assert seen == []

    closing = trio.Event()
    scope: dict[str, Any] = {"type": "http", "path": "/", "headers": []}
    await Orderly(app)(scope, receive, send)
    assert seen == ["http.disconnect"]


async def test_offers_of_http_2_are_ignored() -> None:
    upgrade = b"host: test\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n"
    async with serving(runtime_with(ScriptedModel([]))) as url:
        assert (await get(url, b"/sessions", upgrade)).startswith(b"HTTP/1.1 200")
        preface = await ask(url, b"PRI * HTTP/2.0", b"SM\r\n\r\n")
        assert preface.startswith(b"HTTP/1.1 404")


async def test_a_websocket_that_is_none_holds_no_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Five seconds otherwise.
    monkeypatch.setattr(ServerConfig, "keep_alive_timeout", 0.05)
    head = b"GET /sessions HTTP/1.1\r\nhost: test\r\nconnection: upgrade\r\nupgrade: websocket"
    async with serving(runtime_with(ScriptedModel([]))) as url:
        assert (await ask(url, head)).startswith(b"HTTP/1.1 400")
        kept = b"GET /sessions HTTP/1.1\r\nhost: test\r\nx-user: ada\r\nupgrade: websocket"
        assert (await ask(url, kept)).startswith(b"HTTP/1.1 200")


async def test_no_client_forges_log_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "hypercorn.access")
    headers = b'host: test\r\nuser-agent: \x1b[31m"red\r\nreferer: https://a.b/?token=canary\r\n'
    async with serving(runtime_with(ScriptedModel([]))) as url:
        await get(url, b"/x%0d%0aforged%1b%5b2J%e2%80%a8", headers)
    lines = [r.getMessage() for r in caplog.records if r.name == "hypercorn.access"]
    assert len(lines) == 1
    assert lines[0].isprintable()
    assert "GET /x\\u000d\\u000aforged\\u001b[2J\\u2028" in lines[0]
    assert "\\u0022red" in lines[0]
    assert "canary" not in lines[0]


async def test_a_listener_takes_any_patience_and_refuses_names_that_are_none() -> None:
    (await open_listener("127.0.0.1", 0, write_timeout=1e300)).close()
    with pytest.raises(OSError, match="no name of a host"):
        await open_listener("a" * 300, 0)
