"""Pausing for the user: questions, approvals, and what an answer sets free.

The pause stores the question with the frozen call; the answer changes exactly that and nothing
else. Source: docs/interactions.md.
"""

from __future__ import annotations

from pydantic import JsonValue

from rungent._lifecycle.checks import trusted_answer
from rungent._lifecycle.outcomes import ConfirmationMade
from rungent._lifecycle.transition import Facts, Transition, event, with_calls, with_state
from rungent._lifecycle.turns import error_content, settle, tool_identity
from rungent.events import Draft
from rungent.interactions import (
    InteractionSpec,
    TrustedInteractionResponse,
    approval_spec,
    outcome_of,
    to_public,
    validate_answer,
)
from rungent.records import Call, Interaction, Lease, Run, RunStatus, Settled
from rungent.text import dump_json
from rungent.tools.builtin import REQUEST_INPUT
from rungent.tools.results import answer_envelope

__all__ = ["answered", "ask_approval", "ask_user", "resumed", "spec_of"]


def ask_user(run: Run, call: Call, spec: InteractionSpec, facts: Facts) -> Transition:
    """The run waits for the answer that `call` needs."""
    frozen: dict[str, JsonValue] = {"id": call.id, "name": call.name, "arguments": call.arguments}
    return _pause(run, call, spec, frozen, facts)


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
    return _pause(with_calls(run, call), call, spec, frozen, facts)


def _pause(
    run: Run, call: Call, spec: InteractionSpec, frozen: dict[str, JsonValue], facts: Facts
) -> Transition:
    interaction = Interaction(
        id=facts.interaction_id,
        run_id=run.id,
        tool_call_id=call.id,
        kind=spec.kind,
        request=spec.model_dump(mode="json"),
        frozen_call=frozen,
        created_at=facts.now,
    )
    paused = with_state(run, interaction=interaction, answer=None).model_copy(
        update={"status": RunStatus.WAITING_INPUT, "lease": None}
    )
    requested: dict[str, JsonValue] = {
        "id": interaction.id,
        **to_public(spec),
        "tool_call_id": call.id,
    }
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


def answered(
    run: Run, interaction: Interaction, value: JsonValue, lease: Lease, facts: Facts
) -> Transition:
    """The pending interaction gets its answer, and the run goes on.

    Raises InvalidResponse for a value that breaks the rules of the question.
    """
    spec = spec_of(interaction)
    normalised = validate_answer(spec, value)
    outcome = outcome_of(spec, normalised)
    resolved = interaction.model_copy(
        update={
            "status": "resolved",
            "outcome": outcome,
            "response": normalised,
            "resolved_at": facts.now,
        }
    )
    call = next(call for call in run.state.turn if call.id == interaction.tool_call_id)
    resolution = Transition(
        resumed(run, lease, answer=_trusted(interaction, spec, normalised)),
        events=(
            Draft(
                "interaction.resolved",
                {"interaction_id": interaction.id, "kind": interaction.kind, "outcome": outcome},
            ),
        ),
        interactions=(resolved,),
    )
    return resolution.then(_set_free(resolution.run, call, outcome, normalised, facts))


def _trusted(
    interaction: Interaction, spec: InteractionSpec, value: JsonValue
) -> TrustedInteractionResponse | None:
    """A decision about a call is no answer that a tool could use."""
    if spec.kind == "approval":
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
