"""Assembling a model request from the transcript, within the context budget."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rungent.llm.port import Echo
from rungent.records import Message
from rungent.text import dump_json

__all__ = ["BYTES_PER_TOKEN", "Entry", "entry_of", "fit", "system_text"]

BYTES_PER_TOKEN = 4

PROGRESS_GUIDANCE = (
    "While you work in several steps, you may call report_progress beside other tool calls to "
    "tell the user in one short sentence what you are doing. State only facts the user may see, "
    "never call it alone, and do not use it for simple answers."
)
LEFT_OUT = "Earlier turns of this conversation were left out because of their length."
CORRECTION = (
    "Your last tool call could not be read. Call the tool again with arguments that are one "
    "compact, complete and valid JSON object."
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A transcript message in the provider's form, with its share of the request in bytes."""

    wire: Mapping[str, Any]
    size: int


def entry_of(message: Message, echo: Echo | None = None) -> Entry:
    """The provider's form of a stored message.

    `echo` returns the unknown keys of each call and the reasoning fields that came with it.
    """
    wire: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.role == "tool":
        wire["tool_call_id"] = message.tool_call_id
        wire["name"] = message.name
    if message.tool_calls:
        extras = echo.calls if echo is not None else ()
        wire["tool_calls"] = [
            {
                **(extras[index] if index < len(extras) else {}),
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": dump_json(call.arguments)},
            }
            for index, call in enumerate(message.tool_calls)
        ]
    if echo is not None:
        wire = {**echo.message, **wire}
    return Entry(wire, len(dump_json(wire).encode()) + len(","))


def system_text(instructions: str, context: str, *, left_out: bool, correction: bool) -> str:
    """The system message: instructions, guidance, context and notes, joined by blank lines."""
    parts = [instructions, PROGRESS_GUIDANCE]
    if context.strip():
        parts.append(f"Current context:\n{context}")
    if left_out:
        parts.append(LEFT_OUT)
    if correction:
        parts.append(CORRECTION)
    return "\n\n".join(parts)


def fit(cuts: Sequence[int], before: Sequence[int], most: int) -> int:
    """The index of the first entry to send, so that the rest has at most `most` bytes.

    `before` has the bytes before each entry, and at the end those of all. Whole exchanges are
    left out, oldest first: `cuts` are the entries at which they begin, the first of all among
    them. The last exchange, that of the current run, is always sent.
    """
    enough = bisect_left(cuts, before[-1] - most, key=before.__getitem__)
    return cuts[min(enough, len(cuts) - 1)]
