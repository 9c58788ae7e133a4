"""Small helpers that the tool tests share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from rungent.identity import Identity
from rungent.tools import AnyTool, ToolContext, tool


def context(**more: Any) -> ToolContext:
    values: dict[str, Any] = {
        "identity": Identity("ada"),
        "session_id": "ses_1",
        "run_id": "run_1",
        "call_id": "call_1",
        **more,
    }
    return ToolContext.create(**values)


def reading(function: Callable[..., Awaitable[object]]) -> AnyTool:
    """Declare `function` as a read tool."""
    return tool(effect="read", approval="never", description="A sample.")(function)
