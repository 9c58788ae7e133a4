"""One call of a tool, from its arguments to a result, a question or deferred work.

The checks and their order are those of a call inside a run; there is no deduplication.
Source: docs/mcp.md#calls.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import trio
from pydantic import JsonValue

from rungent.agent import Agent
from rungent.asgi.host import called
from rungent.asgi.mcp.results import failure
from rungent.asgi.mcp.settings import Approval
from rungent.identity import Identity
from rungent.interactions import (
    InteractionRequest,
    InteractionSpec,
    InvalidInteraction,
    ToolContinuation,
    TrustedInteractionResponse,
    approval_spec,
)
from rungent.text import storable, to_json_value
from rungent.tools import (
    AnyTool,
    ApprovalPolicy,
    ArgumentErrors,
    Arguments,
    DeferredRequest,
    Envelope,
    ToolContext,
    ToolResult,
    coerce_result,
    confirmation_text,
    failed_result_envelope,
    success_envelope,
)

__all__ = ["Asked", "CallOutcome", "Caller", "ToolCaller", "Unanswerable"]

logger = logging.getLogger("rungent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who calls, under which ids, with what from the host, and what the client can do."""

    identity: Identity
    deps: Mapping[str, Any]
    session_id: str
    run_id: str
    call_id: str
    can_ask: bool
    can_wait: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """A question stands between the client and this call; `answer` is one it got before."""

    tool: str
    arguments: dict[str, JsonValue]
    spec: InteractionSpec
    answer: TrustedInteractionResponse | None = None


@dataclass(frozen=True, slots=True)
class Unanswerable:
    """The call needs a person's consent, and this client has no way to ask for it."""


CallOutcome = Envelope | Asked | DeferredRequest | Unanswerable


