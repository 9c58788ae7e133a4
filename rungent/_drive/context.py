"""What one drive works with, and the contexts that it hands to host code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rungent._drive.journal import Desk, Journal
from rungent.agent import Agent
from rungent.identity import Identity
from rungent.llm.port import Model
from rungent.records import Session
from rungent.tools.context import ReportProgress, ToolContext

__all__ = ["DriveContext"]


@dataclass(frozen=True, slots=True)
class DriveContext:
    """One drive: its run's journal, its agent and model, and the host's dependencies."""

    desk: Desk
    journal: Journal
    agent: Agent
    model: Model
    session: Session
    deps: Mapping[str, Any]

    def tool_context(
        self, call_id: str | None = None, report: ReportProgress | None = None
    ) -> ToolContext:
        """The context for host code: a tool when `call_id` is given, else a callback."""
        run = self.journal.run
        return ToolContext.create(
            identity=Identity(self.session.subject_id, self.session.tenant_id),
            session_id=self.session.id,
            run_id=run.id,
            call_id=call_id,
            current_input=run.input,
            resource=self.session.resource,
            deps=self.deps,
            interaction_response=run.state.answer,
            report=report,
        )
