"""Tools: how a host declares them, what they get, and what they give back."""

from __future__ import annotations

from rungent.tools.arguments import ArgumentErrors, ArgumentModel, Arguments
from rungent.tools.builtin import (
    BUILTIN_TITLES,
    REPORT_PROGRESS,
    REQUEST_INPUT,
    builtin_specs,
    function_spec,
    parse_progress,
)
from rungent.tools.confirmation import confirmation_text, render_confirmation
from rungent.tools.context import ReportProgress, ToolContext
from rungent.tools.decorator import (
    AnyTool,
    ApprovalPolicy,
    Confirmation,
    Reconcile,
    Tool,
    ToolEffect,
    tool,
)
from rungent.tools.messages import public_text
from rungent.tools.normal_form import fingerprint
from rungent.tools.results import (
    DeferredRequest,
    Envelope,
    ToolResult,
    answer_envelope,
    coerce_result,
    duplicate_envelope,
    error_envelope,
    failed_result_envelope,
    progress_envelope,
    success_envelope,
)

__all__ = [
    "BUILTIN_TITLES",
    "REPORT_PROGRESS",
    "REQUEST_INPUT",
    "AnyTool",
    "ApprovalPolicy",
    "ArgumentErrors",
    "ArgumentModel",
    "Arguments",
    "Confirmation",
    "DeferredRequest",
    "Envelope",
    "Reconcile",
    "ReportProgress",
    "Tool",
    "ToolContext",
    "ToolEffect",
    "ToolResult",
    "answer_envelope",
    "builtin_specs",
    "coerce_result",
    "confirmation_text",
    "duplicate_envelope",
    "error_envelope",
    "failed_result_envelope",
    "fingerprint",
    "function_spec",
    "parse_progress",
    "progress_envelope",
    "public_text",
    "render_confirmation",
    "success_envelope",
    "tool",
]
