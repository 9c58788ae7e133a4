"""Assemble the events of one attempt into visible chunks and one completed reply, without I/O.

```text
ServerEvent ──feed──> TextDelta | Heartbeat     one or more per event
            ──finish─> TextDelta*, ModelCompleted
            either may raise ModelFailure, which ends the attempt
```

Errors in the stream come first, then text, then fragments of calls, then the finish. Reading
goes on after a finish, because usage and other fields may follow it.
Source: docs/model-adapter.md
"""

from __future__ import annotations

from pydantic import JsonValue

from .calls import CallCollector
from .echo import ReasoningFields, build_echo
from .port import FinishReason, Heartbeat, ModelCompleted, ModelFailure, TextDelta, Usage
from .sse import DONE, ServerEvent
from .visible import VisibleText
from .wire import Delta, failure_in, parse_json, read_deltas, read_usage

__all__ = ["ReplyAssembler"]

_INTERRUPTED = frozenset({"error", "insufficient_system_resource"})


class ReplyAssembler:
    """Collects one reply.

    With `strip_think` a `<think>` block at the start of the text is private.
    """

    def __init__(self, *, strip_think: bool = True) -> None:
        self._text = VisibleText(strip_think=strip_think)
        self._refusal: list[str] = []
        self._reasoning = ReasoningFields()
        self._calls = CallCollector()
        self._finishes: set[str] = set()
        self._usage: Usage | None = None
        self._done = False

    @property
    def done(self) -> bool:
        """Whether `[DONE]` came: nothing after it is part of the reply."""
        return self._done

    @property
    def ended(self) -> bool:
        """Whether the reply is whole, so that a broken connection takes nothing away."""
        return self._done or bool(self._finishes)

    def feed(self, event: ServerEvent) -> list[TextDelta | Heartbeat]:
        """The chunks that `event` makes; none for `[DONE]`. Raises ModelFailure."""
        if event.data.strip() == DONE:
            self._done = True
            return []
        if event.name == "error":
            raise _reported_failure(event.data)
        value = parse_json(event.data)
        if not isinstance(value, dict):
            raise ModelFailure("invalid_response")
        return self._take(value)

    def finish(self, provider_request_id: str | None = None) -> list[TextDelta | ModelCompleted]:
        """The last text, if any was held back, and the completed reply. Raises ModelFailure."""
        if not self.ended:
            raise ModelFailure("stream_incomplete")
        late = self._text.flush()
        if not self._text.total().strip():
            late += self._text.add("".join(self._refusal))
        if self._calls and "length" in self._finishes:
            # Even if its JSON parses, nobody knows what the cut took away.
            raise ModelFailure("invalid_tool_arguments", tool_name=self._calls.last_name())
        calls = self._calls.finish()
        text = self._text.total()
        completed = ModelCompleted(
            text=text,
            tool_calls=calls,
            usage=self._usage,
            finish_reason=self._finish_reason(text),
            provider_request_id=provider_request_id,
            echo=build_echo(self._reasoning.joined(), self._calls.unknown()),
        )
        return [TextDelta(late), completed] if late else [completed]

    def _take(self, event: dict[str, JsonValue]) -> list[TextDelta | Heartbeat]:
        failure = failure_in(event)
        if failure is not None:
            raise failure
        self._usage = read_usage(event) or self._usage
        shown = "".join([self._take_delta(delta) for delta in read_deltas(event)])
        return [TextDelta(shown) if shown else Heartbeat()]

    def _take_delta(self, delta: Delta) -> str:
        if delta.finish_reason in _INTERRUPTED:
            raise ModelFailure("provider_error")
        if delta.finish_reason == "content_filter":
            raise ModelFailure("content_filtered", terminal=True)
        if delta.finish_reason:
            self._finishes.add(delta.finish_reason)
        for fragment in delta.tool_calls:
            self._calls.add(fragment)
        if delta.function_call is not None:
            self._calls.add_legacy(delta.function_call)
        if delta.refusal:
            self._refusal.append(delta.refusal)
        self._reasoning.add(delta.reasoning)
        return self._text.feed(delta.text)

    def _finish_reason(self, text: str) -> FinishReason:
        if self._calls:
            return "tool_calls"
        return "length" if "length" in self._finishes and text else "stop"


def _reported_failure(data: str) -> ModelFailure:
    """The failure in an event that is named `error`, whatever its data."""
    try:
        value = parse_json(data)
    except ModelFailure:
        value = None
    failure = failure_in(value, named_error=True) if isinstance(value, dict) else None
    return failure or ModelFailure("provider_error")
