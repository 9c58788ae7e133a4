"""The adapter sends one exact request, hides its key and lets go of every connection."""

import datetime
import gzip
import json
import logging
import traceback
from collections.abc import AsyncIterator
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
import trio
from trio.testing import MockClock

from rungent.llm import (
    Heartbeat,
    Model,
    ModelCompleted,
    ModelFailure,
    ModelRequest,
    OpenAICompatibleModel,
    RetryPolicy,
    TextDelta,
)
from rungent.llm.port import JsonObject

from .attempts import (
    HELLO,
    HI,
    KEY,
    Handler,
    Pieces,
    answering,
    attempt,
    chunks_of,
    completed_of,
    failure_of,
    model_at,
    sse,
    text_chunk,
)

TOOL: JsonObject = {
    "type": "function",
    "function": {"name": "t", "description": "d", "parameters": {}},
}
SECRET = "secret provider detail"

# In two cases httpx leaves a generator of its own to the garbage collector, and trio says so.
ABANDONED = "ignore:Async generator:ResourceWarning"


class Recorder:
    """Answers every request alike and keeps the requests."""

    def __init__(self, body: bytes = HI, **headers: str) -> None:
        self.requests: list[httpx.Request] = []
        self._body = body
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._headers = {"content-type": "text/event-stream", **named}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return httpx.Response(200, headers=self._headers, stream=Pieces([self._body]))


def refusing(status: int, text: str, **headers: str) -> Handler:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: httpx.Response(status, headers=named, text=text)


class Endless(httpx.AsyncByteStream):
    """A body that never ends after its first bytes, and says when somebody waits for more."""

    def __init__(self, body: bytes = b"") -> None:
        self._body = body
        self.waiting = trio.Event()
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._body:
            yield self._body
        self.waiting.set()
        await trio.sleep_forever()

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
        self.closed = True


class TestConstruction:
    @pytest.mark.parametrize(
        "options",
        [
            {"api_key": ""},
            {"api_key": "  "},
            {"api_key": "sk-canary\n"},
            {"api_key": "sk-canary\x7f"},
            {"api_key": "sk-cänary"},
            {"base_url": ""},
            {"base_url": "peer/v1"},
            {"base_url": "ftp://peer/v1"},
            {"base_url": "http://"},
            {"base_url": "http://peer:port/"},
            {"model": " "},
            {"timeout_seconds": 0},
            {"timeout_seconds": -1},
            {"timeout_seconds": float("nan")},
            {"max_retries": -1},
            {"retry_backoff_seconds": -0.5},
            {"extra_body": {"": 1}},
            {"extra_body": {" ": 1}},
            {"extra_body": {"x": float("nan")}},
            {"extra_body": {"x": object()}},
            *({"extra_body": {key: 1}} for key in ("model", "messages", "tools", "tool_choice")),
            *({"extra_body": {key: 1}} for key in ("stream", "stream_options")),
        ],
    )
    def test_values_out_of_bounds_are_refused(self, options: dict[str, Any]) -> None:
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            model_at(Recorder(), **options)
        assert "nary" not in "".join(traceback.format_exception(caught.value))

    def test_retries_become_the_policy(self) -> None:
        model = model_at(Recorder(), max_retries=5, retry_backoff_seconds=2)
        assert model.retry_policy == RetryPolicy(max_retries=5, backoff_seconds=2)
        assert model_at(Recorder()).retry_policy == RetryPolicy()

    def test_it_is_a_model(self) -> None:
        port: Model = model_at(Recorder())
        assert port.retry_policy.jitter == 0.25

    def test_the_representation_shows_no_secret(self) -> None:
        model = model_at(Recorder(), base_url=f"https://user:{KEY}@peer/v1?key={KEY}")
        assert repr(model) == "OpenAICompatibleModel(model='m', host='peer')"


