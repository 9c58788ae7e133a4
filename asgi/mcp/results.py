"""The result of a tool call as MCP clients get it: the envelope as text. No I/O.

Source: docs/mcp.md#results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rungent.asgi.mcp.messages import JsonObject
from rungent.catalog import TOOL_FAILURES
from rungent.text import dump_json
from rungent.tools import Envelope, error_envelope

__all__ = ["call_result", "failure"]


def call_result(envelope: Envelope) -> JsonObject:
    """The envelope that a model reads, as the content of a call's result."""
    return {
        "content": [{"type": "text", "text": dump_json(envelope)}],
        "isError": envelope["tool_status"] == "error",
    }


def failure(
    code: str,
    *,
    message: str | None = None,
    retryable: bool | None = None,
    details: Sequence[dict[str, Any]] | None = None,
) -> Envelope:
    """The envelope of a call that failed with a code of the catalog."""
    text, again = TOOL_FAILURES[code]
    return error_envelope(code, message or text, again if retryable is None else retryable, details)
