"""Decide what an HTTP answer means for the attempt: read it, repeat it or give up.

Source: docs/model-adapter.md
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from pydantic import JsonValue

from .delays import provider_delay
from .port import JsonObject, ModelFailure
from .wire import TOOL_USE_FAILED, parse_json

__all__ = ["body_kind", "classify_status"]

_QUOTA = "insufficient_quota"


def body_kind(content_type: str) -> Literal["events", "json"] | None:
    """How to read the body of a 2xx answer; None for a type that holds no reply."""
    media = content_type.partition(";")[0].strip().lower()
    if media in ("", "text/event-stream"):
        return "events"
    if media == "application/json" or media.endswith("+json"):
        return "json"
    return None


def classify_status(
    status: int, headers: Mapping[str, str], body: bytes, now: datetime
) -> ModelFailure:
    """The failure that an answer with a status outside 200–299 stands for.

    Of the body only error code, error type and a delay are read, and nothing is kept.
    """
    try:
        document = parse_json(body)
    except ModelFailure:
        document = None
    error = _error_object(document)
    delay = provider_delay(headers, document, now)
    if status == 408:
        return ModelFailure("timeout", retry_after=delay)
    if status >= 500:
        return ModelFailure("server_error", retry_after=delay)
    if status == 429 and not _is_final(headers, error):
        return ModelFailure("rate_limit", retry_after=delay)
    if status == 400 and error.get("code") == TOOL_USE_FAILED:
        return ModelFailure("invalid_tool_arguments", retry_after=delay)
    return ModelFailure("model_rejected", terminal=True)


def _is_final(headers: Mapping[str, str], error: JsonObject) -> bool:
    return _QUOTA in (error.get("code"), error.get("type")) or (
        headers.get("x-should-retry", "").strip().lower() == "false"
    )


def _error_object(document: JsonValue) -> JsonObject:
    """The object that holds code and type: in `error`, at the top, or in a list of one."""
    if isinstance(document, list) and document:
        document = document[0]
    if not isinstance(document, dict):
        return {}
    error = document.get("error")
    return error if isinstance(error, dict) else document
