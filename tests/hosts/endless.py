"""An application that answers without an end, and notes what happens to it."""

from __future__ import annotations

from typing import Any

import trio

PIECE = b"x" * 10_000


class Endless:
    """Sends until its client leaves or somebody cancels it."""

    def __init__(self) -> None:
        self.sent = 0
        self.left = False
        self.over = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        del scope
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._send, send)
                while (await receive())["type"] != "http.disconnect":
                    pass
                self.left = True
                nursery.cancel_scope.cancel()
        finally:
            self.over = True

    async def _send(self, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": PIECE, "more_body": True})
            self.sent += 1
