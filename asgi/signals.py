"""Hearing of a shutdown before the server does: a call in front of its signal handlers.

Source: docs/hosts.md#asyncio.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["SignalChain"]

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class SignalChain:
    """Calls `action`, then the handler that was there. Only for handlers that somebody set.

    Where nobody handles a signal in Python it ends the process as before. Outside the main
    thread nothing is installed. `action` must be safe in signal handlers.
    """

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action
        self._previous: dict[int, Callable[[int, FrameType | None], Any]] = {}

    def install(self) -> None:
        """Get in front of the present handlers."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in SIGNALS:
            previous = signal.getsignal(number)
            if callable(previous) and previous is not signal.default_int_handler:
                self._previous[number] = previous
                signal.signal(number, self._handle)

    def remove(self) -> None:
        """Put the former handlers back, unless others came in the meantime."""
        while self._previous:
            number, previous = self._previous.popitem()
            if signal.getsignal(number) == self._handle:
                signal.signal(number, previous)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._action()
        self._previous[number](number, frame)
