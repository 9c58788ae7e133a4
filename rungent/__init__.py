"""Rungent: an embedded agent runtime on trio.

A host declares an `Agent` with typed `@tool` functions and serves a `Runtime`; the runtime owns
everything between the model and the user. Start with docs/getting-started.md.
A public name is loaded when it is first used, so that `rungent --help` starts quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rungent.agent import Agent as Agent
    from rungent.agent import RunActivity as RunActivity
    from rungent.errors import ActiveRunConflict as ActiveRunConflict
    from rungent.errors import Conflict as Conflict
    from rungent.errors import IdempotencyKeyReused as IdempotencyKeyReused
    from rungent.errors import InteractionAlreadyResolved as InteractionAlreadyResolved
    from rungent.errors import InteractionMismatch as InteractionMismatch
    from rungent.errors import InvalidRequest as InvalidRequest
    from rungent.errors import InvalidResponse as InvalidResponse
    from rungent.errors import NotAllowed as NotAllowed
    from rungent.errors import NotFound as NotFound
    from rungent.errors import RungentError as RungentError
    from rungent.errors import RunNotRetryable as RunNotRetryable
    from rungent.errors import RunNotWaiting as RunNotWaiting
    from rungent.errors import RuntimeBusy as RuntimeBusy
    from rungent.errors import ShuttingDown as ShuttingDown
    from rungent.errors import TaskMismatch as TaskMismatch
    from rungent.errors import Unauthenticated as Unauthenticated
    from rungent.events import Event as Event
    from rungent.identity import Identity as Identity
    from rungent.interactions.answers import InteractionResponse as InteractionResponse
    from rungent.interactions.answers import (
        TrustedInteractionResponse as TrustedInteractionResponse,
    )
    from rungent.interactions.requests import InteractionRequest as InteractionRequest
    from rungent.interactions.requests import ToolContinuation as ToolContinuation
    from rungent.records import ActionOutcome as ActionOutcome
    from rungent.records import Message as Message
    from rungent.records import Run as Run
    from rungent.records import RunReceipt as RunReceipt
    from rungent.records import Session as Session
    from rungent.records import ToolCall as ToolCall
    from rungent.runtime import Runtime as Runtime
    from rungent.tools.asking import Ask as Ask
    from rungent.tools.context import ToolContext as ToolContext
    from rungent.tools.decorator import ApprovalPolicy as ApprovalPolicy
    from rungent.tools.decorator import Tool as Tool
    from rungent.tools.decorator import ToolEffect as ToolEffect
    from rungent.tools.decorator import tool as tool
    from rungent.tools.results import DeferredRequest as DeferredRequest
    from rungent.tools.results import ToolResult as ToolResult

__all__ = [
    "ActionOutcome",
    "ActiveRunConflict",
    "Agent",
    "ApprovalPolicy",
    "Ask",
    "Conflict",
    "DeferredRequest",
    "Event",
    "IdempotencyKeyReused",
    "Identity",
    "InteractionAlreadyResolved",
    "InteractionMismatch",
    "InteractionRequest",
    "InteractionResponse",
    "InvalidRequest",
    "InvalidResponse",
    "Message",
    "NotAllowed",
    "NotFound",
    "Run",
    "RunActivity",
    "RunNotRetryable",
    "RunNotWaiting",
    "RunReceipt",
    "RungentError",
    "Runtime",
    "RuntimeBusy",
    "Session",
    "ShuttingDown",
    "TaskMismatch",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolContinuation",
    "ToolEffect",
    "ToolResult",
    "TrustedInteractionResponse",
    "Unauthenticated",
    "tool",
]

_HOMES = {
    "ActionOutcome": "rungent.records",
    "ActiveRunConflict": "rungent.errors",
    "Agent": "rungent.agent",
    "ApprovalPolicy": "rungent.tools.decorator",
    "Ask": "rungent.tools.asking",
    "Conflict": "rungent.errors",
    "DeferredRequest": "rungent.tools.results",
    "Event": "rungent.events",
    "IdempotencyKeyReused": "rungent.errors",
    "Identity": "rungent.identity",
    "InteractionAlreadyResolved": "rungent.errors",
    "InteractionMismatch": "rungent.errors",
    "InteractionRequest": "rungent.interactions.requests",
    "InteractionResponse": "rungent.interactions.answers",
    "InvalidRequest": "rungent.errors",
    "InvalidResponse": "rungent.errors",
    "Message": "rungent.records",
    "NotAllowed": "rungent.errors",
    "NotFound": "rungent.errors",
    "Run": "rungent.records",
    "RunActivity": "rungent.agent",
    "RunNotRetryable": "rungent.errors",
    "RunNotWaiting": "rungent.errors",
    "RunReceipt": "rungent.records",
    "RungentError": "rungent.errors",
    "Runtime": "rungent.runtime",
    "RuntimeBusy": "rungent.errors",
    "Session": "rungent.records",
    "ShuttingDown": "rungent.errors",
    "TaskMismatch": "rungent.errors",
    "Tool": "rungent.tools.decorator",
    "ToolCall": "rungent.records",
    "ToolContext": "rungent.tools.context",
    "ToolContinuation": "rungent.interactions.requests",
    "ToolEffect": "rungent.tools.decorator",
    "ToolResult": "rungent.tools.results",
    "TrustedInteractionResponse": "rungent.interactions.answers",
    "Unauthenticated": "rungent.errors",
    "tool": "rungent.tools.decorator",
}

if not TYPE_CHECKING:
    # Hidden from type checkers, which would believe that every name exists.

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
