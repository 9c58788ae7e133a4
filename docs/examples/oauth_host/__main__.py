"""Serves the host on this machine: `python -m docs.examples.oauth_host [port]`."""

from __future__ import annotations

import sys
from typing import Any

import trio
from hypercorn.config import Config
from hypercorn.trio import serve  # pyright: ignore[reportUnknownVariableType]

from .app import create_host


def main() -> None:
    """Serve until interrupted."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8765
    print(f"Connect an MCP client to http://127.0.0.1:{port}/mcp; sign in as ada, password engine.")
    trio.run(_serve, port)


async def _serve(port: int) -> None:
    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    app: Any = create_host(f"http://127.0.0.1:{port}")
    await serve(app, config)


if __name__ == "__main__":
    main()
