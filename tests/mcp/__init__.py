"""The MCP adapter, judged from outside and from inside."""
