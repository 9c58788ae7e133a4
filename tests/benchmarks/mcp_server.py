"""One MCP server with one tool, ours or the official SDK's: `python -m … ours|official PORT`."""

from __future__ import annotations

import sys
from typing import Any

import trio
from hypercorn.config import Config
from hypercorn.trio import serve  # pyright: ignore[reportUnknownVariableType]


def ours() -> Any:
    """Rungent's endpoint."""
    from rungent import Agent, Identity, ToolContext, tool
    from rungent.mcp import create_mcp_asgi

    @tool(effect="read", approval="never")
    async def add(ctx: ToolContext, a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    agent = Agent(name="bench", instructions="-", tools=[add])
    return create_mcp_asgi(agent, identity_resolver=lambda request: Identity("bench"))


def official() -> Any:
    """The endpoint of the official SDK, without its protection against foreign hosts."""
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("bench")

    @server.tool()
    async def add(a: int, b: int) -> int:  # pyright: ignore[reportUnusedFunction]
        """Add two numbers."""
        return a + b

    return server.streamable_http_app(
        streamable_http_path="/", json_response=True, stateless_http=True
    )


def main(kind: str, port: str) -> None:
    """Serve until killed."""
    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.keep_alive_max_requests = 10**9
    app = ours() if kind == "ours" else official()

    async def run() -> None:
        await serve(app, config)

    trio.run(run)


if __name__ == "__main__":
    main(*sys.argv[1:])
