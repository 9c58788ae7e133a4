"""The port to a language model: one use of `Model.stream` is one attempt at one reply.

```text
ModelRequest ──> async with model.stream(request) as chunks:
                     async for chunk in chunks:
                         TextDelta*  Heartbeat*      in any order, any number
                         ModelCompleted              exactly once, last
                 or raises ModelFailure, on entering as well as while iterating
```

A model makes one attempt and classifies what went wrong; the runtime repeats attempts, judges
empty replies, gives ids to calls and owns every deadline above the single wait for bytes.
Source: docs/model-adapter.md
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from pydantic import JsonValue

from rungent.events import Usage
from rungent.records import ToolCall

__all__ = [
    "Echo",
    "FailureReason",
    "FinishReason",
    "Heartbeat",
    "JsonObject",
    "Model",
    "ModelChunk",
    "ModelCompleted",
    "ModelFailure",
    "ModelRequest",
    "RetryPolicy",
    "RetryReason",
    "TextDelta",
    "ToolCall",
    "Usage",
]

JsonObject: TypeAlias = Mapping[str, JsonValue]

RetryReason = Literal[
    "timeout",
    "network",
    "rate_limit",
    "server_error",
    "provider_error",
    "stream_incomplete",
    "invalid_response",
    "empty_completion",
    "invalid_tool_arguments",
    "worker_lost",
]
"""Why an attempt is repeated."""

FailureReason = RetryReason | Literal["model_rejected", "content_filtered"]
"""`RetryReason` and the two reasons that come only with `terminal=True`."""

FinishReason = Literal["stop", "tool_calls", "length"]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the public text. Never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The provider sent a complete event without public text: it is alive."""


@dataclass(frozen=True, slots=True)
class Echo:
    """Private fields that the provider wants back with this assistant message.

    `message` holds the reasoning fields of the message. `calls` holds the unknown keys of each
    tool call, in the order of the calls and as many as there are calls; it is empty when no call
    has any. The runtime merges both into the later requests of the same drive and keeps
    them in memory only.
    """

    message: JsonObject = field(default_factory=dict[str, JsonValue])
    calls: tuple[JsonObject, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelCompleted:
    """The end of a successful attempt.

    `text` equals the concatenation of the attempt's `TextDelta`s. An empty reply is no failure
    here: the runtime judges it.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    finish_reason: FinishReason = "stop"
    provider_request_id: str | None = None
    echo: Echo | None = None


ModelChunk: TypeAlias = TextDelta | Heartbeat | ModelCompleted


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request, in the provider's chat form.

    `messages` are mappings with `role`, `content`, `tool_calls`, `tool_call_id` and `name`; the
    arguments of calls are already JSON text. `tools` are
    `{"type": "function", "function": {"name", "description", "parameters"}}` mappings. `model`
    overrides the model's own default name.
    """

    messages: Sequence[JsonObject]
    tools: Sequence[JsonObject] = ()
    model: str | None = None


class ModelFailure(Exception):
    """An attempt that gave no usable reply.

    `reason` is a `FailureReason`. `terminal` failures are never repeated: `content_filtered`
    keeps its name, every other reason ends the run as `model_rejected`. `retry_after` is the
    wait in seconds that the provider asked for. `tool_name` names the malformed call, if known.
    The text of the exception is the reason and nothing else, so that it is safe in any log.
    """

    def __init__(
        self,
        reason: FailureReason,
        *,
        terminal: bool = False,
        retry_after: float | None = None,
        tool_name: str | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason: FailureReason = reason
        self.terminal = terminal
        self.retry_after = retry_after
        self.tool_name = tool_name


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How the runtime repeats failed attempts of one model step.

    At most `max_retries` repetitions; before the n-th the wait is
    `min(max_delay_seconds, backoff_seconds * 2 ** (n - 1))`, shortened by a random share of at
    most `jitter` (0 to 1). Raises ValueError for negative or non-finite values.
    """

    max_retries: int = 3
    backoff_seconds: float = 0.5
    max_delay_seconds: float = 8.0
    jitter: float = 0.25

    def __post_init__(self) -> None:
        for name in ("max_retries", "backoff_seconds", "max_delay_seconds", "jitter"):
            value: float = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be finite and not negative")
        if self.max_retries != int(self.max_retries):
            raise ValueError("max_retries must be a whole number")
        if self.jitter > 1:
            raise ValueError("jitter must be at most 1")


class Model(Protocol):
    """A language model that makes one attempt per `stream`.

    A model that owns resources is also an async context manager; the runtime that serves it
    enters it, once at a time but possibly again after it left.
    """

    @property
    def retry_policy(self) -> RetryPolicy:
        """How often and how soon the runtime may repeat an attempt. A plain attribute will do."""
        ...

    def stream(
        self, request: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[ModelChunk]]:
        """Open one attempt.

        Entering the returned context manager and iterating raise ModelFailure; any other
        exception is a defect of the model. Leaving it, early or by cancellation, releases
        everything the attempt holds. A cancelled caller sees trio's Cancelled untouched.
        """
        ...
