"""The routes as FastAPI routers, under a short name: the runtime's, and the MCP endpoint's."""

from rungent.asgi.fastapi_router import create_router
from rungent.asgi.mcp.fastapi_router import create_mcp_router

__all__ = ["create_mcp_router", "create_router"]
