"""Drafts a skill document (SKILL.md) from the tools of an agent.

Source: docs/tools.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rungent.tools import AnyTool, ApprovalPolicy

__all__ = ["render_skill"]

_PREAMBLE = """\
Draft made from the tools of one agent. It lists capabilities and routes nothing.
Call these tools through the MCP connector of this product; do not make up REST paths.
Never ask for or reuse the product's own session token.
If the tools are not available, connect through the sign-in of your MCP client first."""


def render_skill(
    agent_name: str, tools: Iterable[AnyTool], *, title: str | None = None, extra: str = ""
) -> str:
    """The document, in order of declaration, ending with a line break.

    Tools that need a user's answer inside a run are left out: MCP cannot give them one.
    """
    heading = (title or "").strip() or f"{agent_name} tools"
    blocks = [f"# {heading}", _PREAMBLE, "## Tools"]
    for tool in tools:
        if not tool.requires_interaction_response:
            blocks += [f"### `{tool.name}`", tool.description, _facts(tool)]
    if extra.strip():
        blocks += ["## Host notes", extra.strip()]
    return "\n\n".join(blocks) + "\n"


def _facts(tool: AnyTool) -> str:
    lines = [f"- effect: `{tool.effect.value}`", f"- approval: `{tool.approval.value}`"]
    if tool.approval is ApprovalPolicy.ALWAYS and isinstance(tool.confirmation, str):
        lines.append(f"- confirmation: {_one_line(tool.confirmation)}")
    lines.append("- arguments:")
    schema = tool.schema
    required = schema.get("required", [])
    properties: Mapping[str, Mapping[str, Any]] = schema["properties"]
    for name, rules in properties.items():
        need = "required" if name in required else "optional"
        lines.append(f"  - `{name}` ({need}): {_about(rules)}".rstrip())
    return "\n".join(lines)


def _about(rules: Mapping[str, Any]) -> str:
    for key in ("description", "type"):
        text: object = rules.get(key)
        if isinstance(text, str) and text.strip():
            return _one_line(text)
    return ""


def _one_line(text: str) -> str:
    return " ".join(text.split())
