"""How long to leave a database alone that cannot be reached. Source: docs/persistence.md#outages."""

from __future__ import annotations

import trio

__all__ = ["LONGEST_PAUSE", "Outage"]

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0


class Outage:
    """The times at which to try again: soon at first, then ever later, `longest` apart at most."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._delay = 0.0
        self._until = 0.0

    @property
    def lasts(self) -> bool:
        """Whether the last attempt failed."""
        return self._delay > 0

    def failed(self) -> None:
        """An attempt failed."""
        self._delay = min(self._delay * 2 or FIRST_PAUSE, self._longest)
        self._until = trio.current_time() + self._delay

    def ended(self) -> None:
        """An attempt succeeded."""
        self._delay = 0

    async def wait(self) -> None:
        """Wait for the next attempt."""
        await trio.sleep_until(self._until)
