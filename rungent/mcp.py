"""The MCP adapter under its short name: `from rungent.mcp import create_mcp_asgi`."""

from rungent.asgi.mcp import McpTasks as McpTasks
from rungent.asgi.mcp import UsedStates as UsedStates
from rungent.asgi.mcp import create_mcp_asgi as create_mcp_asgi
from rungent.asgi.mcp import create_mcp_blueprint as create_mcp_blueprint

__all__ = ["McpTasks", "UsedStates", "create_mcp_asgi", "create_mcp_blueprint"]
