"""Writing assistant text: whatever piled up during the last write becomes one delta.

A delta is never delayed while nothing is being written, and the reader of the provider's stream
never waits for the store.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from rungent.text import storable

__all__ = ["Pen"]


class Pen:
    """Collects text with `put` and writes it from its own task, `run`, which `start` starts.

    White space before the first visible character is dropped. `text` is all text since the last
    `drop`, `shown` says whether any of it was written.
    """

    def __init__(
        self, write: Callable[[str], Awaitable[None]], start: Callable[[], object]
    ) -> None:
        self._write = write
        self._start: Callable[[], object] | None = start
        self._pieces: list[str] = []
        self._waiting: list[str] = []
        self._wake: trio.Event | None = None
        self._idle: trio.Event | None = None
        self._busy = False
        self.shown = False

    @property
    def text(self) -> str:
        """Everything put since the last drop, as it was or will be written."""
        return "".join(self._pieces)

    def put(self, text: str) -> None:
        """Take text to write as soon as possible."""
        if not self._pieces:
            text = text.lstrip()
        if not text:
            return
        clean = storable(text)
        self._pieces.append(clean)
        self._waiting.append(clean)
        if self._wake is not None:
            self._wake.set()
            self._wake = None
        elif self._start is not None:
            # Only now: many steps have no text.
            self._start()
            self._start = None

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            while self._waiting:
                text = "".join(self._waiting)
                self._waiting.clear()
                self._busy = True
                self.shown = True
                await self._write(text)
                self._busy = False
            if self._idle is not None:
                self._idle.set()
            self._wake = wake = trio.Event()
            await wake.wait()

    async def finish(self) -> str:
        """The text that nobody began to write, to be written by the caller: the last of all.

        Comes back when the write in flight is over.
        """
        rest = "".join(self._waiting)
        self._waiting.clear()
        if self._busy:
            self._idle = trio.Event()
            await self._idle.wait()
            self._idle = None
        return rest

    async def drop(self) -> None:
        """Forget the text of a failed attempt, once the write in flight is over."""
        await self.finish()
        self._pieces.clear()
        self.shown = False
