"""The adapter against a real peer: llama.cpp's server with a scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
import trio

from rungent.llm import ModelFailure, ModelRequest, OpenAICompatibleModel, TextDelta
from tests.modelserver.fixture import KEY, ModelServer

from .attempts import chunks_of, completed_of, failure_of

STRING = {"type": "string"}
INTEGER = {"type": "integer"}


def tool(name: str, /, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {
        "type": "function",
        "function": {"name": name, "description": name, "parameters": parameters},
    }


TOOLS = [
    tool("move_place", name=STRING, day_number=INTEGER),
    tool("remove_day", day_number=INTEGER),
    tool("list_places"),
]


def script(name: str, *later: dict[str, Any], padding: int = 0) -> ModelRequest:
    content = "x" * padding + f" script:{name} "
    return ModelRequest([{"role": "user", "content": content}, *later], TOOLS)


def model_of(server: ModelServer, **options: Any) -> OpenAICompatibleModel:
    given: dict[str, Any] = {
        "api_key": KEY,
        "base_url": server.base_url,
        "model": "scripted",
        "timeout_seconds": 30,
    }
    return OpenAICompatibleModel(**given | options)


@pytest.fixture
async def model(scripted_server: ModelServer) -> AsyncIterator[OpenAICompatibleModel]:
    async with model_of(scripted_server) as entered:
        yield entered


async def test_text_is_streamed(model: OpenAICompatibleModel) -> None:
    chunks = await chunks_of(model, script("hello"))
    texts = [chunk.text for chunk in chunks if isinstance(chunk, TextDelta)]
    assert texts == ["Hello", " from", " a scripted", " model."]
    completed = await completed_of(model, script("hello"))
    assert completed.text == "Hello from a scripted model."
    assert completed.finish_reason == "stop"
    usage = completed.usage
    assert usage is not None
    assert usage["input_tokens"] + usage["output_tokens"] == usage["total_tokens"]


async def test_a_call_comes_with_the_text_before_it(model: OpenAICompatibleModel) -> None:
    completed = await completed_of(model, script("move"))
    assert completed.text.strip() == "Let me move it."
    assert completed.finish_reason == "tool_calls"
    (call,) = completed.tool_calls
    assert (call.name, call.arguments) == ("move_place", {"name": "Tokyo Tower", "day_number": 2})
    assert call.id


async def test_a_result_is_answered_with_text(model: OpenAICompatibleModel) -> None:
    function = {"name": "move_place", "arguments": '{"name":"Tokyo Tower","day_number":2}'}
    call: dict[str, Any] = {"id": "c1", "type": "function", "function": function}
    request = script(
        "move",
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "name": "move_place", "content": "{}"},
    )
    completed = await completed_of(model, request)
    assert completed.text == "Tokyo Tower is now on day 2."


async def test_parallel_calls_keep_their_order_and_ids(model: OpenAICompatibleModel) -> None:
    first, second = (await completed_of(model, script("two"))).tool_calls
    assert (first.name, first.arguments) == ("move_place", {"name": "Asakusa", "day_number": 1})
    assert (second.name, second.arguments) == ("remove_day", {"day_number": 3})
    assert first.id != second.id


async def test_a_call_without_arguments_has_an_empty_object(model: OpenAICompatibleModel) -> None:
    (call,) = (await completed_of(model, script("noargs"))).tool_calls
    assert (call.name, call.arguments) == ("list_places", {})


async def test_endless_arguments_are_malformed(scripted_server: ModelServer) -> None:
    async with model_of(scripted_server, extra_body={"max_tokens": 40}) as model:
        failure = await failure_of(model, script("long"))
    assert (failure.reason, failure.terminal) == ("invalid_tool_arguments", False)
    assert failure.tool_name == "move_place"


async def test_endless_text_is_cut_and_says_so(scripted_server: ModelServer) -> None:
    async with model_of(scripted_server, extra_body={"max_tokens": 5}) as model:
        completed = await completed_of(model, script("text_loop"))
    assert completed.text.startswith("again again")
    assert completed.finish_reason == "length"


async def test_split_characters_and_odd_separators_arrive_whole(
    model: OpenAICompatibleModel,
) -> None:
    completed = await completed_of(model, script("uni"))
    assert completed.text == "sep:\u2028end 🗼 e\u0301."


async def test_thoughts_are_private(model: OpenAICompatibleModel) -> None:
    completed = await completed_of(model, script("think"))
    assert completed.text.strip() == "Here is the plan."


async def test_a_wrong_key_is_refused(scripted_server: ModelServer) -> None:
    async with model_of(scripted_server, api_key="sk-wrong") as model:
        failure = await failure_of(model, script("hello"))
    assert (failure.reason, failure.terminal) == ("model_rejected", True)


async def test_an_unknown_path_is_refused(scripted_server: ModelServer) -> None:
    nowhere = scripted_server.base_url + "/nowhere"
    async with model_of(scripted_server, base_url=nowhere) as model:
        failure = await failure_of(model, script("hello"))
    assert (failure.reason, failure.terminal) == ("model_rejected", True)


async def test_too_long_a_prompt_is_refused(model: OpenAICompatibleModel) -> None:
    failure = await failure_of(model, script("hello", padding=9000))
    assert (failure.reason, failure.terminal) == ("model_rejected", True)


async def test_a_killed_server_leaves_the_stream_incomplete(
    own_server: Callable[..., ModelServer],
) -> None:
    server = own_server()
    async with model_of(server) as model:
        with pytest.raises(ModelFailure) as caught:
            await _read_until_killed(model, server)
        assert (caught.value.reason, caught.value.terminal) == ("stream_incomplete", False)
        assert (await failure_of(model, script("hello"))).reason == "network"


async def _read_until_killed(model: OpenAICompatibleModel, server: ModelServer) -> None:
    seen = 0
    with trio.fail_after(300):
        async with model.stream(script("text_loop")) as chunks:
            async for _ in chunks:
                seen += 1
                if seen == 5:
                    server.kill()


async def test_cancelling_frees_the_server_for_the_next_request(
    own_server: Callable[..., ModelServer],
) -> None:
    """The server has two slots; endless replies that nobody reads would keep both busy."""
    async with model_of(own_server()) as model:
        for _ in range(3):
            with trio.CancelScope() as scope:
                async with model.stream(script("text_loop")) as chunks:
                    await anext(chunks)
                    scope.cancel()
                    await anext(chunks)
            assert scope.cancelled_caught
        with trio.fail_after(300):
            assert (await completed_of(model, script("hello"))).finish_reason == "stop"


class Wiretap(httpx.AsyncHTTPTransport):
    """Keeps what every response body holds."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = bytearray()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = Tapped(response.stream, self.heard)
        return response


class Tapped(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream, heard: bytearray) -> None:
        self._inner = inner
        self._heard = heard

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._heard += chunk
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


async def test_keep_alive_comments_are_no_chunks(own_server: Callable[..., ModelServer]) -> None:
    server = own_server(N_CTX="131072", PING="1")
    tap = Wiretap()
    async with httpx.AsyncClient(transport=tap) as client:
        model = model_of(server, client=client)
        chunks = await chunks_of(model, script("hello", padding=40_000))
    assert tap.heard.startswith(b":")
    assert len(chunks) == tap.heard.count(b"data: ")
    assert "".join(c.text for c in chunks if isinstance(c, TextDelta)).startswith("Hello from")
