"""Clicks on buttons: from a token and a person to an answer, or to the reason why not.

Source: docs/interactive-tools.md#clicks.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import trio

from rungent._drive.context import context_about
from rungent._drive.doors import Doors
from rungent._drive.hosts import call_host
from rungent._drive.initialise import resolve_deps
from rungent._drive.journal import Desk
from rungent._lifecycle.responding import asking_tool, is_restricted, standing
from rungent.errors import (
    InteractionAlreadyResolved,
    InteractionMismatch,
    InvalidResponse,
    NotFound,
    RunNotWaiting,
    ShuttingDown,
)
from rungent.identity import Identity
from rungent.records import ActionOutcome, ActionToken, Interaction, Run, Session
from rungent.store.feed import EventFeed
from rungent.tools.asking import token_hash

__all__ = ["Acting"]

logger = logging.getLogger("rungent")

PREDICATE_SECONDS = 10.0
BUSY_SECONDS = 2.0


class Acting:
    """Answers by people who need not own the session."""

    def __init__(self, desk: Desk, doors: Doors, feed: EventFeed) -> None:
        self._desk = desk
        self._doors = doors
        self._feed = feed

    async def act(
        self, token: str, identity: Identity, deps: Mapping[str, Any] | None
    ) -> ActionOutcome:
        """Give the answer that a token stands for. Raises ShuttingDown."""
        hashed = token_hash(token)
        button = None if hashed is None else await self._desk.store.find_token(hashed)
        if button is None:
            return ActionOutcome(status="unknown")
        try:
            run, session, asked = await self._read(button)
        except NotFound:
            return ActionOutcome(status="unknown")
        if not await self.may_answer(run, session, asked, identity, deps):
            return ActionOutcome(status="not_allowed")
        with trio.move_on_after(BUSY_SECONDS):
            while True:
                changed = self._feed.listen(button.run_id)
                outcome = await self._try(button, identity, deps)
                if outcome is not None and outcome.status != "busy":
                    return outcome
                if not self._doors.accepting:
                    raise ShuttingDown("The runtime is not serving.")
                if outcome is not None:
                    await changed.arrived.wait()
        return ActionOutcome(status="busy", run_id=run.id, interaction_id=asked.id)

    async def may_answer(
        self,
        run: Run,
        session: Session,
        interaction: Interaction,
        identity: Identity,
        deps: Mapping[str, Any] | None,
    ) -> bool:
        """Whether the list of a question, the predicate of its tool, or ownership says so.

        A predicate that breaks, or takes longer than ten seconds, says no.
        """
        owner = Identity(session.subject_id, session.tenant_id)
        tool = asking_tool(interaction, self._doors.agents[run.agent_name])
        if not is_restricted(interaction, tool):
            return identity == owner
        if interaction.responders is not None:
            return identity in interaction.responders
        assert tool is not None
        assert tool.interactive.responders is not None
        try:
            with trio.move_on_after(PREDICATE_SECONDS):
                if deps is None:
                    provider = self._desk.options.dependency_provider
                    deps = await resolve_deps(provider, session, run)
                context = context_about(interaction, run, session, deps)
                allowed: object = await call_host(tool.interactive.responders, context, identity)
                return allowed is True
        except Exception:
            logger.exception("responders of %s failed in %s", tool.name, run.id)
        return False

    async def _read(self, button: ActionToken) -> tuple[Run, Session, Interaction]:
        store = self._desk.store
        run = await store.get_run(button.run_id)
        if run.agent_name not in self._doors.agents:
            raise NotFound("There is no such agent.")
        interaction = await store.get_interaction(button.interaction_id)
        return run, await store.get_session(run.session_id), interaction

    async def _try(
        self, button: ActionToken, identity: Identity, deps: Mapping[str, Any] | None
    ) -> ActionOutcome | None:
        """What came of one attempt; None when somebody else was faster, so that it is repeated."""
        run, _, asked = await self._read(button)
        tool = asking_tool(asked, self._doors.agents[run.agent_name])
        refused = standing(run, asked, identity, tool, self._desk.options.now())
        if refused is not None:
            return refused
        known = ActionOutcome(status="accepted", run_id=run.id, interaction_id=asked.id)
        value = button.params.get("approved") if asked.kind == "approval" else button.params
        try:
            _, counted = await self._doors.respond(
                run.id, asked.id, value, identity, deps, checked=asked.id
            )
        except InvalidResponse as wrong:
            return known.but("invalid", reason=wrong.reason, path=tuple(wrong.path))
        except (InteractionAlreadyResolved, InteractionMismatch, RunNotWaiting):
            return None
        return known.but("accepted", answered_by=identity) if counted else None
