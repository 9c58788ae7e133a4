"""Comparing what happened with what was expected. Pure.

Source: docs/baselines.md#checks.
"""

from __future__ import annotations

from collections.abc import Sequence

from rungent.events import Event
from rungent.testing.baseline.cases import BaselineCase, Match

__all__ = [
    "as_response",
    "final_text",
    "first_difference",
    "interactions_of",
    "surplus",
    "tokens_of",
    "tools_of",
]


def tools_of(events: Sequence[Event]) -> tuple[str, ...]:
    """The names of the tools that were executed, in order."""
    return tuple(event.data["name"] for event in events if event.type == "tool.started")


def interactions_of(events: Sequence[Event]) -> tuple[str, ...]:
    """The kinds of what was asked, in order."""
    return tuple(event.data["kind"] for event in events if event.type == "interaction.requested")


def final_text(events: Sequence[Event]) -> str | None:
    """The last final answer."""
    said = [event.data["content"] for event in events if event.type == "message.completed"]
    return said[-1] if said else None


def tokens_of(events: Sequence[Event]) -> int | None:
    """The tokens of all completed runs, as the model reported them."""
    used = [
        event.data["usage"]["total_tokens"]
        for event in events
        if event.type == "run.completed" and event.data.get("usage")
    ]
    return sum(used) if used else None


def first_difference(
    case: BaselineCase, tools: Sequence[str], interactions: Sequence[str], status: str
) -> str | None:
    """What differs first: tools, then interactions, then the status of the last run."""
    if not _matches(case.expected_tools, tools, case.tool_match):
        return _differ("tools", case.expected_tools, tools, case.tool_match)
    if not _matches(case.expected_interactions, interactions, case.interaction_match):
        wanted = case.expected_interactions
        return _differ("interactions", wanted, interactions, case.interaction_match)
    if status != case.expected_status:
        return f"status: expected {case.expected_status}, got {status}"
    return None


def _matches(expected: Sequence[str], actual: Sequence[str], match: Match) -> bool:
    if match == "exact":
        return list(expected) == list(actual)
    return surplus(expected, actual) == len(actual) - len(expected)


def _differ(what: str, expected: Sequence[str], actual: Sequence[str], match: Match) -> str:
    word = "in this order" if match == "contains" else "exactly"
    return f"{what}: expected {word} {_shown(expected)}, got {_shown(actual)}"


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def surplus(expected: Sequence[str], actual: Sequence[str]) -> int:
    """How many of `actual` are not part of the longest common subsequence with `expected`."""
    row = [0] * (len(expected) + 1)
    for name in actual:
        before = row[:]
        for place, wanted in enumerate(expected, start=1):
            row[place] = (
                before[place - 1] + 1 if name == wanted else max(row[place - 1], before[place])
            )
    return len(actual) - row[-1]


def as_response(kind: str, response: object) -> object:
    """The answer to send: a bare string for a choice is the id of the option."""
    if kind == "choice" and isinstance(response, str):
        return {"selected": [response]}
    return response
