"""Making the text that asks for an approval, within the tool's own time limit."""

from __future__ import annotations

import logging

import trio

from rungent._drive.context import DriveContext
from rungent._drive.hosts import call_host
from rungent._lifecycle.actions import AskApproval, Invocation
from rungent._lifecycle.outcomes import ConfirmationFailed, ConfirmationMade
from rungent.tools.confirmation import confirmation_text

__all__ = ["confirmation"]

logger = logging.getLogger("rungent")


async def confirmation(
    drive: DriveContext, action: AskApproval
) -> ConfirmationMade | ConfirmationFailed:
    """The confirmation of a call as a value; without a text nothing is asked."""
    invocation = action.invocation
    try:
        with trio.move_on_after(invocation.tool.timeout_seconds):
            return ConfirmationMade(invocation, await _text(drive, invocation))
    except Exception:
        logger.exception(
            "confirmation of %s failed in %s", invocation.tool.name, drive.journal.run.id
        )
    return ConfirmationFailed(invocation)


async def _text(drive: DriveContext, invocation: Invocation) -> str:
    tool, arguments = invocation.tool, invocation.arguments
    if not callable(tool.confirmation):
        return tool.render_confirmation(arguments.normalised)
    context = drive.tool_context(invocation.call)
    return confirmation_text(await call_host(tool.confirmation, context, **arguments.values))
