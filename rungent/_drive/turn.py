"""Whose turn it is to write: a lock that costs nothing while it is free."""

from __future__ import annotations

import trio

__all__ = ["Turn"]


class Turn:
    """A fair lock. Taking it is a checkpoint only when somebody else has it.

    `trio.Lock` always makes one, and each commit that it guards has its own anyway.
    """

    def __init__(self) -> None:
        self._holder: trio.lowlevel.Task | None = None
        self._queue = trio.lowlevel.ParkingLot()

    async def __aenter__(self) -> None:
        task = trio.lowlevel.current_task()
        if self._holder is None:
            self._holder = task
        elif self._holder is task:
            raise RuntimeError("the holder of a turn cannot wait for it")
        else:
            # Whoever unparks this task has made it the holder.
            await self._queue.park()

    async def __aexit__(self, *_: object) -> None:
        self._holder = next(iter(self._queue.unpark()), None) if self._queue else None