class TestRequest:
    async def test_the_request_is_exact(self) -> None:
        peer = Recorder()
        model = model_at(peer, base_url="http://peer/v1/", extra_body={"seed": 1})
        await completed_of(model, ModelRequest(HELLO.messages, [TOOL]))
        (request,) = peer.requests
        assert (request.method, str(request.url)) == ("POST", "http://peer/v1/chat/completions")
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.headers["content-type"] == "application/json"
        assert request.headers["accept-encoding"] == "identity"
        assert json.loads(request.content) == {
            "model": "m",
            "messages": [{"role": "user", "content": "hello"}],
            "tools": [TOOL],
            "tool_choice": "auto",
            "stream": True,
            "stream_options": {"include_usage": True},
            "seed": 1,
        }

    async def test_without_key_there_is_no_header(self) -> None:
        peer = Recorder()
        await completed_of(model_at(peer, api_key=None))
        assert "authorization" not in peer.requests[0].headers

    async def test_later_changes_of_the_extra_body_are_not_sent(self) -> None:
        peer = Recorder()
        extra: dict[str, Any] = {"options": {"a": 1}}
        model = model_at(peer, extra_body=extra)
        extra["options"]["a"] = 2
        await completed_of(model)
        assert json.loads(peer.requests[0].content)["options"] == {"a": 1}

    @pytest.mark.parametrize(("seconds", "connect"), [(120, 10), (3, 3)])
    async def test_every_wait_for_bytes_is_bounded(self, seconds: float, connect: float) -> None:
        peer = Recorder()
        await completed_of(model_at(peer, timeout_seconds=seconds))
        assert peer.requests[0].extensions["timeout"] == {
            "connect": connect,
            "read": seconds,
            "write": seconds,
            "pool": seconds,
        }

    @pytest.mark.parametrize(
        ("headers", "found"),
        [
            ({"x_request_id": "a", "request_id": "b"}, "a"),
            ({"request_id": "b"}, "b"),
            ({"x_request_id": "", "request_id": "b"}, "b"),
            ({}, None),
        ],
    )
    async def test_the_request_id_comes_from_a_header(
        self, headers: dict[str, str], found: str | None
    ) -> None:
        completed = await completed_of(model_at(Recorder(HI, **headers)))
        assert completed.provider_request_id == found

    @pytest.mark.parametrize("status", [301, 302, 307, 308])
    async def test_redirects_are_never_followed(self, status: int) -> None:
        seen: list[httpx.Request] = []

        def handler(request: httpx.Request) -> httpx.Response:
            seen.append(request)
            return httpx.Response(status, headers={"location": "http://elsewhere/"})

        client = httpx.AsyncClient(transport=httpx.MockTransport(handler), follow_redirects=True)
        failure = await failure_of(model_at(handler, client=client))
        assert (failure.reason, failure.terminal) == ("model_rejected", True)
        assert len(seen) == 1


class TestBody:
    async def test_chunks_come_in_order_and_completion_last(self) -> None:
        body = sse({"choices": []}, text_chunk("H"), text_chunk("i", "stop"))
        chunks = await chunks_of(model_at(answering(Pieces([body]))))
        *before, last = chunks
        assert before == [Heartbeat(), TextDelta("H"), TextDelta("i")]
        assert isinstance(last, ModelCompleted)

    @pytest.mark.parametrize("content_type", [None, ""])
    async def test_no_content_type_is_read_as_a_stream(self, content_type: str | None) -> None:
        outcome = await attempt(model_at(answering(Pieces([HI]), content_type)))
        assert outcome.kind == "ok"

    async def test_json_is_read_as_one_completion(self) -> None:
        message = {"content": "Hi"}
        body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
        pieces = Pieces([body[:9], body[9:]])
        completed = await completed_of(model_at(answering(pieces, "application/json")))
        assert completed.text == "Hi"

    @pytest.mark.parametrize("content_type", ["text/html", "text/plain", "application/x-ndjson"])
    async def test_other_types_are_invalid_and_not_read(self, content_type: str) -> None:
        body = Endless()
        failure = await failure_of(model_at(answering(body, content_type)))
        assert failure.reason == "invalid_response"
        assert body.closed

    async def test_done_ends_reading_while_the_socket_stays_open(self) -> None:
        body = Endless(sse(text_chunk("Hi")))
        with trio.fail_after(5):
            assert (await completed_of(model_at(answering(body)))).text == "Hi"
        assert body.closed

    @pytest.mark.parametrize(
        "error", [httpx.ReadError("x"), httpx.RemoteProtocolError("x"), httpx.ReadTimeout("x")]
    )
    @pytest.mark.parametrize("done", [True, False])
    async def test_a_break_after_the_finish_takes_nothing_away(
        self, error: Exception, done: bool
    ) -> None:
        body = Pieces([sse(text_chunk("Hi", "stop"), done=done)], error)
        assert (await completed_of(model_at(answering(body)))).text == "Hi"

    @pytest.mark.parametrize(
        ("error", "reason"),
        [
            (httpx.ReadError("x"), "stream_incomplete"),
            (httpx.RemoteProtocolError("x"), "stream_incomplete"),
            (httpx.ReadTimeout("x"), "timeout"),
            (httpx.DecodingError("x"), "invalid_response"),
        ],
    )
    async def test_a_break_before_it_is_a_failure(self, error: Exception, reason: str) -> None:
        body = Pieces([sse(text_chunk("Hi"), done=False)], error)
        outcome = await attempt(model_at(answering(body)))
        assert (outcome.kind, outcome.reason, outcome.deltas) == ("retry", reason, ["Hi"])

    async def test_chunks_that_came_with_a_failure_come_before_it(self) -> None:
        body = sse(text_chunk("Hi"), {"error": {"code": 500}})
        outcome = await attempt(model_at(answering(Pieces([body]))))
        assert (outcome.reason, outcome.deltas) == ("provider_error", ["Hi"])

    async def test_an_oversized_response_is_refused(self) -> None:
        comment = b":" + b"x" * (1024 * 1024 - 2) + b"\n"
        outcome = await attempt(model_at(answering(Pieces([comment] * 17 + [HI]))))
        assert outcome.reason == "invalid_response"
        body = Pieces([b" " * 1024 * 1024] * 17)
        outcome = await attempt(model_at(answering(body, "application/json")))
        assert outcome.reason == "invalid_response"

    async def test_compressed_answers_are_read_all_the_same(self) -> None:
        packed = gzip.compress(HI)
        headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
        pieces = [packed[at : at + 3] for at in range(0, len(packed), 3)]
        model = model_at(lambda _: httpx.Response(200, headers=headers, stream=Pieces(pieces)))
        assert (await completed_of(model)).text == "Hi"

    @pytest.mark.filterwarnings(ABANDONED)
    async def test_a_broken_compression_is_invalid(self) -> None:
        headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
        model = model_at(lambda _: httpx.Response(200, headers=headers, stream=Pieces([b"no"])))
        assert (await failure_of(model)).reason == "invalid_response"