@dataclass(frozen=True, slots=True)
class ToolCaller:
    """Calls tools of one agent under one approval mode. Exceptions of tools become envelopes."""

    agent: Agent
    approval: Approval

    async def call(
        self,
        caller: Caller,
        tool: AnyTool,
        arguments: Mapping[str, object],
        answer: TrustedInteractionResponse | None = None,
    ) -> CallOutcome:
        """Check the arguments, pass the gate, execute. A cancelled caller cancels the tool."""
        try:
            checked = tool.arguments.check(arguments)
        except ArgumentErrors as invalid:
            return failure("invalid_arguments", details=invalid.details)
        if tool.approval is ApprovalPolicy.ALWAYS:
            stopped = await self._gate(caller, tool, checked, answer)
            if stopped is not None:
                return stopped
        return await self._execute(caller, tool, checked, answer)

    async def call_frozen(
        self,
        caller: Caller,
        name: str,
        frozen: Mapping[str, JsonValue],
        answer: TrustedInteractionResponse | None,
        *,
        approved: bool,
    ) -> CallOutcome:
        """Go on with a call after its question was answered, exactly as it was frozen."""
        tool = self.agent.tool(name)
        if tool is None:
            return failure("unknown_tool")
        try:
            checked = tool.arguments.check(frozen)
        except ArgumentErrors as invalid:
            return failure("invalid_arguments", details=invalid.details)
        if checked.normalised != frozen:
            # The tool changed meanwhile: what would run is not what was asked about.
            return failure("invalid_arguments")
        if approved:
            return await self._execute(caller, tool, checked, answer)
        return await self.call(caller, tool, frozen, answer)

    async def _gate(
        self,
        caller: Caller,
        tool: AnyTool,
        arguments: Arguments,
        answer: TrustedInteractionResponse | None,
    ) -> CallOutcome | None:
        """What stops a call that needs approval, or None."""
        context = _context(caller, answer)
        try:
            with trio.move_on_after(tool.timeout_seconds):
                if callable(self.approval):
                    allowed = await called(self.approval, context, tool, arguments.values)
                    return None if allowed is True else failure("rejected")
                if caller.can_ask:
                    text = await _confirmation(context, tool, arguments)
                    return Asked(tool.name, arguments.normalised, approval_spec(text), answer)
                return Unanswerable() if self.approval == "elicit" else None
        except Exception:
            logger.exception("approval of %s failed", tool.name)
        return failure("approval_unavailable")

    async def _execute(
        self,
        caller: Caller,
        tool: AnyTool,
        arguments: Arguments,
        answer: TrustedInteractionResponse | None,
    ) -> CallOutcome:
        reports = _Reports()
        context = _context(caller, answer, reports)
        try:
            with trio.move_on_after(tool.timeout_seconds):
                result = coerce_result(await tool(context, **arguments.values))
                return self._outcome(caller, tool, result)
        except Exception:
            logger.exception("tool %s failed", tool.name)
            return failure("tool_error")
        finally:
            reports.open = False
        # Reached only when our own deadline absorbed the call.
        return failure("timeout")

    def _outcome(self, caller: Caller, tool: AnyTool, result: ToolResult) -> CallOutcome:
        if tool.parallel and (result.interaction is not None or result.deferred is not None):
            return failure("tool_error")
        if isinstance(result.interaction, InteractionRequest):
            return self._question(caller, result.interaction)
        if result.interaction is not None:
            return failure("tool_error")
        if result.deferred is not None:
            return result.deferred if caller.can_wait else failure("deferred_unsupported")
        plain = ToolResult(data=to_json_value(result.data), message=result.message)
        if plain.succeeded:
            return success_envelope(plain)
        return failed_result_envelope(plain, str(failure("tool_rejected")["message"]))

    def _question(self, caller: Caller, request: InteractionRequest) -> CallOutcome:
        """The question with its frozen continuation, if the client can ask and every rule holds."""
        if not caller.can_ask:
            prompt = cast("object", request.prompt)
            text = storable(prompt).strip() if isinstance(prompt, str) else ""
            return failure("missing_arguments", message=text or None)
        # Hosts build these without any check.
        then = cast("object", request.continuation)
        try:
            if isinstance(then, ToolContinuation):
                tool, arguments = self._continuation(then)
                return Asked(tool.name, arguments, request.spec())
        except (InvalidInteraction, ArgumentErrors, LookupError):
            logger.info("a tool asked a question that breaks a rule")
        return failure("invalid_interaction", retryable=False)

    def _continuation(self, then: ToolContinuation) -> tuple[AnyTool, dict[str, JsonValue]]:
        """The tool that gets the answer, and its frozen arguments. Raises LookupError, too."""
        name, given = cast("object", then.tool), cast("object", then.arguments)
        tool = self.agent.tool(name) if isinstance(name, str) else None
        if tool is None or not tool.requires_interaction_response:
            raise LookupError("no tool of the agent that takes answers")
        if not isinstance(given, Mapping):
            raise ArgumentErrors([])
        return tool, tool.arguments.normalise(cast("Mapping[str, object]", given))


class _Reports:
    """Progress of one call: checked like anywhere, and shown to nobody."""

    def __init__(self) -> None:
        self.open = True

    async def report(self, message: str, public: JsonValue) -> None:
        del message, public
        await trio.lowlevel.checkpoint()
        if not self.open:
            raise RuntimeError("the call is over; its progress can no longer be reported")


def _context(
    caller: Caller, answer: TrustedInteractionResponse | None, reports: _Reports | None = None
) -> ToolContext:
    return ToolContext.create(
        identity=caller.identity,
        session_id=caller.session_id,
        run_id=caller.run_id,
        call_id=caller.call_id,
        deps=caller.deps,
        interaction_response=answer,
        report=None if reports is None else reports.report,
    )


async def _confirmation(context: ToolContext, tool: AnyTool, arguments: Arguments) -> str:
    if not callable(tool.confirmation):
        return tool.render_confirmation(arguments.normalised)
    return confirmation_text(await called(tool.confirmation, context, **arguments.values))
