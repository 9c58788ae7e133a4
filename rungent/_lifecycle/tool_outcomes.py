"""How an executed or skipped call settles: envelope, ledger row, events, follow-up."""

from __future__ import annotations

from rungent._lifecycle.asking import ask_again, ask_data, may_ask, may_ask_again
from rungent._lifecycle.follow_ups import Continuation, ask_directed, continuation_of, defer
from rungent._lifecycle.outcomes import DuplicateSkipped, ToolBroke, ToolFinished
from rungent._lifecycle.transition import Facts, Transition, event, with_calls, with_state
from rungent._lifecycle.turns import (
    claim_of,
    close_progress,
    consumed,
    error_content,
    key_of,
    settle,
    tool_identity,
)
from rungent.events import Draft
from rungent.interactions import InteractionRequest
from rungent.records import Call, Run, Settled
from rungent.text import dump_json
from rungent.tools.asking import AgainAsk, KeptAsk
from rungent.tools.results import (
    ToolResult,
    duplicate_envelope,
    error_envelope,
    failed_result_envelope,
    success_envelope,
)

__all__ = [
    "broken_off",
    "duplicate_skipped",
    "left_in_doubt",
    "nothing_done",
    "open_call",
    "task_ended",
    "tool_broke",
    "tool_finished",
]


def open_call(run: Run, call_id: str) -> Call:
    """The call of the open turn with this id."""
    return next(call for call in run.state.turn if call.id == call_id)


def tool_finished(run: Run, outcome: ToolFinished, facts: Facts) -> Transition:
    """A tool returned: a success, a failing result, a question, or work for the host."""
    call, result = open_call(run, outcome.call_id), outcome.result
    run = consumed(run, call, facts)
    if not result.succeeded:
        return _result_failed(run, call, result, "tool_rejected", facts)
    if result.deferred is not None:
        if result.deferred.task_id in run.state.used_tasks:
            return _broke(run, call, "tool_error", facts)
        return defer(run, call, result.deferred, facts)
    match result.interaction:
        case KeptAsk() as kept if may_ask(call, kept):
            return ask_data(run, call, kept, facts)
        case AgainAsk() as again if may_ask_again(call):
            return ask_again(run, call, again, facts)
        case KeptAsk() | AgainAsk():
            return _broke(run, call, "tool_error", facts)
        case InteractionRequest() | None:
            pass
    return _succeeded(run, call, result, outcome.follow_up_id, facts)


def task_ended(
    run: Run, call_id: str, result: ToolResult, follow_up_id: str, facts: Facts
) -> Transition:
    """The host completed the task of a call: its result settles the call."""
    call = open_call(run, call_id)
    if not result.succeeded:
        return _result_failed(run, call, result, "external_task_failed", facts)
    return _succeeded(run, call, result, follow_up_id, facts)


def _succeeded(
    run: Run, call: Call, result: ToolResult, follow_up_id: str | None, facts: Facts
) -> Transition:
    continuation: Continuation | None = None
    if result.interaction is not None:
        continuation = continuation_of(result.interaction, facts.agent)
        if continuation is None or follow_up_id is None:
            return _question_refused(run, call, facts)
    settled = Settled(
        content=dump_json(success_envelope(result)), counts="success", key=key_of(call)
    )
    transition = settle(_remember(run, call, facts), call, settled)
    completed = event(
        "tool.completed",
        {**tool_identity(call, facts), "message": result.message, "public": result.public},
    )
    claimed = Transition(run, claims=(claim_of(run, call, "succeeded", facts),))
    done = claimed.then(transition).emitting(*close_progress(run, call, "completed"), completed)
    if continuation is None or follow_up_id is None:
        return done
    return done.then(ask_directed(done.run, continuation, follow_up_id, facts))


def _remember(run: Run, call: Call, facts: Facts) -> Run:
    """A successful call that must not be repeated is remembered by its arguments."""
    tool = facts.agent.tool(call.name)
    if tool is None or tool.effect == "read" or not tool.deduplicate:
        return run
    return with_state(run, done={**run.state.done, key_of(call): call.id})


