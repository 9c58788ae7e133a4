"""The provider corpus: recorded shapes of real answers with the outcome each must have."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rungent.llm import ModelCompleted, ModelFailure

FOLDER = Path(__file__).parent / "quirks"

# The corpus has its own names for the two terminal reasons.
_REASONS = {"content_filter": "content_filtered", "provider_rejected": "model_rejected"}


@dataclass(frozen=True)
class StreamCase:
    """The complete body of one 200 answer and what must come of it."""

    name: str
    body: bytes
    content_type: str
    reset: bool
    expect: dict[str, Any]

    def pieces(self, size: int) -> list[bytes]:
        return [self.body[at : at + size] for at in range(0, len(self.body), size)]


@dataclass(frozen=True)
class HttpCase:
    """One answer that is no stream, and how it is classified."""

    name: str
    status: int
    headers: dict[str, str]
    body: bytes
    expect: dict[str, Any]


@dataclass
class Outcome:
    """What an attempt came to, in the words of the corpus."""

    kind: str
    reason: str = ""
    completed: ModelCompleted | None = None
    deltas: list[str] = field(default_factory=list[str])


def stream_cases() -> list[StreamCase]:
    index: dict[str, Any] = json.loads((FOLDER / "index.json").read_text("utf-8"))
    return [
        StreamCase(
            name,
            (FOLDER / case["file"]).read_bytes(),
            case["content_type"],
            case.get("connection") == "reset",
            case["expect"],
        )
        for name, case in index["cases"].items()
    ]


def http_cases() -> list[HttpCase]:
    document: dict[str, Any] = json.loads((FOLDER / "http.json").read_text("utf-8"))
    return [
        HttpCase(
            case["name"],
            case["status"],
            case["headers"],
            case["raw"].encode() if "raw" in case else json.dumps(case["body"]).encode(),
            case["expect"],
        )
        for case in document["cases"]
    ]


def failed(failure: ModelFailure, deltas: list[str]) -> Outcome:
    kind = "fail" if failure.terminal else "retry"
    return Outcome(kind, failure.reason, deltas=deltas)


def succeeded(completed: ModelCompleted, deltas: list[str]) -> Outcome:
    """An empty reply is a success of the adapter and a retry for the runtime."""
    if not completed.text.strip() and not completed.tool_calls:
        return Outcome("retry", "empty_completion", completed, deltas)
    return Outcome("ok", "", completed, deltas)


def check(outcome: Outcome, expect: dict[str, Any]) -> None:
    """Hold `outcome` against the preferred expectation; the second-best ones are not used."""
    assert outcome.kind == expect["outcome"]
    if outcome.kind != "ok":
        assert outcome.reason == _REASONS.get(expect["reason"], expect["reason"])
        return
    completed = outcome.completed
    assert completed is not None
    assert completed.text == expect["content"] == "".join(outcome.deltas)
    assert completed.finish_reason == expect["finish"]
    assert [(call.name, call.arguments) for call in completed.tool_calls] == [
        (call["name"], call["arguments"]) for call in expect["tool_calls"]
    ]
    assert [call.id for call in completed.tool_calls] == [
        call.get("id") for call in expect["tool_calls"]
    ]
    for word in expect.get("forbidden", ()):
        assert word not in "".join(outcome.deltas)
        assert word not in completed.text
    if "echo" in expect:
        assert completed.echo is not None
        assert completed.echo.calls == (expect["echo"],)
    usage = expect.get("usage")
    if usage is not None:
        assert completed.usage == {
            "input_tokens": usage["prompt_tokens"],
            "output_tokens": usage["completion_tokens"],
            "total_tokens": usage["total_tokens"],
        }
