"""Pausing for the user: questions, approvals, and what an answer sets free.

The pause stores the question with the frozen call; the answer changes exactly that and nothing
else. Source: docs/interactions.md.
"""

from __future__ import annotations

from datetime import timedelta

from pydantic import JsonValue

from rungent._lifecycle.checks import trusted_answer
from rungent._lifecycle.outcomes import ConfirmationMade
from rungent._lifecycle.transition import Facts, Transition, event, with_calls, with_state
from rungent._lifecycle.turns import claim_of, error_content, settle, tool_identity
from rungent.agent import Agent
from rungent.events import Draft, format_time
from rungent.identity import Identity
from rungent.interactions import (
    InteractionSpec,
    TrustedInteractionResponse,
    approval_spec,
    outcome_of,
    to_public,
    validate_answer,
)
from rungent.records import ActionToken, Call, Interaction, Lease, Run, RunStatus, Settled
from rungent.text import dump_json, to_json_value
from rungent.tools.asking import KeptAsk
from rungent.tools.builtin import REQUEST_INPUT
from rungent.tools.results import answer_envelope

__all__ = [
    "answered",
    "ask_approval",
    "ask_user",
    "new_interaction",
    "normal_answer",
    "pause",
    "resolved",
    "resumed",
    "spec_of",
    "tokens_of",
]


def ask_user(
    run: Run,
    call: Call,
    spec: InteractionSpec,
    facts: Facts,
    expires_in: timedelta | None = None,
) -> Transition:
    """The run waits for the answer that `call` needs."""
    frozen: dict[str, JsonValue] = {"id": call.id, "name": call.name, "arguments": call.arguments}
    return pause(run, call, new_interaction(run, call, spec, frozen, facts, expires_in), facts)


def ask_approval(run: Run, made: ConfirmationMade, facts: Facts) -> Transition:
    """The run waits for a decision about exactly this call.

    A call that needs a trusted answer keeps the one it was called under.
    """
    tool, arguments = made.invocation.tool, made.invocation.arguments.normalised
    call = made.invocation.call
    answer = trusted_answer(run, call) if tool.requires_interaction_response else None
    call = call.model_copy(update={"frozen": arguments, "answer": answer})
    spec = approval_spec(
        made.text,
        approve_label=facts.catalog.text("approve_label"),
        reject_label=facts.catalog.text("reject_label"),
    )
    frozen: dict[str, JsonValue] = {
        "id": call.id,
        "name": call.name,
        "arguments": arguments,
        "confirmation": made.text,
    }
    kept, expires_in = made.announced, tool.interactive.expires_in
    interaction = new_interaction(run, call, spec, frozen, facts, expires_in, kept)
    paused = pause(with_calls(run, call), call, interaction, facts)
    return paused._replace(tokens=tokens_of(interaction, kept))


def new_interaction(
    run: Run,
    call: Call,
    spec: InteractionSpec,
    frozen: dict[str, JsonValue],
    facts: Facts,
    expires_in: timedelta | None = None,
    kept: KeptAsk | None = None,
) -> Interaction:
    """A pending interaction; one that was posted has its id and its state already."""
    if expires_in is None and facts.question_seconds is not None:
        expires_in = timedelta(seconds=facts.question_seconds)
    return Interaction(
        id=facts.interaction_id if kept is None else kept.id,
        run_id=run.id,
        tool_call_id=call.id,
        kind=spec.kind,
        request=spec.stored(),
        frozen_call=frozen,
        created_at=facts.now,
        expires_at=None if expires_in is None else facts.now + expires_in,
        state=None if kept is None else kept.state,
    )


def tokens_of(interaction: Interaction, kept: KeptAsk | None) -> tuple[ActionToken, ...]:
    """The buttons of a posted interaction."""
    return tuple(
        ActionToken(
            token_hash=button.token_hash,
            run_id=interaction.run_id,
            interaction_id=interaction.id,
            params=button.params,
        )
        for button in (() if kept is None else kept.buttons)
    )


def pause(run: Run, call: Call, interaction: Interaction, facts: Facts) -> Transition:
    """The run waits for the answer to this interaction."""
    spec = spec_of(interaction)
    paused = with_state(run, interaction=interaction, answer=None).model_copy(
        update={"status": RunStatus.WAITING_INPUT, "lease": None}
    )
    requested: dict[str, JsonValue] = {
        "id": interaction.id,
        **to_public(spec),
        "tool_call_id": call.id,
    }
    if interaction.expires_at is not None:
        requested["expires_at"] = format_time(interaction.expires_at)
    if spec.kind == "approval":
        shown = tool_identity(call, facts)
        requested["tool"] = {key: shown[key] for key in ("name", "title", "effect")}
    return Transition(
        paused,
        events=(
            Draft("run.waiting_input", {"status": "waiting_input"}),
            event("interaction.requested", requested),
        ),
        interactions=(interaction,),
    )


