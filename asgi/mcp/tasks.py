"""Deferred work of MCP clients: what they may ask about it, and how the host ends it.

Kept in the memory of one process. Source: docs/mcp.md#tasks.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

import trio

from rungent.asgi.mcp.messages import Code, JsonObject
from rungent.asgi.mcp.results import call_result
from rungent.catalog import TOOL_FAILURES
from rungent.errors import NotFound, TaskMismatch
from rungent.events import format_time
from rungent.identity import Identity
from rungent.ids import Now, system_now
from rungent.text import to_json_value
from rungent.tools import (
    DeferredRequest,
    Envelope,
    ToolResult,
    coerce_result,
    failed_result_envelope,
    public_text,
    success_envelope,
)

__all__ = ["TASKS_EXTENSION", "McpTask", "McpTasks", "TaskCanceller"]

logger = logging.getLogger("rungent")

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
POLL_MS = 1000

TaskCanceller = Callable[[DeferredRequest, Identity], Awaitable[None] | None]
Status = Literal["working", "completed", "failed", "cancelled"]
_Key = tuple[Identity, str]


@dataclass(frozen=True, slots=True)
class McpTask:
    """One piece of deferred work and what became of it."""

    request: DeferredRequest
    status: Status
    message: str
    created_at: datetime
    updated_at: datetime
    ttl_seconds: float
    envelope: Envelope | None = None

    def summary(self) -> JsonObject:
        """What every answer about a task says."""
        return {
            "taskId": self.request.task_id,
            "status": self.status,
            "statusMessage": self.message,
            "createdAt": format_time(self.created_at),
            "lastUpdatedAt": format_time(self.updated_at),
            "ttlMs": int(self.ttl_seconds * 1000),
            "pollIntervalMs": POLL_MS,
        }

    def details(self) -> JsonObject:
        """The summary, with the result or the error of a task that ended."""
        if self.envelope is not None:
            return {**self.summary(), "result": call_result(self.envelope)}
        if self.status == "failed":
            error = {"code": int(Code.INTERNAL_ERROR), "message": "The work was lost."}
            return {**self.summary(), "error": error}
        return self.summary()


class McpTasks:
    """The deferred work of one endpoint in this process; it is lost with the process.

    A task belongs to the identity whose call began it, and is named by its
    `DeferredRequest.task_id`, which must be new among the tasks of that identity. It is kept for
    `ttl_seconds` (3600) from its beginning. `max_tasks` (10 000) bounds them all.
    `canceller(request, identity)`, sync or async, is told that a client gave a task up.
    `deferring_tools` names tools that always defer: clients without tasks are refused before
    they run.

    Raises ValueError for bounds that are not above 0. Source: docs/mcp.md#tasks.
    """

    def __init__(
        self,
        *,
        ttl_seconds: float = 3600,
        max_tasks: int = 10_000,
        canceller: TaskCanceller | None = None,
        deferring_tools: Collection[str] = (),
        now: Now = system_now,
    ) -> None:
        if not ttl_seconds > 0 or not max_tasks > 0:
            raise ValueError("ttl_seconds and max_tasks must be above 0")
        self.deferring_tools = frozenset(deferring_tools)
        self._ttl = ttl_seconds
        self._max = max_tasks
        self._canceller = canceller
        self._now = now
        self._tasks: dict[_Key, McpTask] = {}

    async def report_progress(self, task_id: str, message: str, *, identity: Identity) -> None:
        """Show the client how the work goes; 1–280 characters.

        Raises ValueError for another message, NotFound for an unknown task or another owner's,
        TaskMismatch for one that ended.
        """
        text = public_text(message)
        await trio.lowlevel.checkpoint()
        self._change(task_id, identity, "working", message=text)

    async def complete(self, task_id: str, result: object, *, identity: Identity) -> None:
        """End a task with the result of its call, a `ToolResult` or its data.

        A failing result is a result too; its code is `external_task_failed`. Raises ValueError
        for a result that asks or defers, and the errors of `report_progress`.
        """
        ended = coerce_result(result)
        if ended.interaction is not None or ended.deferred is not None:
            raise ValueError("the result of a task can neither ask nor defer")
        await trio.lowlevel.checkpoint()
        self._change(task_id, identity, "completed", envelope=_envelope(ended))

    async def fail(self, task_id: str, *, identity: Identity) -> None:
        """End a task whose work was lost, so that there is no result. Errors as `complete`."""
        await trio.lowlevel.checkpoint()
        self._change(task_id, identity, "failed")

    def begin(self, request: DeferredRequest, identity: Identity) -> McpTask | None:
        """Keep a new task; None when there are too many, or one of this name."""
        now = self._now()
        self._forget(now)
        key = identity, request.task_id
        if key in self._tasks or len(self._tasks) >= self._max:
            return None
        task = McpTask(request, "working", request.message, now, now, self._ttl)
        self._tasks[key] = task
        return task

    def find(self, task_id: str, identity: Identity) -> McpTask:
        """The task. Raises NotFound."""
        task = self._tasks.get((identity, task_id))
        if task is None or task.created_at + timedelta(seconds=self._ttl) <= self._now():
            raise NotFound()
        return task

    async def cancel(self, task_id: str, identity: Identity) -> None:
        """Give a task up; nothing happens to one that ended. Raises NotFound.

        The canceller's exceptions are logged and change nothing.
        """
        await trio.lowlevel.checkpoint()
        task = self.find(task_id, identity)
        if task.status != "working":
            return
        self._change(task_id, identity, "cancelled")
        if self._canceller is None:
            return
        try:
            waiting = self._canceller(task.request, identity)
            if waiting is not None:
                await waiting
        except Exception:
            logger.exception("the canceller of MCP tasks failed")

    def _change(
        self,
        task_id: str,
        identity: Identity,
        status: Status,
        *,
        message: str | None = None,
        envelope: Envelope | None = None,
    ) -> None:
        task = self.find(task_id, identity)
        if task.status != "working":
            raise TaskMismatch()
        self._tasks[identity, task_id] = replace(
            task,
            status=status,
            message=message or task.message,
            envelope=envelope,
            updated_at=self._now(),
        )

    def _forget(self, now: datetime) -> None:
        """Drop what is too old. All live equally long, so that the oldest come first."""
        life = timedelta(seconds=self._ttl)
        old: list[_Key] = []
        for key, task in self._tasks.items():
            if task.created_at + life > now:
                break
            old.append(key)
        for key in old:
            del self._tasks[key]


def _envelope(result: ToolResult) -> Envelope:
    plain = ToolResult(data=to_json_value(result.data), message=result.message)
    if plain.succeeded:
        return success_envelope(plain)
    text, _ = TOOL_FAILURES["external_task_failed"]
    return failed_result_envelope(plain, text, code="external_task_failed")
