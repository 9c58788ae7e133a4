"""What the offline planner says after its tools ran: Markdown made from their results.

It reads the same envelopes that a real model gets, and claims nothing that they do not say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from rungent.demo.phrases import EXAMPLES

__all__ = ["conclude", "explain", "failed", "not_understood", "ready_import", "user_response"]

_LABEL = "I am the offline planner of this demo: a few phrases, no language model."

# Results that were a question, or its answer: what came of it is told by a later one.
_ASKING = frozenset({"asked", "open_questions", "user_response"})


def explain() -> str:
    """The answer to a sentence that holds no known phrase."""
    examples = "\n".join(f"- {example}" for example in EXAMPLES)
    return (
        f"{_LABEL} I understand sentences like these:\n\n{examples}\n\n"
        "Join several with *and* or *then*, or paste an itinerary with lines such as "
        "*Day 1: Ueno Park, Tokyo Tower*."
    )


def not_understood(parts: Sequence[str]) -> str:
    """The answer to a sentence of which a part is unclear: nothing of it is done."""
    quoted = "\n".join(f"> {part}" for part in parts)
    return f"I did not understand this part, so I changed nothing:\n\n{quoted}\n\n{explain()}"


def failed(contents: Sequence[str]) -> bool:
    """Whether one of these tool messages is not a success."""
    return any(_envelope(content).get("tool_status") != "success" for content in contents)


def ready_import(contents: Sequence[str]) -> tuple[str, int] | None:
    """Id and revision of the import that the last tool message prepared without open questions."""
    data: object = _envelope(contents[-1]).get("data") if contents else None
    if not _is_object(data) or data.get("open_questions") != 0:
        return None
    return str(data.get("draft_id")), int(data.get("revision", 0))


def user_response(content: str) -> str:
    """The user's words in the tool message of a text question; none for another message."""
    data: object = _envelope(content).get("data")
    said: object = data.get("user_response") if _is_object(data) else None
    return said if isinstance(said, str) else ""


def conclude(contents: Sequence[str], *, left_out: int = 0) -> str:
    """The final answer from the tool messages of a run, in order.

    `left_out` counts the calls that were planned but not made after a failure.
    """
    parts = [part for content in contents if (part := _render(_envelope(content)))]
    if left_out:
        counted = "The last step was" if left_out == 1 else f"The last {left_out} steps were"
        parts.append(f"- {counted} not carried out.")
    text = ""
    for part in parts:
        # Bullets of one list stay together; everything else is a paragraph of its own.
        glue = "\n" if part.startswith("- ") and _last_line(text).startswith("- ") else "\n\n"
        text = f"{text}{glue}{part}" if text else part
    return text


def _last_line(text: str) -> str:
    return text.rpartition("\n")[2]


def _envelope(content: str) -> Mapping[str, Any]:
    try:
        value: object = json.loads(content)
    except ValueError:
        return {}
    return value if _is_object(value) else {}


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _render(envelope: Mapping[str, Any]) -> str:
    data: object = envelope.get("data")
    message = envelope.get("message")
    if envelope.get("tool_status") != "success":
        return f"- **Not done:** {message or 'the operation failed.'}{_hint(data)}"
    if _is_object(data) and _ASKING & data.keys():
        return ""
    if _is_object(data) and "days" in data:
        return _trip(data)
    if _is_object(data) and "preferences" in data:
        return f"- Saved your preferences: {data['preferences']}."
    if _is_object(data) and "number" in data:
        return _day(data)
    return f"- {message or 'Done.'}"


def _hint(data: object) -> str:
    if _is_object(data) and data.get("candidates"):
        return " Please say its full name."
    return ""


def _trip(data: Mapping[str, Any]) -> str:
    days = "\n\n".join(_day(day) for day in data["days"])
    unplanned = ", ".join(data.get("unplanned", ())) or "nothing"
    text = f"**{data.get('title', 'Your trip')}**\n\n{days}\n\n*Unplanned:* {unplanned}"
    return f"{text}\n\n*Budget:* {data['budget']}" if data.get("budget") else text


def _day(data: Mapping[str, Any]) -> str:
    places = "\n".join(
        f"{number}. {place['name']} ({place['transport']})"
        for number, place in enumerate(data.get("places", ()), 1)
    )
    return f"**Day {data['number']}**\n\n{places or 'Nothing is planned yet.'}"
