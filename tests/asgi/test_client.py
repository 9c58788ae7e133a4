"""The test client itself: back-pressure, disconnects, failures, applications without lifespan."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rungent.testing.asgi import AsgiClient

START = {"type": "http.response.start", "status": 200, "headers": [(b"X-Name", b"\xe9")]}


async def two_chunks(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        await send(START)
        for body in (b"one", b"two"):
            await send({"type": "http.response.body", "body": body, "more_body": True})
            scope["state"]["sent"] = body
        await send({"type": "http.response.body"})


async def failing(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        await receive()
        raise LookupError("no answer")


async def test_a_response_is_read_whole_from_an_application_without_lifespan() -> None:
    async with AsgiClient(two_chunks) as client:
        answer = await client.request("GET", "/")
        assert (answer.status, answer.headers, answer.body) == (200, {"x-name": "é"}, b"onetwo")


async def test_a_send_returns_when_the_chunk_was_taken(autojump_clock: MockClock) -> None:
    taken: list[bytes] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send(START)
            for body in (b"one", b"two", b"three"):
                await send({"type": "http.response.body", "body": body, "more_body": True})
                taken.append(body)

    async with AsgiClient(app) as client, client.stream("GET", "/") as stream:
        await wait_all_tasks_blocked()
        assert taken == []
        assert await anext(stream) == b"one"
        await wait_all_tasks_blocked()
        assert taken == [b"one"]
    assert taken == [b"one", b"two", b"three"], "what is sent to nobody is lost without an error"


async def test_a_body_arrives_piece_by_piece_and_then_the_disconnect() -> None:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send(START)
            while (message := await receive())["type"] == "http.request":
                seen.append((message["body"], message["more_body"]))
            seen.append(message["type"])

    async with AsgiClient(app) as client:
        async with client.stream("POST", "/", content=[b"a", b"b"]) as stream:
            await wait_all_tasks_blocked()
            assert seen == [(b"a", True), (b"b", False)]
            stream.disconnect()
        assert seen[-1] == "http.disconnect"


async def test_what_the_application_raises_is_raised_to_whoever_asked() -> None:
    async with AsgiClient(failing) as client:
        for _ in range(2):
            with pytest.raises(LookupError, match="no answer"):
                await client.request("GET", "/")


async def test_a_client_works_only_while_it_is_entered() -> None:
    client = AsgiClient(two_chunks)
    with pytest.raises(RuntimeError, match="context manager"):
        await client.request("GET", "/")


async def test_a_cancelled_caller_disconnects(autojump_clock: MockClock) -> None:
    gone = trio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            while (await receive())["type"] == "http.request":
                pass
            gone.set()

    async with AsgiClient(app) as client:
        with trio.move_on_after(3):
            await client.request("GET", "/")
        assert gone.is_set()
        assert trio.current_time() == 3
