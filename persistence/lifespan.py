"""Start on first use, stop after the last: the life of what a store owns.

Source: docs/persistence.md#opening.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

__all__ = ["Lifespan"]


class Lifespan:
    """Counts users; the first starts, the last one out stops. Can live again afterwards."""

    def __init__(self, start: Callable[[], None], stop: Callable[[], Awaitable[None]]) -> None:
        self._start = start
        self._stop = stop
        self._users = 0
        self._running = False
        self._turn = trio.Lock()

    def use(self) -> Use:
        """Be a user for the length of the block. Leaving is shielded; cancelled before is unused."""
        return Use(self)

    def join(self) -> bool:
        """Become a user if there is another one, who keeps it running."""
        if self._users == 0:
            return False
        self._users += 1
        return True

    def part(self) -> bool:
        """Be a user no longer if there is another one, who keeps it running."""
        if self._users == 1:
            return False
        self._users -= 1
        return True

    async def join_first(self) -> None:
        """Become a user, the only one as it seemed; a stop that is under way is waited for."""
        async with self._turn:
            if not self._running:
                self._start()
                self._running = True
            self._users += 1

    async def part_last(self) -> None:
        """Be a user no longer, the last one."""
        self._users -= 1
        with trio.CancelScope(shield=True):
            await self._end()

    async def _end(self) -> None:
        async with self._turn:
            if self._users > 0 or not self._running:
                return
            try:
                await self._stop()
            finally:
                self._running = False


class Use:
    """One use. A class, because every operation makes one and a generator costs more."""

    __slots__ = ("_lifespan",)

    def __init__(self, lifespan: Lifespan) -> None:
        self._lifespan = lifespan

    async def __aenter__(self) -> None:
        if not self._lifespan.join():
            await self._lifespan.join_first()

    async def __aexit__(self, *_: object) -> None:
        if not self._lifespan.part():
            await self._lifespan.part_last()  # noqa: ASYNC102 - shielded there, bounded by the last statement
