"""What a host decides about its MCP endpoint, checked once.

Source: docs/mcp.md#options.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rungent.asgi.mcp.catalog import Catalog
from rungent.asgi.mcp.messages import JsonObject
from rungent.asgi.mcp.states import RequestStates
from rungent.asgi.mcp.tasks import McpTasks
from rungent.identity import Identity
from rungent.tools import AnyTool, ToolContext

__all__ = ["Approval", "ApprovalGate", "McpSettings"]

IdentityResolver: TypeAlias = Callable[[Any], Identity | Awaitable[Identity | None] | None]
ContextFactory: TypeAlias = Callable[[Any], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]
ApprovalGate: TypeAlias = Callable[
    [ToolContext, AnyTool, Mapping[str, Any]], bool | Awaitable[bool]
]
Approval: TypeAlias = Literal["annotate", "elicit", "exclude"] | ApprovalGate

MODES = ("annotate", "elicit", "exclude")


@dataclass(frozen=True, slots=True, kw_only=True)
class McpSettings:
    """One endpoint. The callbacks may be sync or async and get the framework's request.

    `passing` are exceptions of the web framework that callbacks may answer a request with.
    Raises ValueError for an unknown approval mode and bounds out of range, TypeError for one
    text in place of several origins.
    """

    catalog: Catalog
    identity_resolver: IdentityResolver
    context_factory: ContextFactory | None
    server_name: str
    server_version: str
    instructions: str | None
    resource_metadata_url: str | Callable[[Any], str] | None
    approval: Approval
    allowed_origins: Collection[str]
    max_body_bytes: int
    cache_ttl_ms: int
    states: RequestStates
    tasks: McpTasks | None
    passing: tuple[type[Exception], ...] = ()

    def __post_init__(self) -> None:
        if not callable(self.approval) and self.approval not in MODES:
            raise ValueError(f"approval must be callable or one of {', '.join(MODES)}")
        if isinstance(self.allowed_origins, str):
            raise TypeError("allowed_origins must be a collection of origins")
        if not self.max_body_bytes > 0 or self.cache_ttl_ms < 0:
            raise ValueError("max_body_bytes must be above 0, and cache_ttl_ms not below 0")

    @property
    def server_info(self) -> JsonObject:
        """How the server introduces itself."""
        return {"name": self.server_name, "version": self.server_version}

    def allows(self, origin: str) -> bool:
        """Whether browsers on this origin may use the endpoint."""
        return origin in self.allowed_origins or "*" in self.allowed_origins
