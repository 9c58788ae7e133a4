"""A host that lets external agents sign in: an authorization server beside an MCP endpoint."""
