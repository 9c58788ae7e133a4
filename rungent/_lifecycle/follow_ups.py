"""Results that are no end yet: a question with its continuation, or work left to the host.

Source: docs/interactions.md#tool-directed-questions and docs/deferred.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Literal, cast

from pydantic import JsonValue

from rungent._lifecycle.pauses import ask_user, resumed
from rungent._lifecycle.transition import Facts, Transition, event, with_calls, with_state
from rungent._lifecycle.turns import claim_of, close_progress
from rungent.agent import Agent
from rungent.events import Draft
from rungent.interactions import (
    InteractionRequest,
    InteractionSpec,
    ToolContinuation,
)
from rungent.records import Call, ExternalTask, Lease, Run, RunStatus
from rungent.tools.asking import checked_expiry
from rungent.tools.results import DeferredRequest, ToolResult

__all__ = ["Continuation", "ask_directed", "continuation_of", "defer", "end_task", "report_task"]


class Continuation:
    """A checked question of a tool, and the call that follows the answer."""

    __slots__ = ("arguments", "expires_in", "name", "spec")

    def __init__(
        self,
        spec: InteractionSpec,
        name: str,
        arguments: dict[str, JsonValue],
        expires_in: timedelta | None,
    ) -> None:
        self.spec = spec
        self.name = name
        self.arguments = arguments
        self.expires_in = expires_in


def continuation_of(request: object, agent: Agent) -> Continuation | None:
    """The question if it follows every rule, else None.

    The continuation must be a tool of the agent that requires an answer, with valid arguments.
    """
    if not isinstance(request, InteractionRequest):
        return None
    # Hosts build these without any check; whatever they put there must not break the run.
    then = cast("object", request.continuation)
    if not isinstance(then, ToolContinuation):
        return None
    name, given = cast("object", then.tool), cast("object", then.arguments)
    tool = agent.tool(name) if isinstance(name, str) else None
    if tool is None or not tool.requires_interaction_response or not isinstance(given, Mapping):
        return None
    try:
        arguments = tool.arguments.check(cast("Mapping[str, object]", given))
        expires_in = checked_expiry(request.expires_in)
        return Continuation(request.spec(), tool.name, arguments.normalised, expires_in)
    except (ValueError, TypeError):
        return None


def ask_directed(run: Run, continuation: Continuation, call_id: str, facts: Facts) -> Transition:
    """The run waits for the answer to a tool's question; a made call will follow it.

    The made call is the last of the turn in the transcript and the first to execute.
    """
    made = Call(id=call_id, name=continuation.name, arguments=continuation.arguments, made=True)
    queued = with_state(run, turn=(*run.state.turn, made))
    return ask_user(queued, made, continuation.spec, facts, continuation.expires_in)


def defer(run: Run, call: Call, request: DeferredRequest, facts: Facts) -> Transition:
    """The run waits for the host to complete a task; the call stays open."""
    task = ExternalTask(
        run_id=run.id,
        task_id=request.task_id,
        call_id=call.id,
        message=request.message,
        public=request.public,
        created_at=facts.now,
    )
    parked = with_state(
        # The row closes here: the result that comes later has none of its own.
        with_calls(run, call.model_copy(update={"progress": None, "asked": None})),
        task=task,
        answer=None,
        used_tasks=(*run.state.used_tasks, task.task_id),
    ).model_copy(update={"status": RunStatus.WAITING_EXTERNAL, "lease": None})
    return Transition(
        parked,
        events=(
            *close_progress(run, call, "completed"),
            event("external_task.started", _shown(task)),
            Draft("run.waiting_external", {"status": "waiting_external"}),
        ),
        claims=(claim_of(run, call, "deferred", facts),),
        tasks=(task,),
    )


def _shown(task: ExternalTask) -> dict[str, JsonValue]:
    return {
        "task_id": task.task_id,
        "call_id": task.call_id,
        "message": task.message,
        "public": task.public,
    }


def report_task(run: Run, task: ExternalTask, message: str, public: JsonValue) -> Transition:
    """The host says how its work goes; the run keeps waiting."""
    shown = {**_shown(task), "message": message, "public": public}
    return Transition(run, events=(event("external_task.progress", shown),))


def end_task(
    run: Run, task: ExternalTask, result: ToolResult, lease: Lease, facts: Facts
) -> Transition:
    """The host completed the task: it is consumed, and the run runs again under a lease.

    The call is still open afterwards; its result settles it. A question that breaks a rule makes
    the task a failure, as it does the call.
    """
    asked = result.interaction
    fine = result.succeeded and (asked is None or continuation_of(asked, facts.agent) is not None)
    state: Literal["completed", "failed"] = "completed" if fine else "failed"
    ended = task.model_copy(update={"state": state, "settled_at": facts.now})
    shown: dict[str, JsonValue] = {
        "task_id": task.task_id,
        "call_id": task.call_id,
        "message": result.message,
        "public": result.public,
    }
    return Transition(
        resumed(run, lease),
        events=(event(f"external_task.{state}", shown),),
        tasks=(ended,),
    )
