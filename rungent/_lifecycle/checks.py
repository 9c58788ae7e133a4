"""May this call run? The checks before an execution, in their fixed order."""

from __future__ import annotations

from rungent._lifecycle.actions import (
    AnswerProgress,
    AskApproval,
    AskUser,
    Invocation,
    Refuse,
    RunTools,
    SkipDuplicate,
)
from rungent._lifecycle.transition import Facts
from rungent.interactions import (
    InvalidInteraction,
    TrustedInteractionResponse,
    parse_request,
)
from rungent.records import Call, Run
from rungent.tools.arguments import ArgumentErrors, Arguments
from rungent.tools.builtin import REPORT_PROGRESS, REQUEST_INPUT, parse_progress
from rungent.tools.decorator import AnyTool
from rungent.tools.normal_form import fingerprint

__all__ = ["check_call", "streak_key", "trusted_answer"]

Checked = RunTools | Refuse | AnswerProgress | AskUser | AskApproval | SkipDuplicate


def streak_key(name: str, digest: str) -> str:
    """The key under which identical calls are counted and remembered."""
    return f"{name}:{digest}"


def check_call(run: Run, call: Call, facts: Facts) -> Checked:
    """How to handle a call: built-in, known, answered, valid, new, approved, then executable."""
    if call.name == REPORT_PROGRESS:
        return _check_progress(call)
    if call.name == REQUEST_INPUT:
        return _check_question(call)
    tool = facts.agent.tool(call.name)
    if tool is None:
        # Clients know of an approved call; of any other unknown one they never heard.
        return Refuse(call, "unknown_tool", key=_raw_key(call), shown=call.approved)
    if tool.requires_interaction_response and trusted_answer(run, call) is None:
        return Refuse(call, "interaction_required", key=_key(call, tool))
    try:
        arguments = tool.arguments.check(call.arguments if call.frozen is None else call.frozen)
    except ArgumentErrors as invalid:
        details = tuple(dict(detail) for detail in invalid.details)
        return Refuse(call, "invalid_arguments", key=_raw_key(call), details=details)
    return _check_valid(run, call, tool, arguments)


def trusted_answer(run: Run, call: Call) -> TrustedInteractionResponse | None:
    """The answer that a call may use: the one it was frozen with, else that of the drive."""
    return call.answer if call.answer is not None else run.state.answer


def _check_valid(run: Run, call: Call, tool: AnyTool, arguments: Arguments) -> Checked:
    key = streak_key(tool.name, arguments.fingerprint)
    if call.frozen is not None and arguments.normalised != call.frozen:
        # The tool changed meanwhile: what would run is not what was approved.
        return Refuse(call, "invalid_arguments", key=key)
    repeatable = tool.effect == "read" or not tool.deduplicate
    if not (repeatable or call.made or call.approved) and key in run.state.done:
        return SkipDuplicate(call, tool, run.state.done[key])
    invocation = Invocation(call, tool, arguments)
    if tool.approval == "always" and not call.approved:
        return AskApproval(invocation)
    return RunTools((invocation,))


def _check_question(call: Call) -> AskUser | Refuse:
    try:
        return AskUser(call, parse_request(call.arguments))
    except InvalidInteraction as broken:
        return Refuse(call, "invalid_interaction", key=_raw_key(call), note=str(broken))


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
    return streak_key(call.name, f"raw:{fingerprint(call.arguments)}")
