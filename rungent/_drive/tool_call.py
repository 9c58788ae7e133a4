"""Executing tools: one alone, or several parallel reads together. Source: docs/tools.md."""

from __future__ import annotations

import json
import logging

import trio
from pydantic import JsonValue

from rungent._drive.context import DriveContext
from rungent._drive.journal import Journal
from rungent._lifecycle.actions import Invocation, RunTools, SkipDuplicate
from rungent._lifecycle.outcomes import (
    DuplicateSkipped,
    Outcome,
    ProgressReported,
    ToolBroke,
    ToolFinished,
)
from rungent.text import to_json_value
from rungent.tools.context import ToolContext
from rungent.tools.results import ToolResult, coerce_result

__all__ = ["earlier_result", "finished", "in_json", "run_tools"]

logger = logging.getLogger("rungent")


async def run_tools(drive: DriveContext, action: RunTools) -> Outcome | None:
    """Execute opened calls.

    The outcome of a single call is returned, to be committed with what follows it. Those of a
    group are committed as they come, and None is returned when the last one is.
    """
    if len(action.invocations) == 1:
        return await _run_tool(drive, action.invocations[0])
    async with trio.open_nursery() as nursery:
        for invocation in action.invocations:
            nursery.start_soon(_run_and_commit, drive, invocation)
    return None


async def _run_and_commit(drive: DriveContext, invocation: Invocation) -> None:
    await drive.journal.apply(await _run_tool(drive, invocation))


async def _run_tool(drive: DriveContext, invocation: Invocation) -> Outcome:
    """One execution as a value. Only the cancellation of the drive passes through."""
    call, tool = invocation.call, invocation.tool
    reporter = _Reporter(drive.journal, call.id)
    context = drive.tool_context(call, reporter.report)
    try:
        with trio.move_on_after(tool.timeout_seconds):
            returned = await _execute(invocation, context)
            return finished(drive, invocation, in_json(coerce_result(returned)))
    except Exception:
        logger.exception("tool %s failed in %s", tool.name, drive.journal.run.id)
        return ToolBroke(call.id, "tool_error")
    finally:
        reporter.close()
    # Reached only when our own deadline absorbed the call.
    return ToolBroke(call.id, "timeout")


async def _execute(invocation: Invocation, context: ToolContext) -> object:
    """The tool itself, or what continues it after an answer."""
    go_on = invocation.continuing
    if go_on is None:
        return await invocation.tool(context, **invocation.arguments.values)
    return await go_on.follow_up.function(context, go_on.answer, **go_on.named)


def in_json(result: ToolResult) -> ToolResult:
    """The result with its data in JSON form: whatever host objects raise, they raise here."""
    return ToolResult(
        data=to_json_value(result.data),
        message=result.message,
        public=to_json_value(result.public),
        interaction=result.interaction,
        deferred=result.deferred,
    )


def finished(drive: DriveContext, invocation: Invocation, result: ToolResult) -> Outcome:
    """What a result in JSON form means for its call."""
    call_id = invocation.call.id
    if result.interaction is None and result.deferred is None:
        return ToolFinished(call_id, result)
    if invocation.tool.parallel:
        # Its siblings are still at work: there is no point at which the run could pause.
        return ToolBroke(call_id, "tool_error")
    return ToolFinished(call_id, result, drive.journal.transcript.free_call_id())


class _Reporter:
    """Progress reports of one execution, refused once it is over."""

    def __init__(self, journal: Journal, call_id: str) -> None:
        self._journal = journal
        self._call_id = call_id
        self._open = True

    def close(self) -> None:
        self._open = False

    async def report(self, message: str, public: JsonValue) -> None:
        if not self._open:
            raise RuntimeError("the call is over; its progress can no longer be reported")
        await self._journal.apply(ProgressReported(self._call_id, message, public))


def earlier_result(drive: DriveContext, action: SkipDuplicate) -> DuplicateSkipped:
    """The data of the success that a call repeats."""
    content = drive.journal.transcript.result_of(action.earlier_id)
    if content is None:
        held = (c for c in drive.journal.run.state.turn if c.id == action.earlier_id)
        settled = next((call.settled for call in held), None)
        content = settled.content if settled is not None else "{}"
    return DuplicateSkipped(action.call.id, json.loads(content).get("data"))
