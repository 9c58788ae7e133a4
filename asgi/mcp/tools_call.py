"""The method `tools/call`: a first call, or the repetition of one that was answered meanwhile.

Source: docs/mcp.md#calls.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from rungent.asgi.mcp.calls import Asked, Caller, CallOutcome, ToolCaller, Unanswerable
from rungent.asgi.mcp.elicitation import can_elicit
from rungent.asgi.mcp.eras import Era, capabilities_of
from rungent.asgi.mcp.messages import Code, JsonObject, Refusal, Request
from rungent.asgi.mcp.results import call_result, failure
from rungent.asgi.mcp.rounds import Answered, Origin, Rounds, Unaccepted
from rungent.asgi.mcp.settings import McpSettings
from rungent.asgi.mcp.tasks import TASKS_EXTENSION
from rungent.identity import Identity
from rungent.ids import new_id
from rungent.text import storable
from rungent.tools import DeferredRequest

__all__ = ["Deps", "ToolsCall", "can_have_tasks", "missing_capability"]

Deps = Callable[[], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class ToolsCall:
    """Answers `tools/call` in one era."""

    settings: McpSettings
    era: Era

    async def result(self, request: Request, identity: Identity, deps: Deps) -> JsonObject:
        """The result of one call. Raises Refusal; cancelling the caller cancels the tool."""
        name: object = request.params.get("name")
        given: object = request.params.get("arguments")
        tool = self.settings.catalog.tools.get(name) if isinstance(name, str) else None
        if tool is None:
            raise Refusal(Code.INVALID_PARAMS, "There is no such tool.")
        if given is not None and not isinstance(given, dict):
            raise Refusal(Code.INVALID_PARAMS, "The arguments are an object.")
        arguments = cast("JsonObject", given or {})
        # Before a state is used up: the host may fail here.
        provided = await deps()
        if self.era is Era.MODERN and request.params.get("requestState") is not None:
            taken = await self._rounds().take(identity, tool.name, arguments, request.params)
            if isinstance(taken, Unaccepted):
                return taken.result
            return await self._resume(taken, self._caller(taken.origin, request, provided))
        origin = Origin(
            identity=identity,
            tool=tool.name,
            arguments=arguments,
            session_id=new_id("mcp_"),
            run_id=new_id("run_"),
            call_id=storable(str(request.id)),
        )
        caller = self._caller(origin, request, provided)
        if not caller.can_wait and self._always_defers(tool.name):
            return self._refused("deferred_unsupported", {"extensions": {TASKS_EXTENSION: {}}})
        return self._shown(await self._calls().call(caller, tool, arguments), origin)

    async def _resume(self, answered: Answered, caller: Caller) -> JsonObject:
        if not answered.accepted:
            return call_result(failure("rejected"))
        asked = answered.asked
        outcome = await self._calls().call_frozen(
            caller, asked.tool, asked.arguments, answered.answer, approved=answered.approved
        )
        return self._shown(outcome, answered.origin)

    def _shown(self, outcome: CallOutcome, origin: Origin) -> JsonObject:
        match outcome:
            case Asked():
                return self._rounds().ask(origin, outcome)
            case Unanswerable():
                return self._refused("interaction_required", {"elicitation": {}})
            case DeferredRequest():
                assert self.settings.tasks is not None, "nobody defers without tasks"
                task = self.settings.tasks.begin(outcome, origin.identity)
                if task is None:
                    return call_result(failure("tool_error"))
                return {"resultType": "task", **task.summary()}
            case _:
                return call_result(outcome)

    def _refused(self, code: str, capabilities: JsonObject) -> JsonObject:
        """Only the modern era has an error for clients that cannot do what is needed."""
        if self.era is Era.MODERN:
            raise missing_capability(capabilities)
        return call_result(failure(code))

    def _always_defers(self, name: str) -> bool:
        return self.settings.tasks is not None and name in self.settings.tasks.deferring_tools

    def _caller(self, origin: Origin, request: Request, deps: Mapping[str, Any]) -> Caller:
        able: Mapping[str, Any] = capabilities_of(request) if self.era is Era.MODERN else {}
        return Caller(
            identity=origin.identity,
            deps=deps,
            session_id=origin.session_id,
            run_id=origin.run_id,
            call_id=origin.call_id,
            can_ask=can_elicit(able),
            can_wait=self.settings.tasks is not None and can_have_tasks(able),
        )

    def _calls(self) -> ToolCaller:
        return ToolCaller(self.settings.catalog.agent, self.settings.approval)

    def _rounds(self) -> Rounds:
        return Rounds(self.settings.states)


def can_have_tasks(capabilities: Mapping[str, Any]) -> bool:
    """Whether a client that declared these waits for tasks."""
    extensions: object = capabilities.get("extensions")
    return isinstance(extensions, dict) and TASKS_EXTENSION in extensions


def missing_capability(capabilities: JsonObject) -> Refusal:
    """The error for a request that needs more than its client declared."""
    text = "The client did not declare a capability that this needs."
    return Refusal(Code.MISSING_CAPABILITY, text, {"requiredCapabilities": capabilities})
