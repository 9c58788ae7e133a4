"""A planner's reply in the chat completion wire format, whole or as stream chunks. No I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from rungent.demo.planner import Reply

__all__ = ["Envelope", "chunks", "completion", "sse_frame"]

_WORDS = re.compile(r"\s*\S+|\s+")
_PIECE = 12
Json = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Envelope:
    """What every chunk of one completion repeats."""

    id: str
    model: str
    created: int
    prompt_tokens: int

    def wrap(self, kind: str, choices: list[JsonValue]) -> Json:
        """A wire object of `kind` with these choices."""
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }

    def usage(self, reply: Reply) -> Json:
        """Words counted as tokens: the planner has no tokenizer, but the numbers are stable."""
        said = sum(1 for _ in _WORDS.finditer(reply.text))
        asked = sum(1 + len(call.arguments) for call in reply.calls)
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": said + asked,
            "total_tokens": self.prompt_tokens + said + asked,
        }


def completion(reply: Reply, envelope: Envelope, new_call_id: Callable[[], str]) -> Json:
    """The reply as one completion object, for a request without `stream`."""
    message: Json = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": new_call_id(),
                "type": "function",
                "function": {"name": call.name, "arguments": _arguments(call.arguments)},
            }
            for call in reply.calls
        ]
    choice: Json = {"index": 0, "message": message, "finish_reason": _finish(reply)}
    return {**envelope.wrap("chat.completion", [choice]), "usage": envelope.usage(reply)}


def chunks(
    reply: Reply, envelope: Envelope, new_call_id: Callable[[], str], *, include_usage: bool
) -> Iterator[Json]:
    """The reply as a stream: role, text word by word or calls in fragments, finish, usage."""
    yield _chunk(envelope, {"role": "assistant", "content": "" if reply.text else None})
    for word in _WORDS.findall(reply.text):
        yield _chunk(envelope, {"content": word})
    for index, call in enumerate(reply.calls):
        head: Json = {
            "index": index,
            "id": new_call_id(),
            "type": "function",
            "function": {"name": call.name, "arguments": ""},
        }
        yield _chunk(envelope, {"tool_calls": [head]})
        text = _arguments(call.arguments)
        for start in range(0, len(text), _PIECE):
            piece: Json = {"index": index, "function": {"arguments": text[start : start + _PIECE]}}
            yield _chunk(envelope, {"tool_calls": [piece]})
    yield _chunk(envelope, {}, finish=_finish(reply))
    if include_usage:
        yield {**envelope.wrap("chat.completion.chunk", []), "usage": envelope.usage(reply)}


def sse_frame(data: Json | str) -> bytes:
    """One server-sent event. A string is sent as it is: the closing `[DONE]`."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"data: {text}\n\n".encode()


def _chunk(envelope: Envelope, delta: Json, *, finish: str | None = None) -> Json:
    choice: Json = {"index": 0, "delta": delta, "finish_reason": finish}
    return envelope.wrap("chat.completion.chunk", [choice])


def _finish(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _arguments(arguments: Json) -> str:
    return json.dumps(arguments, ensure_ascii=False)
