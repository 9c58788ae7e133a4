"""The options of an endpoint: their names, types and defaults, for every way to mount it.

Source: docs/mcp.md#options.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Required, TypedDict

from rungent.agent import Agent
from rungent.asgi.mcp.catalog import Catalog
from rungent.asgi.mcp.settings import Approval, ContextFactory, IdentityResolver, McpSettings
from rungent.asgi.mcp.states import RequestStates, UsedInProcess, UsedStates
from rungent.asgi.mcp.tasks import McpTasks
from rungent.ids import Now, system_now
from rungent.tools import AnyTool

__all__ = ["EndpointOptions", "McpOptions", "mcp_settings"]


class EndpointOptions(TypedDict, total=False):
    """What an endpoint is told besides who asks and with which dependencies."""

    tools: Iterable[AnyTool | str] | None
    server_name: str | None
    server_version: str
    instructions: str | None
    resource_metadata_url: str | Callable[[Any], str] | None
    approval: Approval
    allowed_origins: Collection[str]
    max_body_bytes: int
    cache_ttl_ms: int
    tasks: McpTasks | None
    state_keys: Sequence[bytes]
    state_ttl_seconds: float
    used_states: UsedStates | None
    now: Now


class McpOptions(EndpointOptions, total=False):
    """What may be given to `create_mcp_asgi` and `create_mcp_blueprint`."""

    identity_resolver: Required[IdentityResolver]
    context_factory: ContextFactory | None


def mcp_settings(
    agent: Agent,
    *,
    identity_resolver: IdentityResolver,
    context_factory: ContextFactory | None = None,
    tools: Iterable[AnyTool | str] | None = None,
    server_name: str | None = None,
    server_version: str = "1.0.0",
    instructions: str | None = None,
    resource_metadata_url: str | Callable[[Any], str] | None = None,
    approval: Approval = "annotate",
    allowed_origins: Collection[str] = (),
    max_body_bytes: int = 1_048_576,
    cache_ttl_ms: int = 0,
    tasks: McpTasks | None = None,
    state_keys: Sequence[bytes] = (),
    state_ttl_seconds: float = 600,
    used_states: UsedStates | None = None,
    now: Now = system_now,
    passing: tuple[type[Exception], ...] = (),
) -> McpSettings:
    """The checked settings of an endpoint. Raises ValueError. Source: docs/mcp.md#options."""
    name = server_name or agent.name
    return McpSettings(
        catalog=Catalog.of(agent, tools, without_approvals=approval == "exclude"),
        identity_resolver=identity_resolver,
        context_factory=context_factory,
        server_name=name,
        server_version=server_version,
        instructions=instructions,
        resource_metadata_url=resource_metadata_url,
        approval=approval,
        allowed_origins=allowed_origins,
        max_body_bytes=max_body_bytes,
        cache_ttl_ms=cache_ttl_ms,
        states=RequestStates(
            keys=state_keys,
            audience=f"{name}/{agent.name}",
            ttl_seconds=state_ttl_seconds,
            used=used_states or UsedInProcess(now),
            now=now,
        ),
        tasks=tasks,
        passing=passing,
    )
