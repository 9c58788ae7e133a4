"""Opening an action: what is stored before it is performed, joined with what led to it.

Whatever needs no input or output is done here at once. So one commit holds the outcome of the
last action and the opening of the next, and a run of many steps costs few transactions.
"""

from __future__ import annotations

from typing import assert_never

from rungent._lifecycle.actions import (
    Action,
    AnswerProgress,
    AskApproval,
    AskUser,
    BreakOff,
    CallModel,
    GiveUp,
    Initialise,
    Invocation,
    LeaveInDoubt,
    Park,
    Reconcile,
    Refuse,
    RunTools,
    SkipDuplicate,
)
from rungent._lifecycle.advance import advance
from rungent._lifecycle.choose import next_action
from rungent._lifecycle.endings import fail
from rungent._lifecycle.outcomes import Outcome
from rungent._lifecycle.pauses import ask_user
from rungent._lifecycle.refusals import refuse
from rungent._lifecycle.tool_outcomes import broken_off, left_in_doubt
from rungent._lifecycle.transition import Facts, Transition, event, with_calls, with_state
from rungent._lifecycle.turns import claim_of, settle, tool_identity
from rungent.events import Draft
from rungent.records import Call, Opened, Run, Settled
from rungent.text import dump_json
from rungent.tools.results import progress_envelope

__all__ = ["Pending", "proceed"]

Pending = Park | Initialise | CallModel | RunTools | AskApproval | SkipDuplicate | Reconcile
"""The actions that somebody has to perform, or to wait for."""


def proceed(run: Run, outcome: Outcome | None, facts: Facts) -> tuple[Transition, Pending]:
    """Apply an outcome, do everything that is decided by it, and open the next action.

    Returns what to commit, and then to perform. The action's calls are as stored by that commit.
    """
    transition = advance(run, outcome, facts) if outcome is not None else Transition(run)
    while True:
        action = next_action(transition.run, facts)
        opened, pending = _open(transition.run, action, facts)
        transition = transition.then(opened)
        if pending is not None:
            return transition, pending


def _open(run: Run, action: Action, facts: Facts) -> tuple[Transition, Pending | None]:
    match action:
        case Park() | SkipDuplicate() | AskApproval() | Reconcile():
            return Transition(run), action
        case Initialise():
            if facts.agent.run_activity is None and facts.agent.run_initializer is None:
                return Transition(with_state(run, initialised=True)), None
            return Transition(run), action
        case CallModel():
            return _open_step(run, action, facts), action
        case RunTools():
            return _open_tools(run, action, facts)
        case Refuse():
            return refuse(run, action, facts), None
        case AnswerProgress():
            return _answer_progress(run, action), None
        case AskUser():
            return ask_user(run, action.call, action.spec, facts), None
        case LeaveInDoubt():
            return left_in_doubt(run, action.call, facts), None
        case BreakOff():
            return broken_off(run, action.call, action.code, facts), None
        case GiveUp():
            return fail(run, action.code, facts), None
        case _:
            assert_never(action)


def _open_step(run: Run, action: CallModel, facts: Facts) -> Transition:
    state = run.state.model_copy(update={"step_open": True})
    opened = run.model_copy(update={"state": state, "model_steps": action.step})
    if not action.resumed:
        return Transition(opened, (Draft("model.started", {"step": action.step}),))
    retrying = {
        "step": action.step,
        "retry": run.state.recoveries,
        "max_retries": facts.max_recoveries,
        "delay_seconds": 0,
        "reason": "worker_lost",
    }
    return Transition(opened, (Draft("message.reset", {}), Draft("model.retrying", retrying)))


def _open_tools(run: Run, action: RunTools, facts: Facts) -> tuple[Transition, RunTools]:
    invocations = tuple(_opened(invocation, facts) for invocation in action.invocations)
    calls = [invocation.call for invocation in invocations]
    transition = Transition(
        with_calls(run, *calls),
        events=tuple(
            Draft("tool.started", tool_identity(opened.call, facts))
            for opened, before in zip(invocations, action.invocations, strict=True)
            if not _goes_on(before)
        ),
        claims=tuple(claim_of(run, call, "started", facts) for call in calls),
    )
    return transition, RunTools(invocations)


def _goes_on(invocation: Invocation) -> bool:
    """Whether this is the second half of an execution that was announced already."""
    return invocation.continuing is not None and not invocation.call.continued


def _opened(invocation: Invocation, facts: Facts) -> Invocation:
    call, earlier = invocation.call, invocation.call.opened
    if _goes_on(invocation):
        return _with_call(invocation, call.model_copy(update={"continued": True}))
    opened = Opened(
        effect=invocation.tool.effect.value,
        arguments=invocation.arguments.normalised,
        digest=invocation.arguments.fingerprint,
        attempts=1 if earlier is None else earlier.attempts + 1,
        started_at=facts.now if earlier is None else earlier.started_at,
    )
    return _with_call(invocation, call.model_copy(update={"opened": opened}))


def _with_call(invocation: Invocation, call: Call) -> Invocation:
    return Invocation(call, invocation.tool, invocation.arguments, invocation.continuing)


def _answer_progress(run: Run, action: AnswerProgress) -> Transition:
    row = {
        "id": action.call.id,
        "step": run.model_steps,
        "kind": "progress",
        "message": action.message,
        "status": "completed",
    }
    settled = Settled(content=dump_json(progress_envelope()))
    return settle(run, action.call, settled).emitting(event("activity.updated", row))