class TestFailures:
    @pytest.mark.parametrize(
        ("error", "reason"),
        [
            (httpx.ConnectTimeout(SECRET), "timeout"),
            (httpx.ReadTimeout(SECRET), "timeout"),
            (httpx.WriteTimeout(SECRET), "timeout"),
            (httpx.PoolTimeout(SECRET), "timeout"),
            (httpx.ConnectError(SECRET), "network"),
            (httpx.ReadError(SECRET), "network"),
            (httpx.WriteError(SECRET), "network"),
            (httpx.RemoteProtocolError(SECRET), "network"),
            (httpx.LocalProtocolError(SECRET), "network"),
            (httpx.ProxyError(SECRET), "network"),
        ],
    )
    async def test_no_response_is_classified(self, error: Exception, reason: str) -> None:
        def handler(_: httpx.Request) -> httpx.Response:
            raise error

        failure = await failure_of(model_at(handler))
        assert (failure.reason, failure.terminal) == (reason, False)
        assert failure.__context__ is None

    @pytest.mark.parametrize(
        "handler",
        [
            refusing(400, json.dumps({"error": {"message": SECRET}})),
            refusing(500, SECRET),
            answering(Pieces([f"data: {SECRET}\n\n".encode()])),
            answering(Pieces([sse({"error": {"message": SECRET}})])),
            answering(Pieces([b"data: ", SECRET.encode()], httpx.ReadError(SECRET))),
            answering(Pieces([SECRET.encode()]), "text/html"),
            answering(Pieces([SECRET.encode()]), "application/json"),
        ],
    )
    async def test_neither_key_nor_body_reach_exception_or_log(
        self, handler: Handler, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        with pytest.raises(ModelFailure) as caught:
            await chunks_of(model_at(handler))
        shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
        for record in caplog.records:
            shown += record.getMessage() + str(record.__dict__)
        assert SECRET not in shown
        assert KEY not in shown

    async def test_a_date_is_compared_with_the_clock(self) -> None:
        now = datetime.datetime.now(datetime.UTC)
        for hours, low, high in ((1, 3000, 3600), (-1, 0, 0)):
            date = format_datetime(now + datetime.timedelta(hours=hours), usegmt=True)
            model = model_at(refusing(503, "", retry_after=date))
            delay = (await failure_of(model)).retry_after
            assert delay is not None
            assert low <= delay <= high

    @pytest.mark.parametrize(
        "body",
        [
            Pieces([b"{"], httpx.ReadError("x")),
            Pieces([b"x" * 1024 * 1024, b"x"]),
            Pieces([b""], httpx.DecodingError("x")),
        ],
    )
    async def test_an_unreadable_refusal_is_still_classified(self, body: Pieces) -> None:
        failure = await failure_of(model_at(lambda _: httpx.Response(429, stream=body)))
        assert failure.reason == "rate_limit"
        assert body.closed

    async def test_a_failed_attempt_keeps_failing(self) -> None:
        async with model_at(answering(Pieces([b"data: x\n\n"]))).stream(HELLO) as chunks:
            for _ in range(2):
                with pytest.raises(ModelFailure):
                    await anext(chunks)

    async def test_a_finished_attempt_stays_finished(self) -> None:
        async with model_at(answering(Pieces([HI]))).stream(HELLO) as chunks:
            assert len([chunk async for chunk in chunks]) == 2
            with pytest.raises(StopAsyncIteration):
                await anext(chunks)


class TestLeaving:
    async def test_cancelling_between_chunks_closes_the_response(self) -> None:
        body = Endless(sse(text_chunk("Hi"), done=False))
        with trio.CancelScope() as scope:
            async with model_at(answering(body)).stream(HELLO) as chunks:
                assert await anext(chunks) == TextDelta("Hi")
                scope.cancel()
                await anext(chunks)
        assert scope.cancelled_caught
        assert body.closed

    async def test_cancelling_a_wait_for_bytes_closes_the_response(self) -> None:
        body = Endless(sse(text_chunk("Hi"), done=False))
        scope = trio.CancelScope()
        seen: list[object] = []

        async def read() -> None:
            with scope:
                async with model_at(answering(body)).stream(HELLO) as chunks:
                    seen.append(await anext(chunks))
                    await anext(chunks)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            with trio.fail_after(5):
                await body.waiting.wait()
            scope.cancel()
        assert scope.cancelled_caught
        assert seen == [TextDelta("Hi")]
        assert body.closed

    async def test_cancelling_while_a_refusal_is_read_closes_the_response(self) -> None:
        body = Endless(b"{")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(chunks_of, model_at(lambda _: httpx.Response(500, stream=body)))
            with trio.fail_after(5):
                await body.waiting.wait()
            nursery.cancel_scope.cancel()
        assert body.closed

    async def test_leaving_early_closes_the_response(self) -> None:
        body = Endless(sse(text_chunk("Hi"), done=False))
        with trio.fail_after(5):
            async with model_at(answering(body)).stream(HELLO) as chunks:
                async for _ in chunks:
                    break
        assert body.closed

    async def test_leaving_without_reading_closes_the_response(self) -> None:
        body = Endless()
        with trio.fail_after(5):
            async with model_at(answering(body)).stream(HELLO):
                pass
        assert body.closed

    @staticmethod
    async def _break_while_reading(body: Endless) -> None:
        async with model_at(answering(body)).stream(HELLO) as chunks:
            await anext(chunks)
            raise ZeroDivisionError

    async def test_an_error_of_the_reader_passes_through(self) -> None:
        body = Endless(sse(text_chunk("Hi"), done=False))
        with pytest.raises(ZeroDivisionError):
            await self._break_while_reading(body)
        assert body.closed

    @pytest.mark.filterwarnings(ABANDONED)
    async def test_a_flood_after_the_end_is_not_read_for_ever(self) -> None:
        flood = (b":" * 65536 for _ in iter(int, 1))

        def pieces() -> Any:
            yield HI
            yield from flood

        assert (await completed_of(model_at(answering(Pieces(pieces()))))).text == "Hi"

    async def test_a_hanging_close_does_not_hang_the_attempt(
        self, autojump_clock: MockClock
    ) -> None:
        class Stuck(Endless):
            async def aclose(self) -> None:
                await trio.sleep_forever()

        start = trio.current_time()
        async with model_at(answering(Stuck())).stream(HELLO):
            pass
        assert trio.current_time() - start == pytest.approx(5)


class TestClient:
    @pytest.fixture
    def model(self) -> OpenAICompatibleModel:
        return OpenAICompatibleModel(api_key=None, base_url="http://127.0.0.1:9/v1", model="m")

    async def test_a_model_without_client_must_be_entered(
        self, model: OpenAICompatibleModel
    ) -> None:
        with pytest.raises(RuntimeError, match="async with"):
            await chunks_of(model)
        async with model as entered:
            assert entered is model
            assert (await failure_of(model)).reason == "network"
        with pytest.raises(RuntimeError, match="async with"):
            await chunks_of(model)

    async def test_it_can_be_entered_again_and_by_several(
        self, model: OpenAICompatibleModel
    ) -> None:
        for _ in range(2):
            async with model:
                async with model:
                    pass
                assert (await failure_of(model)).reason == "network"

    async def test_the_hosts_client_stays_open(self) -> None:
        client = httpx.AsyncClient(transport=httpx.MockTransport(Recorder()))
        async with client:
            async with model_at(Recorder(), client=client) as model:
                await completed_of(model)
            assert not client.is_closed
            assert (await completed_of(model)).text == "Hi"

    async def test_closing_works_while_cancelled(self, model: OpenAICompatibleModel) -> None:
        with trio.CancelScope() as scope:
            async with model:
                scope.cancel()
        with pytest.raises(RuntimeError, match="async with"):
            await chunks_of(model)
