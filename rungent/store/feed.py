"""Following a run's log: wake-ups that say "look again", and streams that look.

The store holds the events; a wake-up carries none. It is armed before looking, so nothing slips
between, and a slow reader blocks nobody, because nothing is buffered for it.
Source: docs/events.md#following.
"""

from __future__ import annotations

from typing import Literal
from weakref import WeakValueDictionary

import trio

from rungent.events import TERMINAL_TYPES, Event
from rungent.records import RunStatus
from rungent.store.port import Store

__all__ = ["EventFeed", "EventStream", "Until"]

PAGE = 500
Until = Literal["terminal"]


class EventFeed:
    """The wake-ups of one runtime."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # Weak, so that a run nobody follows any more leaves nothing behind.
        self._changed: WeakValueDictionary[str, trio.Event] = WeakValueDictionary()
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether streams end because the runtime drains."""
        return self._closed

    def notify(self, run_id: str | None) -> None:
        """Wake the followers of a run, or of every run for None."""
        if run_id is not None:
            changed = self._changed.pop(run_id, None)
            if changed is not None:
                changed.set()
            return
        waiting = list(self._changed.values())
        self._changed.clear()
        for changed in waiting:
            changed.set()

    def listen(self, run_id: str) -> trio.Event:
        """An event that is set by the next notification; hold on to it while waiting."""
        changed = self._changed.get(run_id)
        if changed is None:
            changed = self._changed[run_id] = trio.Event()
        return changed

    def open(self) -> None:
        """Let streams wait again."""
        self._closed = False

    def close(self) -> None:
        """End every stream after what it can read now."""
        self._closed = True
        self.notify(None)

    def follow(self, run_id: str, after: int, until: Until | None = None) -> EventStream:
        """A stream of the events with `seq > after`."""
        return EventStream(self, self._store, run_id, after, until)


class EventStream:
    """Replays and follows the events of one run: an async iterator, or `batch()` by `batch()`.

    Ends when the run is terminal and everything was delivered; also when it waits for input,
    unless `until="terminal"`; and when the runtime drains (`interrupted` is then true). Waiting
    may be cancelled at any point and resumed: no event is lost. Dropping the stream affects
    nothing. Source: docs/events.md#following.
    """

    def __init__(
        self, feed: EventFeed, store: Store, run_id: str, after: int, until: Until | None
    ) -> None:
        self._feed = feed
        self._store = store
        self._run_id = run_id
        self._until = until
        self._last_seq = after
        self._last_type: str | None = None
        self._buffer: list[Event] = []
        self._interrupted = False

    @property
    def last_seq(self) -> int:
        """The cursor behind the last delivered batch."""
        return self._last_seq

    @property
    def interrupted(self) -> bool:
        """Whether the stream ended only because the runtime drains."""
        return self._interrupted

    async def batch(self) -> list[Event]:
        """The next events, at least one; an empty list means that the stream has ended.

        Cancelling it loses nothing.
        """
        while True:
            changed = self._feed.listen(self._run_id)
            events = await self._look(most=PAGE)
            if events:
                self._last_seq = events[-1].seq
                self._last_type = events[-1].type
                return events
            if await self._ended():
                return []
            if self._feed.closed:
                self._interrupted = True
                return []
            await changed.wait()

    async def _look(self, *, most: int) -> list[Event]:
        return await self._store.list_events(self._run_id, after=self._last_seq, limit=most)

    async def _ended(self) -> bool:
        """Whether nothing more is to come now; asked only when all stored events are delivered."""
        if self._last_type is None:
            run = await self._store.get_run(self._run_id)
            if run.event_seq > self._last_seq:
                # They came since the last look, unless the log of an ended run was pruned.
                return not run.active and not await self._look(most=1)
            waiting = run.status is RunStatus.WAITING_INPUT and self._until != "terminal"
            return waiting or not run.active
        if self._last_type in TERMINAL_TYPES:
            return True
        return self._last_type == "interaction.requested" and self._until != "terminal"

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Event:
        if not self._buffer:
            self._buffer = await self.batch()
            if not self._buffer:
                raise StopAsyncIteration
            self._buffer.reverse()
        return self._buffer.pop()
