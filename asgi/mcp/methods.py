"""What each method answers, once the request itself is in order.

Source: docs/mcp.md#methods.
"""

from __future__ import annotations

from dataclasses import dataclass

from rungent.asgi.mcp.eras import (
    LEGACY_VERSIONS,
    MODERN_VERSION,
    SERVER_INFO_KEY,
    Era,
    capabilities_of,
)
from rungent.asgi.mcp.messages import Code, JsonObject, Refusal, Request
from rungent.asgi.mcp.settings import McpSettings
from rungent.asgi.mcp.tasks import TASKS_EXTENSION, McpTasks
from rungent.asgi.mcp.tools_call import Deps, ToolsCall, can_have_tasks, missing_capability
from rungent.errors import NotFound
from rungent.identity import Identity

__all__ = ["Methods"]

_LEGACY = ("initialize", "ping", "tools/list", "tools/call")
_MODERN = ("server/discover", "tools/list", "tools/call")
_TASKS = ("tasks/get", "tasks/update", "tasks/cancel")


@dataclass(frozen=True, slots=True)
class Methods:
    """Answers requests of one endpoint. Raises Refusal for what has no result."""

    settings: McpSettings

    async def result(
        self, era: Era, request: Request, identity: Identity, deps: Deps
    ) -> JsonObject:
        """The result of a request of this era; cancelling the caller cancels a tool."""
        result = await self._result(era, request, identity, deps)
        if era is Era.MODERN:
            info = {SERVER_INFO_KEY: self.settings.server_info}
            return {"resultType": "complete", **result, "_meta": info}
        return result

    async def _result(
        self, era: Era, request: Request, identity: Identity, deps: Deps
    ) -> JsonObject:
        method = request.method
        known = _LEGACY if era is Era.LEGACY else _MODERN
        if era is Era.MODERN and method in _TASKS and self.settings.tasks is not None:
            return await self._task(self.settings.tasks, request, identity)
        if method not in known:
            raise Refusal(Code.METHOD_NOT_FOUND, "There is no such method.")
        if method == "tools/call":
            return await ToolsCall(self.settings, era).result(request, identity, deps)
        if method == "tools/list":
            return self._list(era, request)
        if method == "ping":
            return {}
        return self._initialize(request) if method == "initialize" else self._discover()

    def _initialize(self, request: Request) -> JsonObject:
        wanted: object = request.params.get("protocolVersion")
        version = wanted if wanted in LEGACY_VERSIONS else LEGACY_VERSIONS[-1]
        return {
            "protocolVersion": version,
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": self.settings.server_info,
            **self._instructions(),
        }

    def _discover(self) -> JsonObject:
        capabilities: JsonObject = {"tools": {"listChanged": False}}
        if self.settings.tasks is not None:
            capabilities["extensions"] = {TASKS_EXTENSION: {}}
        return {
            "supportedVersions": [MODERN_VERSION],
            "capabilities": capabilities,
            **self._instructions(),
            **self._cache(),
        }

    def _instructions(self) -> JsonObject:
        text = self.settings.instructions
        return {} if text is None else {"instructions": text}

    def _cache(self) -> JsonObject:
        return {"ttlMs": self.settings.cache_ttl_ms, "cacheScope": "private"}

    def _list(self, era: Era, request: Request) -> JsonObject:
        if request.params.get("cursor") is not None:
            raise Refusal(Code.INVALID_PARAMS, "The list has one page; there is no such cursor.")
        listed: JsonObject = {"tools": self.settings.catalog.descriptors}
        return listed | self._cache() if era is Era.MODERN else listed

    async def _task(self, tasks: McpTasks, request: Request, identity: Identity) -> JsonObject:
        if not can_have_tasks(capabilities_of(request)):
            raise missing_capability({"extensions": {TASKS_EXTENSION: {}}})
        task_id: str = request.params["taskId"]
        try:
            task = tasks.find(task_id, identity)
            if request.method == "tasks/get":
                return task.details()
            if request.method == "tasks/cancel":
                await tasks.cancel(task_id, identity)
        except NotFound:
            raise Refusal(Code.INVALID_PARAMS, "There is no such task.") from None
        # `tasks/update` brings answers, and no task of ours asks.
        return {}
