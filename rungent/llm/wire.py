"""Read a provider's JSON objects into typed parts, forgiving whatever may be absent or null.

Nothing here raises over a field of an unexpected type: such a field is absent.
Source: docs/model-adapter.md
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from .delays import retry_delay_in
from .port import JsonObject, ModelFailure, Usage

__all__ = [
    "TOOL_USE_FAILED",
    "Delta",
    "failure_in",
    "parse_json",
    "read_deltas",
    "read_usage",
    "usable_int",
]

TOOL_USE_FAILED = "tool_use_failed"
_REASONING_PREFIXES = ("reasoning", "thinking")
_RETRYABLE_CLIENT_ERRORS = (408, 429)


@dataclass(frozen=True, slots=True)
class Delta:
    """What one chunk adds to the reply.

    `reasoning` holds the private fields that may have to go back to the provider.
    """

    text: str
    refusal: str
    reasoning: JsonObject
    tool_calls: tuple[JsonObject, ...]
    function_call: JsonObject | None
    finish_reason: str


def parse_json(data: str | bytes) -> JsonValue:
    """The JSON value in `data`. Raises ModelFailure("invalid_response") if there is none."""
    value: JsonValue = None
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        # Raised below, outside the handler: the decoder's error holds the whole document.
        readable = False
    else:
        readable = True
    if not readable:
        raise ModelFailure("invalid_response")
    return value


def read_deltas(event: JsonObject) -> Iterator[Delta]:
    """The part of `event` that counts: its choice with index 0 or without index, at most one."""
    choices = event.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if not isinstance(choice, dict):
            continue
        index = choice.get("index")
        if isinstance(index, (int, float)) and index != 0:
            continue
        yield _read_choice(choice)
        return


def _read_choice(choice: JsonObject) -> Delta:
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        delta = choice.get("message")
    fields: JsonObject = delta if isinstance(delta, dict) else {}
    text, refusal = _read_content(fields.get("content"))
    calls = fields.get("tool_calls")
    legacy = fields.get("function_call")
    finish = choice.get("finish_reason")
    return Delta(
        text=text,
        refusal=refusal + _text(fields.get("refusal")),
        reasoning={
            name: value
            for name, value in fields.items()
            if value is not None and name.startswith(_REASONING_PREFIXES)
        },
        tool_calls=tuple(c for c in calls if isinstance(c, dict))
        if isinstance(calls, list)
        else (),
        function_call=legacy if isinstance(legacy, dict) else None,
        finish_reason=_text(finish),
    )


def _read_content(content: JsonValue) -> tuple[str, str]:
    """Public text and refusal in a content field; parts of other kinds are private."""
    if isinstance(content, str):
        return content, ""
    texts: list[str] = []
    refusals: list[str] = []
    for part in content if isinstance(content, list) else ():
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and part.get("type", "text") == "text":
            texts.append(_text(part.get("text")))
        elif isinstance(part, dict) and part.get("type") == "refusal":
            refusals.append(_text(part.get("refusal")))
    return "".join(texts), "".join(refusals)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def usable_int(value: JsonValue) -> int | None:
    """`value` if it is a JSON integer. Python counts true and false as integers; JSON does not."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def read_usage(event: JsonObject) -> Usage | None:
    """The token counts of `event`; None unless both input and output are integers >= 0."""
    usage = event.get("usage")
    if not isinstance(usage, dict):
        return None
    read, written, total = (
        usable_int(usage.get(name))
        for name in ("prompt_tokens", "completion_tokens", "total_tokens")
    )
    if read is None or written is None or read < 0 or written < 0:
        return None
    if total is None or total < 0:
        total = read + written
    return {"input_tokens": read, "output_tokens": written, "total_tokens": total}


def failure_in(event: JsonObject, *, named_error: bool = False) -> ModelFailure | None:
    """The error that `event` reports, if any.

    With `named_error` the event itself said that it is an error, so that an object without an
    `error` field is the error.
    """
    error = event.get("error")
    if not error:
        if not named_error:
            return None
        error = dict(event)
    code = error.get("code") if isinstance(error, dict) else error
    delay = retry_delay_in(error)
    if code == TOOL_USE_FAILED:
        return ModelFailure("invalid_tool_arguments", retry_after=delay)
    status = _status(code)
    if status is not None and 400 <= status <= 499 and status not in _RETRYABLE_CLIENT_ERRORS:
        return ModelFailure("model_rejected", terminal=True)
    return ModelFailure("provider_error", retry_after=delay)


def _status(code: object) -> int | None:
    if isinstance(code, str) and len(code) == 3 and code.isascii() and code.isdigit():
        return int(code)
    return code if isinstance(code, int) and not isinstance(code, bool) else None