def spec_of(interaction: Interaction) -> InteractionSpec:
    """The question of a stored interaction."""
    return InteractionSpec.model_validate(interaction.request)


def resumed(run: Run, lease: Lease, **state: object) -> Run:
    """A paused run that runs again under a lease of its own."""
    return with_state(run, interaction=None, task=None, **state).model_copy(
        update={
            "status": RunStatus.RUNNING,
            "lease": lease,
            "fencing_token": run.fencing_token + 1,
        }
    )


def normal_answer(interaction: Interaction, value: JsonValue, agent: Agent) -> JsonValue:
    """The normal form of an answer, by the rules of the question or of the tool that asked.

    Where that tool is gone every answer will do: its call can only fail. Raises InvalidResponse.
    """
    if interaction.kind != "data":
        return validate_answer(spec_of(interaction), value)
    name = (interaction.frozen_call or {}).get("name")
    tool = agent.tool(name) if isinstance(name, str) else None
    schema = None if tool is None else tool.interactive.answer
    return to_json_value(value) if schema is None else schema.check(value).normal


def resolved(
    interaction: Interaction, outcome: str, facts: Facts, **more: object
) -> tuple[Interaction, Draft]:
    """The interaction as it is when it is over, and the event that tells so.

    Who posted it is to be told, unless a function continues with its answer.
    """
    tell = interaction.state is not None and outcome != "answered"
    over = interaction.model_copy(
        update={
            "status": "resolved",
            "outcome": outcome,
            "resolved_at": facts.now,
            "closing": outcome if tell else None,
            **more,
        }
    )
    shown = {"interaction_id": interaction.id, "kind": interaction.kind, "outcome": outcome}
    return over, Draft("interaction.resolved", shown)


def answered(
    run: Run,
    interaction: Interaction,
    value: JsonValue,
    by: Identity,
    lease: Lease,
    facts: Facts,
) -> Transition:
    """The pending interaction gets its answer, and the run goes on.

    Raises InvalidResponse for a value that breaks the rules of the question.
    """
    spec = spec_of(interaction)
    normalised = normal_answer(interaction, value, facts.agent)
    outcome = outcome_of(spec, normalised)
    over, shown = resolved(
        interaction,
        outcome,
        facts,
        response=normalised,
        answered_by=(*interaction.answered_by, by),
    )
    call = next(call for call in run.state.turn if call.id == interaction.tool_call_id)
    resolution = Transition(
        resumed(run, lease, answer=_trusted(interaction, spec, normalised)),
        events=(shown,),
        interactions=(over,),
    )
    if spec.kind == "data":
        return resolution.then(_continued(resolution.run, call, over, facts))
    return resolution.then(_set_free(resolution.run, call, outcome, normalised, facts))


def _continued(run: Run, call: Call, asked: Interaction, facts: Facts) -> Transition:
    """The call that asked goes on with the answer."""
    going_on = call.model_copy(update={"asked": asked, "continued": False})
    return Transition(with_calls(run, going_on), claims=(claim_of(run, call, "started", facts),))


def _trusted(
    interaction: Interaction, spec: InteractionSpec, value: JsonValue
) -> TrustedInteractionResponse | None:
    """A decision about a call is no answer that a tool could use."""
    if spec.kind == "approval" or spec.kind == "data":
        return None
    return TrustedInteractionResponse(
        interaction_id=interaction.id, kind=spec.kind, prompt=spec.prompt, value=value
    )


def _set_free(run: Run, call: Call, outcome: str, value: JsonValue, facts: Facts) -> Transition:
    """What the answer does to the call that asked."""
    if outcome == "approved":
        return Transition(with_calls(run, call.model_copy(update={"approved": True})))
    if outcome == "rejected":
        text = facts.catalog.text("rejected")
        settled = Settled(content=error_content("rejected", facts))
        failed = {**tool_identity(call, facts), "code": "rejected", "message": text}
        return settle(run, call, settled).emitting(Draft("tool.failed", failed))
    if call.name == REQUEST_INPUT and not call.made:
        return settle(run, call, Settled(content=dump_json(answer_envelope(value))))
    return Transition(run)
