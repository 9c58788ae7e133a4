"""Which tools an MCP client sees, and how they are described to it. No I/O.

Source: docs/mcp.md#tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, cast

from rungent.agent import Agent
from rungent.asgi.mcp.messages import JsonObject
from rungent.tools import AnyTool, ApprovalPolicy, Tool, ToolEffect

__all__ = ["Catalog", "descriptor"]


@dataclass(frozen=True, slots=True)
class Catalog:
    """The exported tools in order of declaration, by name."""

    agent: Agent
    tools: Mapping[str, AnyTool]
    descriptors: list[JsonObject] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "descriptors", [descriptor(tool) for tool in self.tools.values()])

    @classmethod
    def of(
        cls, agent: Agent, chosen: Iterable[AnyTool | str] | None, *, without_approvals: bool
    ) -> Catalog:
        """The agent's tools, or those `chosen` of them. Raises ValueError for unknown ones.

        Tools that need a user's answer are left out: no client can call them by itself. So are
        tools that ask by themselves: whom they ask may take days.
        """
        names = None if chosen is None else {_name_of(agent, tool) for tool in chosen}
        return cls(
            agent,
            MappingProxyType(
                {
                    tool.name: tool
                    for tool in agent.tools
                    if not tool.requires_interaction_response
                    and tool.interactive.answered is None
                    and (names is None or tool.name in names)
                    and not (without_approvals and tool.approval is ApprovalPolicy.ALWAYS)
                }
            ),
        )


def descriptor(tool: AnyTool) -> JsonObject:
    """A tool as `tools/list` shows it."""
    meta: dict[str, Any] = {"effect": tool.effect.value, "approval": tool.approval.value}
    if isinstance(tool.confirmation, str):
        meta["confirmation"] = tool.confirmation
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.schema,
        "annotations": {
            "title": tool.title,
            "readOnlyHint": tool.effect is ToolEffect.READ,
            "destructiveHint": tool.effect is ToolEffect.DESTRUCTIVE,
            "openWorldHint": tool.effect is ToolEffect.EXTERNAL,
            "idempotentHint": tool.idempotent,
        },
        "_meta": meta,
    }


def _name_of(agent: Agent, chosen: object) -> str:
    name = cast("AnyTool", chosen).name if isinstance(chosen, Tool) else chosen
    known = agent.tool(name) if isinstance(name, str) else None
    if known is None or (isinstance(chosen, Tool) and known is not chosen):
        raise ValueError("tools must name tools of the agent")
    return known.name
