"""What does this run need next? A pure function of the run and its agent."""

from __future__ import annotations

from rungent._lifecycle.actions import (
    Action,
    CallModel,
    GiveUp,
    Initialise,
    Invocation,
    LeaveInDoubt,
    Park,
    Reconcile,
    RunTools,
)
from rungent._lifecycle.asking import go_on
from rungent._lifecycle.checks import check_call
from rungent._lifecycle.transition import Facts
from rungent.records import Call, Run, RunStatus

__all__ = ["next_action", "open_calls"]


def open_calls(run: Run) -> tuple[Call, ...]:
    """The calls of the turn that are not settled, in the order in which they execute.

    Calls that the runtime made come first: an answered question is followed up before the rest
    of the turn it interrupted.
    """
    unsettled = [call for call in run.state.turn if call.settled is None]
    return tuple(sorted(unsettled, key=lambda call: not call.made))


def next_action(run: Run, facts: Facts) -> Action:
    """The one action that this run needs, or Park."""
    if run.status is not RunStatus.RUNNING:
        return Park()
    if run.state.recoveries > facts.max_recoveries:
        return GiveUp("recovery_exhausted")
    if not run.state.initialised:
        return Initialise()
    streak = run.state.streak
    if streak is not None and streak.count >= facts.max_identical_tool_failures:
        return GiveUp("tool_retry_exhausted")
    calls = open_calls(run)
    if calls:
        return _next_call(run, calls, facts)
    if run.state.step_open:
        return CallModel(run.model_steps, resumed=True)
    if run.model_steps >= facts.max_model_steps:
        return GiveUp("model_step_limit_exceeded")
    return CallModel(run.model_steps + 1)


def _next_call(run: Run, calls: tuple[Call, ...], facts: Facts) -> Action:
    first = calls[0]
    if first.asked is not None and not first.continued:
        return go_on(first, facts)
    if first.opened is not None:
        return _after_loss(first, facts)
    action = check_call(run, first, facts)
    if not isinstance(action, RunTools) or not _joins(action):
        return action
    return RunTools(action.invocations + _parallel_with(run, calls[1:], facts))


def _parallel_with(run: Run, calls: tuple[Call, ...], facts: Facts) -> tuple[Invocation, ...]:
    """The directly following calls that may run together with a parallel one."""
    group: list[Invocation] = []
    for call in calls:
        action = check_call(run, call, facts) if call.opened is None else None
        if not isinstance(action, RunTools) or not _joins(action):
            break
        group.extend(action.invocations)
    return tuple(group)


def _joins(action: RunTools) -> bool:
    """Whether a call may run beside others: a trusted answer serves one call, so never beside it."""
    tool = action.invocations[0].tool
    return tool.parallel and not tool.requires_interaction_response


def _after_loss(call: Call, facts: Facts) -> Action:
    """A call that was opened by a worker that is gone: repeat what is harmless, nothing else."""
    tool = facts.agent.tool(call.name)
    if tool is None or call.opened is None:
        return LeaveInDoubt(call)
    harmless = tool.effect == "read" or tool.idempotent or call.opened.nothing_done
    if call.asked is not None:
        # To reconcile knows of the execution that asked, not of the one that got the answer.
        return go_on(call, facts) if harmless else LeaveInDoubt(call)
    if not harmless and tool.reconcile is None:
        return LeaveInDoubt(call)
    try:
        arguments = tool.arguments.check(call.opened.arguments)
    except ValueError:
        return LeaveInDoubt(call)
    invocation = Invocation(call, tool, arguments)
    return RunTools((invocation,)) if harmless else Reconcile(invocation)
