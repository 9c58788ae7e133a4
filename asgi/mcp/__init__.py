"""The MCP adapter: the tools of an agent for external agents, over one HTTP endpoint.

Source: docs/mcp.md.
"""

from rungent.asgi.mcp.app import create_mcp_asgi as create_mcp_asgi
from rungent.asgi.mcp.app import create_mcp_blueprint as create_mcp_blueprint
from rungent.asgi.mcp.states import UsedStates as UsedStates
from rungent.asgi.mcp.tasks import McpTasks as McpTasks

__all__ = ["McpTasks", "UsedStates", "create_mcp_asgi", "create_mcp_blueprint"]
