"""What goes to the provider is exact and always encodable."""

import json
from types import MappingProxyType
from typing import Any

import pytest

from rungent.llm import ModelRequest
from rungent.llm.outgoing import request_body
from rungent.llm.port import JsonObject

TOOL: JsonObject = {
    "type": "function",
    "function": {"name": "t", "description": "d", "parameters": {}},
}
USER: JsonObject = {"role": "user", "content": "Grüße 🗼"}


def body(request: ModelRequest, **options: Any) -> bytes:
    given: dict[str, Any] = {"model": "m", "tool_choice": "auto", "extra_body": {}}
    return request_body(request, **{**given, **options})


def test_the_body_is_exact() -> None:
    sent = body(ModelRequest([USER], [TOOL]), extra_body={"seed": 1}, tool_choice="required")
    assert json.loads(sent) == {
        "model": "m",
        "messages": [USER],
        "tools": [TOOL],
        "tool_choice": "required",
        "stream": True,
        "stream_options": {"include_usage": True},
        "seed": 1,
    }
    assert "Grüße 🗼".encode() in sent


def test_the_request_overrides_the_model() -> None:
    assert json.loads(body(ModelRequest([USER], model="other")))["model"] == "other"


def test_without_tools_nothing_about_tools_is_sent() -> None:
    assert json.loads(body(ModelRequest([USER]))).keys() == {
        "model",
        "messages",
        "stream",
        "stream_options",
    }


def test_mappings_of_any_kind_are_sent() -> None:
    message = MappingProxyType({"role": "user", "content": "x"})
    assert json.loads(body(ModelRequest((message,))))["messages"] == [dict(message)]


def test_half_characters_cannot_break_the_encoding() -> None:
    sent = body(ModelRequest([{"role": "user", "content": "a\ud83d\x00"}]))
    assert json.loads(sent)["messages"][0]["content"] == "a\ufffd\x00"


def test_non_finite_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        body(ModelRequest([{"role": "user", "content": float("nan")}]))
