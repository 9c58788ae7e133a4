"""The offline model over a real loopback connection: wire format, key, errors."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import trio

from rungent.demo.offline_model import OFFLINE_MODEL, OfflineModel, serve_offline_model


@asynccontextmanager
async def offline() -> AsyncIterator[tuple[httpx.AsyncClient, OfflineModel]]:
    with trio.fail_after(300):
        async with trio.open_nursery() as nursery:
            endpoint: OfflineModel = await nursery.start(serve_offline_model)
            async with httpx.AsyncClient(
                trust_env=False,
                base_url=endpoint.base_url,
                headers={"Authorization": f"Bearer {endpoint.api_key}"},
            ) as client:
                yield client, endpoint
            nursery.cancel_scope.cancel()


def body(text: str, *tools: str, **more: Any) -> dict[str, Any]:
    return {
        "model": OFFLINE_MODEL,
        "messages": [{"role": "system", "content": "…"}, {"role": "user", "content": text}],
        "tools": [
            {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
            for name in tools
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
    } | more


def events(response: httpx.Response) -> list[Any]:
    frames = response.content.decode().split("\n\n")
    assert frames.pop() == ""
    assert all(frame.startswith("data: ") for frame in frames)
    assert frames.pop() == "data: [DONE]"
    return [json.loads(frame.removeprefix("data: ")) for frame in frames]


async def test_text_is_streamed_word_by_word_and_ends_with_usage() -> None:
    async with offline() as (client, _):
        response = await client.post("/chat/completions", json=body("Hello"))
    assert response.headers["content-type"].startswith("text/event-stream")
    *stream, last = events(response)
    deltas = [chunk["choices"][0]["delta"] for chunk in stream]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert deltas[-1] == {}
    words = [delta["content"] for delta in deltas[1:-1]]
    assert len(words) > 20
    assert "".join(words).startswith("I am the offline planner of this demo")
    assert [c["choices"][0]["finish_reason"] for c in stream][-2:] == [None, "stop"]
    assert {chunk["object"] for chunk in stream} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in [*stream, last]}) == 1
    assert last["choices"] == []
    usage = last["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 0


async def test_calls_are_streamed_in_fragments_with_their_index() -> None:
    text = "Show my trip and move Asakusa Temple to day 2"
    async with offline() as (client, _):
        response = await client.post(
            "/chat/completions", json=body(text, "list_places", "move_place")
        )
    *stream, _ = events(response)
    pieces = [
        call for chunk in stream for call in chunk["choices"][0]["delta"].get("tool_calls", ())
    ]
    heads = [piece for piece in pieces if "id" in piece]
    assert [head["index"] for head in heads] == [0, 1]
    assert [head["function"]["name"] for head in heads] == ["list_places", "move_place"]
    assert {head["type"] for head in heads} == {"function"}
    assert len({head["id"] for head in heads}) == 2
    arguments = ["", ""]
    for piece in pieces:
        arguments[piece["index"]] += piece["function"]["arguments"]
    assert [json.loads(text) for text in arguments] == [
        {},
        {"name": "Asakusa Temple", "day_number": 2},
    ]
    assert len(pieces) > 4
    assert stream[-1]["choices"][0]["finish_reason"] == "tool_calls"


async def test_usage_is_sent_only_where_it_is_wanted() -> None:
    async with offline() as (client, _):
        response = await client.post("/chat/completions", json=body("Hello", stream_options=None))
    assert all(chunk["choices"] for chunk in events(response))


async def test_a_request_without_stream_gets_one_completion() -> None:
    async with offline() as (client, _):
        said = await client.post("/chat/completions", json=body("Hello", stream=False))
        called = await client.post(
            "/chat/completions", json=body("Add a day", "add_day", stream=False)
        )
    assert said.json()["choices"][0]["message"]["content"].startswith("I am the offline")
    assert said.json()["choices"][0]["finish_reason"] == "stop"
    (call,) = called.json()["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "add_day", "arguments": "{}"}
    assert called.json()["choices"][0]["finish_reason"] == "tool_calls"


async def test_the_model_names_itself_and_hides_its_key() -> None:
    async with offline() as (client, endpoint):
        response = await client.get("/models")
    assert [model["id"] for model in response.json()["data"]] == [OFFLINE_MODEL]
    assert endpoint.api_key not in repr(endpoint)


@pytest.mark.parametrize("key", ["", "Bearer wrong", "Bearer ümlaut"])
async def test_another_key_is_refused(key: str) -> None:
    async with offline() as (client, _):
        for method, path in (("GET", "/models"), ("POST", "/chat/completions")):
            response = await client.request(
                method, path, json=body("Hello"), headers={b"Authorization": key.encode()}
            )
            assert response.status_code == 401
            assert response.json()["error"]["code"] == "invalid_api_key"


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"", 400, "invalid_request"),
        (b"[]", 400, "invalid_request"),
        (b'{"messages": 1}', 400, "invalid_request"),
        (b"\xff", 400, "invalid_request"),
        (b'{"messages": [], "model": "gpt"}', 404, "model_not_found"),
    ],
)
async def test_a_malformed_request_gets_an_error_object(
    content: bytes, status: int, code: str
) -> None:
    async with offline() as (client, _):
        response = await client.post("/chat/completions", content=content)
    assert response.status_code == status
    assert response.json()["error"]["code"] == code


async def test_odd_messages_and_tools_do_no_harm() -> None:
    odd = body("Hello", messages=[1, None, {"role": "user", "content": [{"type": "text"}]}])
    odd["tools"] = [None, {"function": "x"}, {}]
    async with offline() as (client, _):
        assert (await client.post("/chat/completions", json=odd)).status_code == 200


async def test_every_start_has_its_own_key_and_address() -> None:
    async with offline() as (_, first), offline() as (_, second):
        assert first.api_key != second.api_key
        assert first.base_url != second.base_url
