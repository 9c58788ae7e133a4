"""Telling the world about a commit: wake followers, then the host's listener."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from rungent._drive.hosts import call_host
from rungent.events import Event
from rungent.options import EventListener
from rungent.store.feed import EventFeed

__all__ = ["Announcer"]

logger = logging.getLogger("rungent")


class Announcer:
    """Announces committed events of this process."""

    def __init__(self, feed: EventFeed, listener: EventListener | None) -> None:
        self._feed = feed
        self._listener = listener

    def wake(self, run_id: str) -> None:
        """Wake the followers of a run."""
        self._feed.notify(run_id)

    async def tell(self, event: Event) -> None:
        """Await the listener for one event. Its errors are logged."""
        if self._listener is None:
            return
        try:
            await call_host(self._listener, event)
        except Exception:
            logger.exception("event listener failed on %s of %s", event.type, event.run_id)

    async def announce(self, run_id: str, events: Sequence[Event]) -> None:
        """Announce a commit on a run that no drive of this process advances."""
        self.wake(run_id)
        for event in events:
            await self.tell(event)