def _result_failed(run: Run, call: Call, result: ToolResult, code: str, facts: Facts) -> Transition:
    message = result.message or facts.catalog.text(code)
    content = dump_json(failed_result_envelope(result, message, code=code))
    failed = event(
        "tool.failed",
        {
            **tool_identity(call, facts),
            "code": code,
            "message": message,
            "public": result.public,
        },
    )
    return _failed(run, call, code, content, facts).emitting(failed)


def tool_broke(run: Run, outcome: ToolBroke, facts: Facts) -> Transition:
    """A tool gave no result that could be used."""
    call = open_call(run, outcome.call_id)
    return _broke(consumed(run, call, facts), call, outcome.code, facts)


def broken_off(run: Run, call: Call, code: str, facts: Facts) -> Transition:
    """A begun call cannot go on. It says nothing about its arguments, so it does not count."""
    text = facts.catalog.text(code)
    failed = event("tool.failed", {**tool_identity(call, facts), "code": code, "message": text})
    claimed = Transition(run, claims=(claim_of(run, call, "failed", facts, code),))
    settled = settle(run, call, Settled(content=error_content(code, facts)))
    return claimed.then(settled).emitting(*close_progress(run, call, "failed"), failed)


def _broke(run: Run, call: Call, code: str, facts: Facts) -> Transition:
    failed = event(
        "tool.failed",
        {**tool_identity(call, facts), "code": code, "message": facts.catalog.text(code)},
    )
    return _failed(run, call, code, error_content(code, facts), facts).emitting(failed)


def _question_refused(run: Run, call: Call, facts: Facts) -> Transition:
    """A tool's own question broke a rule: the model cannot mend that by asking again."""
    code = "invalid_interaction"
    text = facts.catalog.text(code)
    content = dump_json(error_envelope(code, text, retryable=False))
    failed = event("tool.failed", {**tool_identity(call, facts), "code": code, "message": text})
    return _failed(run, call, code, content, facts).emitting(failed)


def _failed(run: Run, call: Call, code: str, content: str, facts: Facts) -> Transition:
    settled = Settled(content=content, counts="failure", key=key_of(call))
    claimed = Transition(run, claims=(claim_of(run, call, "failed", facts, code),))
    transition = claimed.then(settle(run, call, settled))
    return transition.emitting(*close_progress(run, call, "failed"))


def nothing_done(run: Run, call: Call) -> Transition:
    """A cut off execution had no effect: the call is still to be executed."""
    assert call.opened is not None
    opened = call.opened.model_copy(update={"nothing_done": True})
    return Transition(with_calls(run, call.model_copy(update={"opened": opened})))


def left_in_doubt(run: Run, call: Call, facts: Facts) -> Transition:
    """A cut off execution that must not be repeated: nobody knows what it did."""
    code, run = "outcome_unknown", consumed(run, call, facts)
    settled = Settled(content=error_content(code, facts), key=key_of(call))
    failed = {**tool_identity(call, facts), "code": code, "message": facts.catalog.text(code)}
    closing = Transition(run, claims=(claim_of(run, call, "in_doubt", facts, code),))
    return closing.then(settle(run, call, settled)).emitting(
        *close_progress(run, call, "failed"), Draft("tool.failed", failed)
    )


def duplicate_skipped(run: Run, outcome: DuplicateSkipped, facts: Facts) -> Transition:
    """A repetition settles as a success without an execution."""
    call = open_call(run, outcome.call_id)
    message = facts.catalog.text("deduplicated")
    content = dump_json(duplicate_envelope(outcome.data, message))
    completed = event(
        "tool.completed",
        {**tool_identity(call, facts), "message": message, "deduplicated": True},
    )
    return settle(run, call, Settled(content=content, counts="success")).emitting(completed)
