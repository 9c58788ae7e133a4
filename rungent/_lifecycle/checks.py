"""May this call run? The checks before an execution, in their fixed order."""

from __future__ import annotations

import hashlib

from rungent._lifecycle.actions import (
    AnswerProgress,
    Invocation,
    Refuse,
    RunTools,
    SkipDuplicate,
)
from rungent._lifecycle.transition import Facts
from rungent.records import Call, Run
from rungent.text import canonical_json
from rungent.tools.arguments import ArgumentErrors, Arguments
from rungent.tools.builtin import REPORT_PROGRESS, REQUEST_INPUT, parse_progress
from rungent.tools.decorator import AnyTool

__all__ = ["check_call", "streak_key"]

Checked = RunTools | Refuse | AnswerProgress | SkipDuplicate


def streak_key(name: str, digest: str) -> str:
    """The key under which identical calls are counted and remembered."""
    return f"{name}:{digest}"


def check_call(run: Run, call: Call, facts: Facts) -> Checked:
    """How to handle a call: built-in, known, answered, valid, new, approved, then executable."""
    if call.name == REPORT_PROGRESS:
        return _check_progress(call)
    if call.name == REQUEST_INPUT:
        return Refuse(
            call,
            "invalid_interaction",
            key=_raw_key(call),
            note="Questions cannot be asked here. Continue without asking.",
        )
    tool = facts.agent.tool(call.name)
    if tool is None:
        return Refuse(call, "unknown_tool", key=_raw_key(call), shown=False)
    if tool.requires_interaction_response and run.state.answer is None and call.answer is None:
        return Refuse(call, "interaction_required", key=_key(call, tool))
    try:
        arguments = tool.arguments.check(call.arguments)
    except ArgumentErrors as invalid:
        details = tuple(dict(detail) for detail in invalid.details)
        return Refuse(call, "invalid_arguments", key=_raw_key(call), details=details)
    return _check_valid(run, call, tool, arguments)


def _check_valid(run: Run, call: Call, tool: AnyTool, arguments: Arguments) -> Checked:
    key = streak_key(tool.name, arguments.fingerprint)
    if tool.effect != "read" and tool.deduplicate and key in run.state.done:
        return SkipDuplicate(call, tool, run.state.done[key])
    if tool.approval == "always" and not call.approved:
        return Refuse(call, "approval_unavailable", key=key)
    return RunTools((Invocation(call, tool, arguments),))


def _check_progress(call: Call) -> AnswerProgress | Refuse:
    try:
        return AnswerProgress(call, parse_progress(call.arguments))
    except ValueError:
        return Refuse(call, "invalid_progress", key=_raw_key(call), shown=False)


def _key(call: Call, tool: AnyTool) -> str:
    try:
        return streak_key(tool.name, tool.arguments.check(call.arguments).fingerprint)
    except ArgumentErrors:
        return _raw_key(call)


def _raw_key(call: Call) -> str:
    """Calls that do not validate are told apart by their raw arguments."""
    raw = canonical_json(call.arguments).encode()
    return streak_key(call.name, "raw:" + hashlib.sha256(raw).hexdigest())
