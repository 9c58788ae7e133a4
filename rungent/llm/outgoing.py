"""Build the request body that is sent to a provider.

Source: docs/model-adapter.md
"""

from __future__ import annotations

import json

from pydantic import JsonValue

from rungent.text import storable

from .port import JsonObject, ModelRequest

__all__ = ["RESERVED_KEYS", "request_body"]

RESERVED_KEYS = frozenset({"model", "messages", "tools", "tool_choice", "stream", "stream_options"})
"""The keys of the body that are not the host's to set."""


def request_body(
    request: ModelRequest, *, model: str, tool_choice: JsonValue, extra_body: JsonObject
) -> bytes:
    """The JSON body of one attempt. Raises ValueError for what JSON cannot hold.

    Without tools neither `tools` nor `tool_choice` is sent: providers refuse an empty list.
    """
    body: dict[str, object] = {
        "model": request.model or model,
        "messages": list(request.messages),
        "stream": True,
        "stream_options": {"include_usage": True},
        **extra_body,
    }
    if request.tools:
        body |= {"tools": list(request.tools), "tool_choice": tool_choice}
    # `default=dict` lets mappings through that are no dict. Lone surrogates cannot be encoded.
    text = json.dumps(
        body, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=dict
    )
    return storable(text).encode()
