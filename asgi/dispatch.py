"""Sending requests to other ASGI applications by the beginning of their path.

Source: docs/http.md#mounts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

__all__ = ["AsgiApp", "Dispatcher", "checked_mounts"]

AsgiApp: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]


def checked_mounts(mounts: Mapping[str, AsgiApp]) -> dict[str, AsgiApp]:
    """The mounts, longest prefix first. Raises ValueError for a prefix that is no path."""
    for prefix in mounts:
        if not prefix.startswith("/") or prefix.endswith("/"):
            raise ValueError("a mount must begin with a slash and not end with one")
    return dict(sorted(mounts.items(), key=lambda mount: len(mount[0]), reverse=True))


class Dispatcher:
    """Requests and websockets under a prefix go to its application, all else to `default`."""

    def __init__(self, mounts: Mapping[str, AsgiApp], default: AsgiApp) -> None:
        self._mounts = mounts
        self._default = default

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one connection."""
        if scope["type"] == "lifespan":
            return await self._default(scope, receive, send)
        # Where this application is mounted itself, the server repeats the mount point.
        path: str = scope["path"].removeprefix(scope.get("root_path", ""))
        for prefix, app in self._mounts.items():
            rest = path.removeprefix(prefix)
            if path.startswith(prefix) and rest[:1] in ("", "/"):
                return await app(_at_root(scope, rest or "/"), receive, send)
        return await self._default(scope, receive, send)


def _at_root(scope: Mapping[str, Any], path: str) -> dict[str, Any]:
    inner = {**scope, "path": path, "root_path": ""}
    # It holds the whole path as it was sent; who needs the encoded form can encode it again.
    inner.pop("raw_path", None)
    return inner
