"""The offline planner: the next reply to a conversation, from fixed phrases alone.

A pure stand-in for a model, so that the demo works without a provider and always in the same
way. It sees what a model sees, the chat messages and the offered tools, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from rungent.demo.answers import (
    conclude,
    explain,
    failed,
    not_understood,
    ready_import,
    user_response,
)
from rungent.demo.itinerary import looks_like_itinerary
from rungent.demo.phrases import ANSWER, PlannedCall, parse

__all__ = ["Reply", "plan"]

ChatMessage = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """The planner's turn: calls to make, or else the final text."""

    text: str = ""
    calls: tuple[PlannedCall, ...] = ()


def plan(messages: Sequence[ChatMessage], tools: Sequence[str]) -> Reply:
    """Reply to chat messages in the provider's form; `tools` are the names offered.

    How far a request has come is read from the messages after the last user message. So the
    planner needs no memory, and goes on correctly after a pause or in another process.
    """
    request, since = _latest_request(messages)
    if looks_like_itinerary(request) and "prepare_import" in tools:
        return _import(request, since)
    parsed = parse(request, tools)
    if parsed.unclear:
        return Reply(not_understood(parsed.unclear) if parsed.steps else explain())
    results = _results(since)
    left = _steps_left(parsed.steps, since)
    if left and not failed(results):
        return Reply(calls=tuple(_completed(call, results) for call in left[0]))
    if not results:
        return Reply(explain())
    return Reply(conclude(results, left_out=sum(len(step) for step in left)))


def _steps_left(
    steps: Sequence[tuple[PlannedCall, ...]], since: Sequence[ChatMessage]
) -> Sequence[tuple[PlannedCall, ...]]:
    """The steps that were not made yet.

    Calls that the runtime made after an answer stand in the conversation too; they are nobody's
    step, so a step is known by the names of its calls.
    """
    for names in map(_called, since):
        if steps and names == [call.name for call in steps[0]]:
            steps = steps[1:]
    return steps


def _completed(call: PlannedCall, results: Sequence[str]) -> PlannedCall:
    """The call with the answer of the last tool message where it is wanted."""
    if ANSWER not in call.arguments.values():
        return call
    answer = user_response(results[-1]) if results else ""
    filled = {k: answer if value == ANSWER else value for k, value in call.arguments.items()}
    return PlannedCall(call.name, filled)


def _import(request: str, since: Sequence[ChatMessage]) -> Reply:
    """Prepare an itinerary unless the host did, commit it when it is clear, then conclude."""
    results = _results(since)
    if not results:
        return Reply(calls=(PlannedCall("prepare_import", {"text": request}),))
    ready = ready_import(results)
    if ready is None or ["commit_import"] in map(_called, since):
        return Reply(conclude(results))
    draft_id, revision = ready
    arguments: dict[str, JsonValue] = {"draft_id": draft_id, "expected_revision": revision}
    return Reply(calls=(PlannedCall("commit_import", arguments),))


def _results(since: Sequence[ChatMessage]) -> list[str]:
    return [str(message.get("content", "")) for message in since if _is(message, "tool")]


def _called(message: ChatMessage) -> list[str]:
    """The names of the tools that an assistant message calls."""
    calls: Sequence[Mapping[str, Any]] = message.get("tool_calls") or ()
    return [str(call["function"]["name"]) for call in calls]


def _is(message: ChatMessage, role: str) -> bool:
    return message.get("role") == role


def _latest_request(messages: Sequence[ChatMessage]) -> tuple[str, Sequence[ChatMessage]]:
    """The text of the last user message, and what followed it."""
    for index in range(len(messages) - 1, -1, -1):
        if _is(messages[index], "user"):
            content = messages[index].get("content")
            return content if isinstance(content, str) else "", messages[index + 1 :]
    return "", ()
