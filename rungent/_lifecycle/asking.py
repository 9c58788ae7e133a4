"""Questions that a tool writes itself: asking, asking again, and going on with the answer.

The call stays open meanwhile; what its continuation returns settles it.
Source: docs/interactive-tools.md.
"""

from __future__ import annotations

from pydantic import JsonValue

from rungent._lifecycle.actions import BreakOff, Continuing, Invocation, RunTools
from rungent._lifecycle.pauses import new_interaction, pause, tokens_of
from rungent._lifecycle.transition import Facts, Transition, with_calls
from rungent._lifecycle.turns import claim_of, close_progress
from rungent.errors import InvalidResponse
from rungent.interactions import InteractionSpec
from rungent.records import Call, Run
from rungent.tools.arguments import ArgumentErrors
from rungent.tools.asking import AgainAsk, KeptAsk

__all__ = ["ask_again", "ask_data", "go_on", "may_ask", "may_ask_again"]


def may_ask(call: Call, kept: KeptAsk) -> bool:
    """Whether this question is the call's own, and its first."""
    return kept.call_id == call.id and call.asked is None


def ask_data(run: Run, call: Call, kept: KeptAsk, facts: Facts) -> Transition:
    """The run waits for the answer to a question that a tool wrote."""
    spec = InteractionSpec(kind="data", prompt=kept.prompt, answer_schema=kept.schema)
    assert call.opened is not None, "it is executing"
    frozen: dict[str, JsonValue] = {
        "id": call.id,
        "name": call.name,
        "arguments": call.opened.arguments,
    }
    interaction = new_interaction(run, call, spec, frozen, facts, kept.expires_in, kept).model_copy(
        update={"responders": kept.responders, "max_answers": kept.max_answers}
    )
    quiet = call.model_copy(update={"progress": None})
    closed = Transition(
        with_calls(run, quiet), events=tuple(close_progress(run, call, "completed"))
    )
    waiting = Transition(
        closed.run,
        claims=(claim_of(run, call, "deferred", facts),),
        tokens=tokens_of(interaction, kept),
    )
    return closed.then(waiting).then(pause(closed.run, quiet, interaction, facts))


def may_ask_again(call: Call) -> bool:
    """Whether another round is left of the question that this call continues."""
    return call.asked is not None and len(call.asked.answered_by) < call.asked.max_answers


def ask_again(run: Run, call: Call, again: AgainAsk, facts: Facts) -> Transition:
    """The run waits for a further answer to the same question, with new state."""
    assert call.asked is not None, "may_ask_again said so"
    interaction = call.asked.model_copy(
        update={
            "status": "pending",
            "outcome": None,
            "response": None,
            "resolved_at": None,
            "state": again.state,
        }
    )
    quiet = call.model_copy(update={"progress": None, "asked": None, "continued": False})
    closed = Transition(
        with_calls(run, quiet),
        events=tuple(close_progress(run, call, "completed")),
        claims=(claim_of(run, call, "deferred", facts),),
    )
    return closed.then(pause(closed.run, quiet, interaction, facts))


def go_on(call: Call, facts: Facts) -> RunTools | BreakOff:
    """How an answered call continues, with the code that is there now."""
    tool, asked, opened = facts.agent.tool(call.name), call.asked, call.opened
    assert asked is not None
    assert opened is not None
    if tool is None or tool.interactive.answered is None or tool.interactive.answer is None:
        return BreakOff(call, "unknown_tool")
    interactive, follow_up = tool.interactive, tool.interactive.answered
    try:
        arguments = tool.arguments.check(opened.arguments)
        answer = tool.interactive.answer.check(asked.response)
        state = interactive.state_values(asked.state or {}, follow_up)
    except (ArgumentErrors, InvalidResponse):
        return BreakOff(call, "invalid_arguments")
    continuing = Continuing(follow_up, answer.value, follow_up.named(arguments.values, state))
    return RunTools((Invocation(call, tool, arguments, continuing),))
