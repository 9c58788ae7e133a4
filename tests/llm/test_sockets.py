"""Deadlines of bytes and connections over real sockets, on virtual time."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

import pytest
import trio
from trio.testing import MockClock

from rungent.llm import OpenAICompatibleModel

from .attempts import HI, KEY, attempt, completed_of, failure_of, sse, text_chunk

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
CHUNKED_END = b"0\r\n\r\n"

Script = Callable[[trio.SocketStream], Awaitable[None]]


def chunked(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(body), body)


async def read_request(stream: trio.SocketStream) -> bool:
    """Whether one whole request came. Its body ends where its JSON does."""
    received = b""
    while not received.endswith(b"}"):
        more = await stream.receive_some()
        if not more:
            return False
        received += more
    return True


@asynccontextmanager
async def peer(
    script: Script, *, timeout_seconds: float = 120
) -> AsyncIterator[OpenAICompatibleModel]:
    """A model in front of a server that plays `script` after each request."""

    async def serve(stream: trio.SocketStream) -> None:
        with suppress(trio.ClosedResourceError, trio.BrokenResourceError):
            while await read_request(stream):
                await script(stream)

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        port = listener.socket.getsockname()[1]
        url = f"http://127.0.0.1:{port}/v1"
        model = OpenAICompatibleModel(
            api_key=KEY, base_url=url, model="m", timeout_seconds=timeout_seconds
        )
        async with model:
            yield model
        nursery.cancel_scope.cancel()


async def test_silence_before_the_answer_is_a_timeout(autojump_clock: MockClock) -> None:
    async def silent(_: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async with peer(silent, timeout_seconds=30) as model:
        start = trio.current_time()
        assert (await failure_of(model)).reason == "timeout"
        assert trio.current_time() - start == pytest.approx(30)


async def test_each_wait_for_bytes_has_the_whole_time(autojump_clock: MockClock) -> None:
    async def slow(stream: trio.SocketStream) -> None:
        await stream.send_all(HEAD)
        for _ in range(3):
            await trio.sleep(25)
            await stream.send_all(chunked(sse(text_chunk("x"), done=False)))
        await trio.sleep_forever()

    async with peer(slow, timeout_seconds=30) as model:
        start = trio.current_time()
        outcome = await attempt(model)
        assert (outcome.reason, outcome.deltas) == ("timeout", ["x", "x", "x"])
        assert trio.current_time() - start == pytest.approx(3 * 25 + 30)


async def test_silence_after_the_finish_is_a_success(autojump_clock: MockClock) -> None:
    async def hanging(stream: trio.SocketStream) -> None:
        await stream.send_all(HEAD + chunked(sse(text_chunk("Hi", "stop"), done=False)))
        await trio.sleep_forever()

    async with peer(hanging, timeout_seconds=30) as model:
        assert (await completed_of(model)).text == "Hi"


async def test_done_does_not_wait_for_the_socket(autojump_clock: MockClock) -> None:
    async def hanging(stream: trio.SocketStream) -> None:
        await stream.send_all(HEAD + chunked(HI))
        await trio.sleep_forever()

    async with peer(hanging) as model:
        start = trio.current_time()
        assert (await completed_of(model)).text == "Hi"
        assert trio.current_time() == start


async def test_no_log_of_the_http_libraries_holds_the_key(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def whole(stream: trio.SocketStream) -> None:
        await stream.send_all(HEAD + chunked(HI) + CHUNKED_END)

    caplog.set_level(logging.DEBUG)
    async with peer(whole) as model:
        await completed_of(model)
    assert caplog.records
    assert KEY not in caplog.text


async def test_a_connection_without_an_answer_is_a_network_failure() -> None:
    async def closing(stream: trio.SocketStream) -> None:
        await stream.aclose()

    async with peer(closing) as model:
        assert (await failure_of(model)).reason == "network"


async def test_garbage_instead_of_http_is_a_network_failure() -> None:
    async def garbage(stream: trio.SocketStream) -> None:
        await stream.send_all(b"SSH-2.0-peer\r\n\r\n")
        await stream.aclose()

    async with peer(garbage) as model:
        assert (await failure_of(model)).reason == "network"


async def test_a_cut_stream_is_incomplete() -> None:
    async def cut(stream: trio.SocketStream) -> None:
        await stream.send_all(HEAD + chunked(sse(text_chunk("Hi"), done=False)))
        await stream.aclose()

    async with peer(cut) as model:
        outcome = await attempt(model)
        assert (outcome.reason, outcome.deltas) == ("stream_incomplete", ["Hi"])


async def test_a_connection_is_used_again_when_the_answer_came_whole() -> None:
    streams: set[trio.SocketStream] = set()

    async def whole(stream: trio.SocketStream) -> None:
        streams.add(stream)
        await stream.send_all(HEAD + chunked(HI) + CHUNKED_END)

    async with peer(whole) as model:
        for _ in range(3):
            assert (await completed_of(model)).text == "Hi"
    assert len(streams) == 1
