"""Making the text that asks for an approval, within the tool's own time limit."""

from __future__ import annotations

import logging
from typing import cast

import trio

from rungent._drive.context import DriveContext
from rungent._drive.hosts import call_host
from rungent._lifecycle.actions import AskApproval, Invocation
from rungent._lifecycle.outcomes import ConfirmationFailed, ConfirmationMade
from rungent.tools.asking import KeptAsk, new_ask
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
            text = await _text(drive, invocation)
            return ConfirmationMade(invocation, text, await _announced(drive, invocation, text))
    except Exception:
        logger.exception(
            "confirmation of %s failed in %s", invocation.tool.name, drive.journal.run.id
        )
    return ConfirmationFailed(invocation)


async def _announced(drive: DriveContext, invocation: Invocation, text: str) -> KeptAsk | None:
    """The approval as the tool posted it elsewhere, or None where it posts nothing."""
    tool, call = invocation.tool, invocation.call
    if tool.interactive.announce is None:
        return None
    context = drive.tool_context(call)
    ask = new_ask(tool.interactive.approval_rules, call.id, context.identity, prompt=text)
    post = tool.interactive.announce
    kept = cast("object", await call_host(post, context, ask, **invocation.arguments.values))
    if not isinstance(kept, KeptAsk) or kept.id != ask.id:
        raise TypeError("announce must return what its ask.keep() returned")
    return kept


async def _text(drive: DriveContext, invocation: Invocation) -> str:
    tool, arguments = invocation.tool, invocation.arguments
    if not callable(tool.confirmation):
        return tool.render_confirmation(arguments.normalised)
    context = drive.tool_context(invocation.call)
    return confirmation_text(await call_host(tool.confirmation, context, **arguments.values))
