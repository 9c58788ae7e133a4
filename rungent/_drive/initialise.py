"""The start of a run: dependencies, the host's activity texts and its initial call."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, cast

from pydantic import JsonValue

from rungent._drive.context import DriveContext
from rungent._drive.hosts import call_host
from rungent._lifecycle.outcomes import Initialised, Outcome, RunBroke
from rungent.agent import Agent, RunActivity
from rungent.options import DependencyProvider
from rungent.records import ActivityTexts, Run, Session, ToolCall

__all__ = ["initialise", "resolve_deps"]

logger = logging.getLogger("rungent")


async def resolve_deps(
    provider: DependencyProvider | None, session: Session, run: Run
) -> Mapping[str, Any]:
    """What the provider gives for this drive, `{}` without one.

    Raises whatever the provider raises, and TypeError for a result that is no mapping.
    """
    if provider is None:
        return {}
    deps = cast("object", await call_host(provider, session, run))
    if not isinstance(deps, Mapping):
        raise TypeError("dependency_provider must return a mapping")
    return dict(cast("Mapping[str, Any]", deps))


async def initialise(drive: DriveContext) -> Outcome:
    """Ask the agent's callbacks; whatever goes wrong in them fails the run."""
    content = drive.journal.run.input
    try:
        return Initialised(await _activity(drive, content), await _first_call(drive, content))
    except Exception:
        logger.exception("initialisation of %s failed", drive.journal.run.id)
        return RunBroke("run_initialization_failed")


async def _activity(drive: DriveContext, content: str) -> ActivityTexts | None:
    if drive.agent.run_activity is None:
        return None
    answer = await call_host(drive.agent.run_activity, drive.tool_context(), content)
    activity = cast("object", answer)
    if activity is None:
        return None
    if not isinstance(activity, RunActivity):
        raise TypeError("run_activity must return a RunActivity or None")
    return ActivityTexts(
        message=activity.message,
        waiting_message=activity.waiting_message or activity.message,
        long_wait_message=activity.long_wait_message or activity.message,
        continuation_message=activity.continuation_message or activity.message,
        public=cast("dict[str, JsonValue]", dict(activity.public or {})),
    )


async def _first_call(drive: DriveContext, content: str) -> ToolCall | None:
    if drive.agent.run_initializer is None:
        return None
    answer = await call_host(drive.agent.run_initializer, drive.tool_context(), content)
    call = cast("object", answer)
    if call is None:
        return None
    if not isinstance(call, ToolCall):
        raise TypeError("run_initializer must return a ToolCall or None")
    _require_registered(drive.agent, call.name)
    unnamed = ToolCall(call.name, call.arguments)
    return drive.journal.transcript.identified((unnamed,))[0]


def _require_registered(agent: Agent, name: str) -> None:
    if agent.tool(name) is None:
        raise ValueError("run_initializer named a tool that the agent does not have")
