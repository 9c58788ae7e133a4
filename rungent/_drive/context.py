"""What one drive works with, and the contexts that it hands to host code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import trio

from rungent._drive.journal import Desk, Journal
from rungent._lifecycle.checks import trusted_answer
from rungent.agent import Agent
from rungent.identity import Identity
from rungent.llm.port import Model
from rungent.records import Call, Interaction, Run, Session
from rungent.tools.context import ReportProgress, ToolContext

__all__ = ["DriveContext", "context_about"]


@dataclass(frozen=True, slots=True)
class DriveContext:
    """One drive: its run's journal, its agent and model, and the host's dependencies.

    `nursery` is for what a step writes beside its own work.
    """

    desk: Desk
    journal: Journal
    agent: Agent
    model: Model
    session: Session
    deps: Mapping[str, Any]
    nursery: trio.Nursery

    def tool_context(
        self, call: Call | None = None, report: ReportProgress | None = None
    ) -> ToolContext:
        """The context for host code: about `call` when it is given, else for a callback."""
        run = self.journal.run
        tool = None if call is None else self.agent.tool(call.name)
        answers = () if call is None or call.asked is None else call.asked.answered_by
        return ToolContext.create(
            identity=Identity(self.session.subject_id, self.session.tenant_id),
            session_id=self.session.id,
            run_id=run.id,
            call_id=None if call is None else call.id,
            current_input=run.input,
            resource=self.session.resource,
            deps=self.deps,
            interaction_response=run.state.answer if call is None else trusted_answer(run, call),
            answered_by=answers[-1] if answers else None,
            answers=len(answers),
            asks=None if tool is None else tool.interactive.rules,
            report=report,
        )


def context_about(
    interaction: Interaction, run: Run, session: Session, deps: Mapping[str, Any]
) -> ToolContext:
    """The context for host code that is about a question, outside any drive."""
    return ToolContext.create(
        identity=Identity(session.subject_id, session.tenant_id),
        session_id=session.id,
        run_id=run.id,
        call_id=interaction.tool_call_id,
        current_input=run.input,
        resource=session.resource,
        deps=deps,
    )
