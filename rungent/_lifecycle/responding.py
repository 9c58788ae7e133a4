"""Whose answer counts, and how a click on a button of any age is to be taken.

Source: docs/interactive-tools.md#who-may-answer.
"""

from __future__ import annotations

from datetime import datetime

from rungent._lifecycle.asking import may_ask_again
from rungent._lifecycle.expiring import is_over
from rungent.agent import Agent
from rungent.identity import Identity
from rungent.records import ActionOutcome, Interaction, Run
from rungent.tools.decorator import AnyTool

__all__ = ["asking_tool", "has_answered", "is_restricted", "standing"]


def asking_tool(interaction: Interaction, agent: Agent) -> AnyTool | None:
    """The tool that an interaction is about, as it is now."""
    name = (interaction.frozen_call or {}).get("name")
    return agent.tool(name) if isinstance(name, str) else None


def is_restricted(interaction: Interaction, tool: AnyTool | None) -> bool:
    """Whether others than the owner of the session decide: a list, or the tool's predicate."""
    if interaction.responders is not None:
        return True
    return tool is not None and tool.interactive.responders is not None


def has_answered(interaction: Interaction, by: Identity, tool: AnyTool | None) -> bool:
    """Whether this person had a turn already: of several people each has one."""
    return is_restricted(interaction, tool) and by in interaction.answered_by


def standing(
    run: Run, interaction: Interaction, by: Identity, tool: AnyTool | None, now: datetime
) -> ActionOutcome | None:
    """Why a click changes nothing; None for one that is to be tried."""
    known = ActionOutcome(
        status="already_answered",
        run_id=run.id,
        interaction_id=interaction.id,
        answered_by=interaction.answered_by[-1] if interaction.answered_by else None,
    )
    if has_answered(interaction, by, tool):
        return known
    if interaction.status == "pending":
        return None
    match interaction.outcome:
        case "expired" | "cancelled" as outcome:
            return known.but("expired" if outcome == "expired" else "closed")
        case _:
            return known.but("busy") if _goes_on(run, interaction, now) else known


def _goes_on(run: Run, interaction: Interaction, now: datetime) -> bool:
    """Whether the last answer is being handled and another may be asked for."""
    continued = (c for c in run.state.turn if c.asked is not None and c.asked.id == interaction.id)
    return any(may_ask_again(call) for call in continued) and not is_over(interaction, now)
