"""Whose turn it is to write: a lock that costs nothing while it is free."""

from __future__ import annotations

import trio

__all__ = ["Turn"]


class Turn:
    """A fair lock. Taking it is a checkpoint only when somebody else has it.

    `trio.Lock` always makes one, and each commit that it guards has its own anyway.
    """

    def __init__(self) -> None:
        self._lock = trio.Lock()

    async def __aenter__(self) -> None:
        try:
            self._lock.acquire_nowait()
        except trio.WouldBlock:
            await self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()
