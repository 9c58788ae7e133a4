"""Nobody answered in time: the question is over, and its call settles as expired.

Source: docs/interactive-tools.md#expiry.
"""

from __future__ import annotations

from datetime import datetime

from rungent._lifecycle.pauses import resolved, resumed
from rungent._lifecycle.tool_outcomes import broken_off
from rungent._lifecycle.transition import Facts, Transition
from rungent._lifecycle.turns import error_content, settle, tool_identity
from rungent.events import Draft
from rungent.records import Interaction, Lease, Run, Settled
from rungent.tools.builtin import REQUEST_INPUT

__all__ = ["expire", "is_over"]

CODE = "expired"


def is_over(interaction: Interaction, now: datetime) -> bool:
    """Whether the time for an answer is up."""
    return interaction.expires_at is not None and interaction.expires_at <= now


def expire(run: Run, interaction: Interaction, lease: Lease, facts: Facts) -> Transition:
    """The pending interaction ends without an answer, and the run goes on under a lease."""
    call = next(call for call in run.state.turn if call.id == interaction.tool_call_id)
    over, shown = resolved(interaction, CODE, facts)
    going_on = Transition(resumed(run, lease, answer=None), (shown,), interactions=(over,))
    if call.opened is not None:
        return going_on.then(broken_off(going_on.run, call, CODE, facts))
    settled = settle(going_on.run, call, Settled(content=error_content(CODE, facts)))
    if call.name == REQUEST_INPUT and not call.made:
        # Of a question of the model clients know nothing but the interaction.
        return going_on.then(settled)
    failed = {**tool_identity(call, facts), "code": CODE, "message": facts.catalog.text(CODE)}
    return going_on.then(settled.emitting(Draft("tool.failed", failed)))
