"""Telling the world about a commit: wake followers, then the host's listener.

The listener hears the events of a run one after another and in order, whoever committed them: a
drive, or an entry from outside while the drive before is still leaving.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field

import trio

from rungent._drive.hosts import call_host
from rungent.events import Event
from rungent.options import EventListener
from rungent.store.feed import EventFeed

__all__ = ["Announcer"]

logger = logging.getLogger("rungent")

# The commit that the current task makes: by which announcer's runtime, of which run.
_committing: ContextVar[tuple[object, str] | None] = ContextVar("rungent_committing", default=None)
_told_of: ContextVar[frozenset[str]] = ContextVar("rungent_told_of", default=frozenset())


@dataclass(slots=True)
class _Line:
    """The events of one run that the listener has not heard, and the turn to tell them."""

    events: deque[Event] = field(default_factory=deque[Event])
    turn: trio.Lock = field(default_factory=trio.Lock)


class Announcer:
    """Announces committed events of this process."""

    def __init__(self, feed: EventFeed, listener: EventListener | None) -> None:
        self._feed = feed
        self._listener = listener
        self._lines: dict[str, _Line] = {}

    @property
    def listened(self) -> bool:
        """Whether anybody has to be told."""
        return self._listener is not None

    def committing(self, run_id: str) -> AbstractContextManager[None]:
        """Around each commit of a drive, whose events are announced next.

        A store may report every change, also that of the commit itself; see `heard`.
        """
        return _Committing(self, run_id)

    def heard(self, run_id: str | None) -> bool:
        """Wake the followers of a run, or of all for None, to a change that the store reports.

        Whether it was news: the commit that this task just makes is none, for its events are
        announced with the commit itself, and followers need not look for them.
        """
        if run_id is not None and _committing.get() == (self, run_id):
            return False
        self._feed.notify(run_id)
        return True

    def wake(self, run_id: str, events: Sequence[Event]) -> None:
        """Wake the followers of a run to the events of a commit."""
        self._feed.notify(run_id, events)

    def inside(self, run_id: str) -> bool:
        """Whether the caller is the listener itself, at work on an event of this run."""
        line = self._lines.get(run_id)
        return line is not None and line.turn.locked() and run_id in _told_of.get()

    async def announce(self, run_id: str, events: Sequence[Event]) -> None:
        """Wake the followers to the events of a commit, and tell the listener of them."""
        self.wake(run_id, events)
        await self.tell(run_id, events)

    async def tell(self, run_id: str, events: Sequence[Event]) -> None:
        """Tell the listener of committed events, and of those that a cancelled caller left behind.

        Inside the listener it returns at once: whoever called the listener tells of them next.
        """
        if self._listener is None:
            return
        line = self._lines.setdefault(run_id, _Line())
        line.events.extend(events)
        if self.inside(run_id):
            return
        async with line.turn:
            while line.events:
                await self._tell(self._listener, line.events.popleft())
        if not line.events and not line.turn.locked() and self._lines.get(run_id) is line:
            del self._lines[run_id]

    async def _tell(self, listener: EventListener, event: Event) -> None:
        """Await the listener for one event. Its errors are logged."""
        before = _told_of.set(_told_of.get() | {event.run_id})
        try:
            await call_host(listener, event)
        except Exception:
            logger.exception("event listener failed on %s of %s", event.type, event.run_id)
        finally:
            _told_of.reset(before)


class _Committing(AbstractContextManager[None]):
    """Marks the task; a commit that failed may be stored all the same, so that followers look."""

    def __init__(self, announcer: Announcer, run_id: str) -> None:
        self._place = (announcer, run_id)

    def __enter__(self) -> None:
        _committing.set(self._place)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        _committing.set(None)
        if kind is not None:
            announcer, run_id = self._place
            announcer.wake(run_id, ())
