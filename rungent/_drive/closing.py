"""Telling tools that nobody can answer their questions any more, and ending those in time.

Whoever clears the mark of a question tells its tool, so that happens at most once, in whichever
process. Source: docs/interactive-tools.md#the-end-without-an-answer.
"""

from __future__ import annotations

import logging

import trio

from rungent._drive.context import context_about
from rungent._drive.doors import Doors
from rungent._drive.initialise import resolve_deps
from rungent._drive.journal import Desk
from rungent._lifecycle.responding import asking_tool
from rungent.records import Interaction
from rungent.tools.context import ToolContext
from rungent.tools.decorator import AnyTool
from rungent.tools.interactive import FollowUp

__all__ = ["Closer"]

logger = logging.getLogger("rungent")

PAGE = 100
AT_ONCE = 20


class Closer:
    """Looks for questions whose time is up and for ends that are still to be told."""

    def __init__(self, desk: Desk, doors: Doors) -> None:
        self._desk = desk
        self._doors = doors
        self._limit = trio.CapacityLimiter(AT_ONCE)
        self._at_work: set[str] = set()
        self._idle = trio.Event()

    async def run(self) -> None:
        """Look at each sweep, and at once when this process ended a question, until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                await self._doors.until_due()
                try:
                    await self._look(nursery)
                except Exception:
                    logger.exception("due questions could not be handled")

    async def settle(self) -> None:
        """Wait until every tool that is being told has been told."""
        while self._at_work:
            self._idle = trio.Event()
            await self._idle.wait()

    async def _look(self, nursery: trio.Nursery) -> None:
        desk, agents = self._desk, self._doors.agents
        if not self._doors.accepting:
            return
        due = await desk.store.list_due(list(agents), desk.options.now(), limit=PAGE)
        for one in due:
            if one.closing is None:
                await self._expire(one)
            elif one.id not in self._at_work:
                self._at_work.add(one.id)
                nursery.start_soon(self._close, one, one.closing)

    async def _expire(self, interaction: Interaction) -> None:
        try:
            await self._doors.expire(interaction)
        except Exception:
            logger.exception("%s could not be ended", interaction.id)

    async def _close(self, interaction: Interaction, reason: str) -> None:
        try:
            async with self._limit:
                await self._tell(interaction, reason)
        except Exception:
            logger.exception("the end of %s could not be told", interaction.id)
        finally:
            self._at_work.discard(interaction.id)
            self._idle.set()

    async def _tell(self, interaction: Interaction, reason: str) -> None:
        if not await self._desk.store.take_closing(interaction.id):
            return
        run = await self._desk.store.get_run(interaction.run_id)
        tool = asking_tool(interaction, self._doors.agents[run.agent_name])
        if tool is None or tool.interactive.closed is None:
            return
        session = await self._desk.store.get_session(run.session_id)
        with trio.move_on_after(tool.timeout_seconds) as deadline:
            deps = await resolve_deps(self._desk.options.dependency_provider, session, run)
            context = context_about(interaction, run, session, deps)
            await _call(tool, tool.interactive.closed, context, reason, interaction)
        if deadline.cancelled_caught:
            logger.error("closed of %s took too long in %s", tool.name, run.id)


async def _call(
    tool: AnyTool, closed: FollowUp, ctx: ToolContext, reason: str, interaction: Interaction
) -> None:
    frozen = (interaction.frozen_call or {}).get("arguments")
    arguments = tool.arguments.check(frozen if isinstance(frozen, dict) else {}).values
    state = tool.interactive.state_values(interaction.state or {}, closed)
    await closed.function(ctx, reason, **closed.named(arguments, state))
