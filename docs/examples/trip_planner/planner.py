"""The offline planner: the next reply to a conversation, from fixed phrases alone.

A pure stand-in for a model, so that the demo works without a provider and always in the same
way. It sees what a model sees, the chat messages and the offered tools, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rungent.demo.answers import conclude, explain, failed, not_understood
from rungent.demo.phrases import PlannedCall, parse

__all__ = ["Reply", "plan"]

ChatMessage = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """The planner's turn: calls to make, or else the final text."""

    text: str = ""
    calls: tuple[PlannedCall, ...] = ()


def plan(messages: Sequence[ChatMessage], tools: Sequence[str]) -> Reply:
    """Reply to chat messages in the provider's form; `tools` are the names offered.

    How far a request has come is read from the messages after the last user message: each
    assistant message with calls is one step done. So the planner needs no memory, and goes on
    correctly after a pause or in another process.
    """
    request, since = _latest_request(messages)
    parsed = parse(request, tools)
    if parsed.unclear:
        return Reply(not_understood(parsed.unclear) if parsed.steps else explain())
    results = [str(message.get("content", "")) for message in since if _is(message, "tool")]
    done = sum(1 for message in since if _is(message, "assistant") and message.get("tool_calls"))
    left = parsed.steps[done:]
    if left and not failed(results):
        return Reply(calls=left[0])
    if not results:
        return Reply(explain())
    return Reply(conclude(results, left_out=sum(len(step) for step in left)))


def _is(message: ChatMessage, role: str) -> bool:
    return message.get("role") == role


def _latest_request(messages: Sequence[ChatMessage]) -> tuple[str, Sequence[ChatMessage]]:
    """The text of the last user message, and what followed it."""
    for index in range(len(messages) - 1, -1, -1):
        if _is(messages[index], "user"):
            content = messages[index].get("content")
            return content if isinstance(content, str) else "", messages[index + 1 :]
    return "", ()
