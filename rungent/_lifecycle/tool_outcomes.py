"""How an executed or skipped call settles: envelope, ledger row, events."""

from __future__ import annotations

from rungent._lifecycle.outcomes import DuplicateSkipped, ToolBroke, ToolFinished
from rungent._lifecycle.transition import Facts, Transition, event, with_state
from rungent._lifecycle.turns import (
    claim_of,
    close_progress,
    error_content,
    key_of,
    settle,
    tool_identity,
)
from rungent.records import Call, Run, Settled
from rungent.text import dump_json, to_json_value
from rungent.tools.results import (
    ToolResult,
    duplicate_envelope,
    failed_result_envelope,
    success_envelope,
)

__all__ = ["duplicate_skipped", "tool_broke", "tool_finished"]


def _open_call(run: Run, call_id: str) -> Call:
    return next(call for call in run.state.turn if call.id == call_id)


def tool_finished(run: Run, outcome: ToolFinished, facts: Facts) -> Transition:
    """A tool returned: success, or a failing result with data for the model."""
    call, result = _open_call(run, outcome.call_id), outcome.result
    if not result.succeeded:
        return _result_failed(run, call, result, facts)
    settled = Settled(
        content=dump_json(success_envelope(result)), counts="success", key=key_of(call)
    )
    transition = settle(_remember(run, call, facts), call, settled)
    completed = event(
        "tool.completed",
        {
            **tool_identity(call, facts),
            "message": result.message,
            "public": to_json_value(result.public),
        },
    )
    claimed = Transition(run, claims=(claim_of(run, call, "succeeded", facts),))
    return claimed.then(transition).emitting(*close_progress(run, call, "completed"), completed)


def _remember(run: Run, call: Call, facts: Facts) -> Run:
    """A successful call that must not be repeated is remembered by its arguments."""
    tool = facts.agent.tool(call.name)
    if tool is None or tool.effect == "read" or not tool.deduplicate:
        return run
    return with_state(run, done={**run.state.done, key_of(call): call.id})


def _result_failed(run: Run, call: Call, result: ToolResult, facts: Facts) -> Transition:
    code = "tool_rejected"
    message = result.message or facts.catalog.text(code)
    content = dump_json(failed_result_envelope(result, message))
    failed = event(
        "tool.failed",
        {
            **tool_identity(call, facts),
            "code": code,
            "message": message,
            "public": to_json_value(result.public),
        },
    )
    return _failed(run, call, code, content, facts).emitting(failed)


def tool_broke(run: Run, outcome: ToolBroke, facts: Facts) -> Transition:
    """A tool gave no result that could be used."""
    call, code = _open_call(run, outcome.call_id), outcome.code
    failed = event(
        "tool.failed",
        {**tool_identity(call, facts), "code": code, "message": facts.catalog.text(code)},
    )
    return _failed(run, call, code, error_content(code, facts), facts).emitting(failed)


def _failed(run: Run, call: Call, code: str, content: str, facts: Facts) -> Transition:
    settled = Settled(content=content, counts="failure", key=key_of(call))
    claimed = Transition(run, claims=(claim_of(run, call, "failed", facts, code),))
    transition = claimed.then(settle(run, call, settled))
    return transition.emitting(*close_progress(run, call, "failed"))


def duplicate_skipped(run: Run, outcome: DuplicateSkipped, facts: Facts) -> Transition:
    """A repetition settles as a success without an execution."""
    call = _open_call(run, outcome.call_id)
    message = facts.catalog.text("deduplicated")
    content = dump_json(duplicate_envelope(outcome.data, message))
    completed = event(
        "tool.completed",
        {**tool_identity(call, facts), "message": message, "deduplicated": True},
    )
    return settle(run, call, Settled(content=content, counts="success")).emitting(completed)
