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
    """Announces committed events of this process, in the order of their commits."""

    def __init__(self, feed: EventFeed, listener: EventListener | None) -> None:
        self._feed = feed
        self._listener = listener

    async def announce(self, run_id: str, events: Sequence[Event]) -> None:
        """Wake followers at once; await the listener for each event. Its errors are logged."""
        if not events:
            return
        self._feed.notify(run_id)
        if self._listener is None:
            return
        for event in events:
            try:
                await call_host(self._listener, event)
            except Exception:
                logger.exception("event listener failed on %s of %s", event.type, run_id)
