"""Language models: the port, its values, and an adapter for OpenAI-compatible servers.

The adapter is loaded when it is first used: its HTTP client takes longer than the whole runtime.
"""

from typing import TYPE_CHECKING

from .port import (
    Echo,
    Heartbeat,
    Model,
    ModelCompleted,
    ModelFailure,
    ModelRequest,
    RetryPolicy,
    TextDelta,
    ToolCall,
)

if TYPE_CHECKING:
    from .openai import OpenAICompatibleModel as OpenAICompatibleModel

__all__ = [
    "Echo",
    "Heartbeat",
    "Model",
    "ModelCompleted",
    "ModelFailure",
    "ModelRequest",
    "OpenAICompatibleModel",
    "RetryPolicy",
    "TextDelta",
    "ToolCall",
]

if not TYPE_CHECKING:
    # Hidden from type checkers, which would believe that every name exists.

    def __getattr__(name: str) -> object:
        if name != "OpenAICompatibleModel":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from .openai import OpenAICompatibleModel

        globals()[name] = OpenAICompatibleModel
        return OpenAICompatibleModel
