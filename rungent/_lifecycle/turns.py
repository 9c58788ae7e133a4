"""The turn: settling calls, and tool messages that follow in the order of the calls."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from rungent._lifecycle.checks import streak_key
from rungent._lifecycle.transition import Facts, MessageDraft, Transition, with_state
from rungent.catalog import tool_failure_retryable
from rungent.events import Draft
from rungent.records import Call, FailureStreak, Run, Settled, ToolCall, ToolClaim
from rungent.text import dump_json
from rungent.tools.results import error_envelope

__all__ = [
    "claim_of",
    "close_progress",
    "consumed",
    "settle",
    "tool_identity",
    "wait_row",
]


def tool_identity(call: Call, facts: Facts) -> dict[str, str]:
    """The fields that name a call in `tool.*` events, also when its tool is gone."""
    tool = facts.agent.tool(call.name)
    if tool is not None:
        title, effect = tool.title, str(tool.effect)
    else:
        title = call.name.replace("_", " ").capitalize()
        effect = call.opened.effect if call.opened is not None else "read"
    return {"call_id": call.id, "name": call.name, "title": title, "effect": effect}


def wait_row(
    run: Run, message: str, status: Literal["running", "completed"], **public: JsonValue
) -> Draft:
    """The row that shows how long the model has been silent."""
    shown = run.state.activity.public if run.state.activity is not None else {}
    return Draft(
        "activity.updated",
        {
            "id": f"run:{run.id}:model-wait",
            "step": run.model_steps,
            "kind": "progress",
            "message": message,
            "status": status,
            "public": {**shown, **public},
        },
    )


def close_progress(run: Run, call: Call, status: Literal["completed", "failed"]) -> list[Draft]:
    """The last progress report once more, as settled; nothing when there was none."""
    return [] if call.progress is None else [progress_row(run, call, status)]


def progress_row(run: Run, call: Call, status: str) -> Draft:
    """The progress row of a call as it is now."""
    assert call.progress is not None
    data: dict[str, JsonValue] = {
        "id": f"{call.id}:progress",
        "step": run.model_steps,
        "kind": "progress",
        "message": call.progress.message,
        "status": status,
    }
    if call.progress.public is not None:
        data["public"] = call.progress.public
    return Draft("activity.updated", data)


def claim_of(
    run: Run,
    call: Call,
    state: Literal["started", "succeeded", "failed", "deferred", "in_doubt", "cancelled"],
    facts: Facts,
    code: str | None = None,
) -> ToolClaim:
    """The ledger row of an opened call."""
    assert call.opened is not None
    return ToolClaim.unchecked(
        {
            "run_id": run.id,
            "call_id": call.id,
            "tool_name": call.name,
            "effect": call.opened.effect,
            "arguments": call.opened.arguments,
            "arguments_digest": call.opened.digest,
            "state": state,
            "code": code,
            "idempotency_key": f"{run.id}:{call.id}",
            "attempts": call.opened.attempts,
            "fencing_token": run.fencing_token,
            "started_at": call.opened.started_at,
            "settled_at": None if state == "started" else facts.now,
        }
    )


def consumed(run: Run, call: Call, facts: Facts) -> Run:
    """A trusted answer serves one executed call of a tool that requires it."""
    tool = facts.agent.tool(call.name)
    if tool is None or not tool.requires_interaction_response or run.state.answer is None:
        return run
    return with_state(run, answer=None)


def settle(run: Run, call: Call, settled: Settled) -> Transition:
    """Record how a call ended, and release the tool messages whose turn has come.

    The answer to a tool's question was for its continuation: it is gone with it, executed or not.
    """
    done = call.model_copy(update={"settled": settled, "progress": None, "asked": None})
    answer = None if call.made else run.state.answer
    remaining = [done if one.id == done.id else one for one in run.state.turn]
    # The settled calls at the head of the turn move into the transcript, and count.
    messages: list[MessageDraft] = []
    streak = run.state.streak
    while remaining and (over := remaining[0].settled) is not None:
        messages.extend(answers_of(remaining.pop(0), over.content))
        streak = _count(streak, over)
    changed = with_state(run, turn=tuple(remaining), streak=streak, recoveries=0, answer=answer)
    return Transition(changed, messages=tuple(messages))


def tool_message(call: Call, content: str) -> MessageDraft:
    """The transcript entry that answers a call."""
    return MessageDraft("tool", content, tool_call_id=call.id, name=call.name)


def answers_of(call: Call, content: str) -> tuple[MessageDraft, ...]:
    """What a settled call adds to the transcript: a made call comes with its own request."""
    answer = tool_message(call, content)
    if not call.made:
        return (answer,)
    made = ToolCall(call.name, call.arguments, call.id)
    return MessageDraft("assistant", "", tool_calls=(made,)), answer


def _count(streak: FailureStreak | None, settled: Settled) -> FailureStreak | None:
    match settled.counts:
        case "failure":
            again = streak is not None and streak.key == settled.key
            return FailureStreak(
                key=settled.key, count=streak.count + 1 if again and streak is not None else 1
            )
        case "success":
            return None
        case "nothing":
            return streak


def key_of(call: Call) -> str:
    """The streak key of an executed call."""
    assert call.opened is not None
    return streak_key(call.name, call.opened.digest)


def error_content(code: str, facts: Facts) -> str:
    """The tool message of a failure that carries nothing but its code."""
    return dump_json(error_envelope(code, facts.catalog.text(code), tool_failure_retryable(code)))
