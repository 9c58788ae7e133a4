"""Language models: the port, its values, and an adapter for OpenAI-compatible servers."""

from .openai import OpenAICompatibleModel
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
