"""What does an outcome change? A pure function from a run to its next state."""

from __future__ import annotations

from typing import assert_never

from rungent._lifecycle.actions import Refuse
from rungent._lifecycle.checks import streak_key
from rungent._lifecycle.endings import fail
from rungent._lifecycle.outcomes import (
    ConfirmationFailed,
    ConfirmationMade,
    DuplicateSkipped,
    Initialised,
    ModelGaveUp,
    ModelReplied,
    NothingDone,
    Outcome,
    ProgressReported,
    Retrying,
    RunBroke,
    Ticked,
    ToolBroke,
    ToolFinished,
    ToolInDoubt,
    Wrote,
)
from rungent._lifecycle.pauses import ask_approval
from rungent._lifecycle.refusals import refuse
from rungent._lifecycle.tool_outcomes import (
    duplicate_skipped,
    left_in_doubt,
    nothing_done,
    open_call,
    tool_broke,
    tool_finished,
)
from rungent._lifecycle.transition import (
    Facts,
    MessageDraft,
    Transition,
    event,
    with_calls,
    with_state,
)
from rungent._lifecycle.turns import progress_row, wait_row
from rungent.events import Draft, Usage
from rungent.records import Call, Progress, Run, RunStatus, ToolCall

__all__ = ["advance"]


def advance(run: Run, outcome: Outcome, facts: Facts) -> Transition:
    """The transition that `outcome` causes in a running run."""
    match outcome:
        case Initialised():
            return _initialised(run, outcome)
        case Wrote():
            return _wrote(run, outcome.text, facts)
        case Ticked():
            return _ticked(run, outcome, facts)
        case Retrying():
            return _retrying(run, outcome)
        case ModelReplied():
            if not outcome.unwritten:
                return _model_replied(run, outcome, facts)
            wrote = _wrote(run, outcome.unwritten, facts)
            return wrote.then(_model_replied(wrote.run, outcome, facts))
        case ModelGaveUp() | RunBroke():
            return fail(run, outcome.code, facts)
        case ProgressReported():
            return _progress_reported(run, outcome)
        case ToolFinished():
            return tool_finished(run, outcome, facts)
        case ToolBroke():
            return tool_broke(run, outcome, facts)
        case NothingDone():
            return nothing_done(run, open_call(run, outcome.call_id))
        case ToolInDoubt():
            return left_in_doubt(run, open_call(run, outcome.call_id), facts)
        case DuplicateSkipped():
            return duplicate_skipped(run, outcome, facts)
        case ConfirmationMade():
            return ask_approval(run, outcome, facts)
        case ConfirmationFailed():
            return _unconfirmed(run, outcome, facts)
        case _:
            assert_never(outcome)


def _initialised(run: Run, outcome: Initialised) -> Transition:
    ready = with_state(
        run,
        initialised=True,
        activity=outcome.activity,
        activity_open=outcome.activity is not None,
    )
    events: tuple[Draft, ...] = ()
    if outcome.activity is not None:
        events = (wait_row(ready, outcome.activity.message, "running"),)
    if outcome.call is None:
        return Transition(ready, events)
    return Transition(
        with_state(ready, turn=_turn((outcome.call,))),
        events,
        (MessageDraft("assistant", "", tool_calls=(outcome.call,)),),
    )


def _turn(calls: tuple[ToolCall, ...]) -> tuple[Call, ...]:
    turn: list[Call] = []
    for call in calls:
        assert call.id is not None, "calls get their ids before they reach a run"
        turn.append(Call(id=call.id, name=call.name, arguments=call.arguments))
    return tuple(turn)


def _close_wait(run: Run, facts: Facts) -> tuple[Run, tuple[Draft, ...]]:
    """Complete the model-wait row if it is open."""
    if not run.state.activity_open:
        return run, ()
    texts = run.state.activity
    if texts is None:
        message = facts.catalog.text("model_continued")
    else:
        message = texts.message if run.model_steps <= 1 else texts.continuation_message
    return with_state(run, activity_open=False), (wait_row(run, message, "completed"),)


def _ticked(run: Run, outcome: Ticked, facts: Facts) -> Transition:
    texts = run.state.activity
    if texts is None:
        message = facts.catalog.text("model_waiting")
    elif run.model_steps >= 2:
        message = texts.continuation_message
    else:
        message = texts.waiting_message if outcome.first else texts.long_wait_message
    row = wait_row(run, message, "running", elapsed_seconds=outcome.elapsed_seconds)
    opened = run if run.state.activity_open else with_state(run, activity_open=True)
    return Transition(opened, (row,))


def _retrying(run: Run, outcome: Retrying) -> Transition:
    retrying = event(
        "model.retrying",
        {
            "step": run.model_steps,
            "retry": outcome.retry,
            "max_retries": outcome.max_retries,
            "delay_seconds": outcome.delay_seconds,
            "reason": outcome.reason,
            "tool_name": outcome.tool_name,
        },
    )
    return Transition(run, (Draft("message.reset", {}), retrying))


def _wrote(run: Run, text: str, facts: Facts) -> Transition:
    closed, rows = _close_wait(run, facts)
    return Transition(closed, (*rows, Draft("message.delta", {"delta": text})))


def _model_replied(run: Run, outcome: ModelReplied, facts: Facts) -> Transition:
    closed, rows = _close_wait(run, facts)
    closed = with_state(
        closed, step_open=False, recoveries=0, usage=_sum(run.state.usage, outcome.usage)
    )
    completed = Draft(
        "model.completed",
        {
            "step": run.model_steps,
            "outcome": "tools" if outcome.calls else "final",
            "finish_reason": outcome.finish_reason,
            "provider_request_id": outcome.provider_request_id,
            "usage": outcome.usage,
        },
    )
    if not outcome.calls:
        return _final(closed, (*rows, completed), outcome.text)
    shown = outcome.text_shown or outcome.unwritten
    reset = (Draft("message.reset", {}),) if shown else ()
    return Transition(
        with_state(closed, turn=_turn(outcome.calls)),
        (*rows, completed, *reset),
        (MessageDraft("assistant", outcome.text, tool_calls=outcome.calls),),
    )


def _final(run: Run, events: tuple[Draft, ...], text: str) -> Transition:
    ended = with_state(run, answer=None).model_copy(
        update={"status": RunStatus.COMPLETED, "lease": None}
    )
    return Transition(
        ended,
        (
            *events,
            Draft("message.completed", {"content": text}),
            Draft("run.completed", {"status": "completed", "usage": run.state.usage}),
        ),
        (MessageDraft("assistant", text, public=True),),
    )


def _sum(total: Usage | None, more: Usage | None) -> Usage | None:
    if total is None or more is None:
        return total if more is None else more
    return Usage(
        input_tokens=total["input_tokens"] + more["input_tokens"],
        output_tokens=total["output_tokens"] + more["output_tokens"],
        total_tokens=total["total_tokens"] + more["total_tokens"],
    )


def _unconfirmed(run: Run, outcome: ConfirmationFailed, facts: Facts) -> Transition:
    call, arguments = outcome.invocation.call, outcome.invocation.arguments
    key = streak_key(call.name, arguments.fingerprint)
    return refuse(run, Refuse(call, "approval_unavailable", key=key), facts)


def _progress_reported(run: Run, outcome: ProgressReported) -> Transition:
    call = open_call(run, outcome.call_id)
    progress = Progress(message=outcome.message, public=outcome.public)
    changed = call.model_copy(update={"progress": progress})
    return Transition(with_calls(run, changed), (progress_row(run, changed, "running"),))
