"""Finding out what became of a call whose worker was lost. Source: docs/tools.md."""

from __future__ import annotations

import logging

import trio

from rungent._drive.context import DriveContext
from rungent._drive.tool_call import finished, in_json
from rungent._lifecycle.actions import Reconcile
from rungent._lifecycle.outcomes import NothingDone, Outcome, ToolInDoubt
from rungent.tools.results import coerce_result

__all__ = ["reconcile"]

logger = logging.getLogger("rungent")


async def reconcile(drive: DriveContext, action: Reconcile) -> Outcome:
    """The host's answer as a value, within the tool's own time limit.

    A result settles the call as if its execution had returned it, None means that the execution
    had no effect. Without an answer the call stays in doubt.
    """
    invocation = action.invocation
    call, tool = invocation.call, invocation.tool
    assert tool.reconcile is not None, "chosen only for tools that have it"
    context = drive.tool_context(call)
    try:
        with trio.move_on_after(tool.timeout_seconds):
            found = await tool.reconcile(context, **invocation.arguments.values)
            if found is None:
                return NothingDone(call.id)
            return finished(drive, invocation, in_json(coerce_result(found)))
    except Exception:
        logger.exception("reconciling %s failed in %s", tool.name, drive.journal.run.id)
    return ToolInDoubt(call.id)
