"""Following a run's log: wake-ups that say "look again", and streams that look.

The store holds the events. A wake-up is armed before looking, so nothing slips between, and a slow
reader blocks nobody, because nothing is buffered for it. Followers who look for the same thing at
the same time share the look; one who knows that there is nothing new does not look at all. What
this process committed comes with the wake-up, so that whoever keeps up need not look either.
Source: docs/events.md#following.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal
from weakref import WeakValueDictionary, ref

import trio

from rungent.events import TERMINAL_TYPES, Event
from rungent.records import RunStatus
from rungent.store.port import Store

__all__ = ["EventFeed", "EventStream", "Until"]

PAGE = 500
# A new follower sees the beginning soon, however long the log.
FIRST_PAGE = 100
# How many commits a reader may hold on to by falling behind; then it looks.
LINKS = 32
Until = Literal["terminal"]


@dataclass(eq=False)
class Look:
    """One read of the store under way, and what it found; None when whoever began it failed."""

    over: trio.Event = field(default_factory=trio.Event)
    found: Sequence[Event] | None = None


class Place:
    """Where the news of one run are: its news hold it, and it does not hold them.

    So a run that nobody follows any more leaves nothing behind.
    """

    __slots__ = ("__weakref__", "present")

    def __init__(self) -> None:
        self.present: Callable[[], News | None] = _none


def _none() -> None:
    """What there is before anybody listens, and after a notification."""


class News:
    """What the followers of a run wait for until its log changes, and their looks meanwhile.

    A look that began under these news has seen all that was stored before them: whoever holds
    them and asks for the same may have its result. Once arrived, they are the committed `events`,
    and `following` waits for what comes after those; without `following` one has to look.
    """

    __slots__ = ("__weakref__", "arrived", "events", "following", "links", "looks", "place")

    def __init__(self, place: Place, links: int = 0) -> None:
        self.place = place
        place.present = ref(self)
        self.links = links
        self.arrived = trio.Event()
        self.looks: dict[tuple[int, int], Look] = {}
        self.events: Sequence[Event] = ()
        self.following: News | None = None


class EventFeed:
    """The wake-ups of one runtime."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._places: WeakValueDictionary[str, Place] = WeakValueDictionary()
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether streams end because the runtime drains."""
        return self._closed

    def notify(self, run_id: str | None, events: Sequence[Event] = ()) -> None:
        """Wake the followers of a run, or of every run for None.

        `events` are those of one commit: whoever has seen everything before them may take them.
        """
        if run_id is None:
            for each in list(self._places.values()):
                _arrive(each, ())
            return
        place = self._places.get(run_id)
        if place is not None:
            _arrive(place, events)

    def listen(self, run_id: str) -> News:
        """What arrives with the next notification; hold on to it while waiting."""
        place = self._places.get(run_id)
        if place is None:
            place = self._places[run_id] = Place()
        return place.present() or News(place)

    def open(self) -> None:
        """Let streams wait again."""
        self._closed = False

    def close(self) -> None:
        """End every stream after what it can read now."""
        self._closed = True
        self.notify(None)

    def follow(
        self, run_id: str, after: int, until: Until | None = None, *, news: News | None = None
    ) -> EventStream:
        """A stream of the events with `seq > after`.

        `news` are those of a run that had no events when they were asked for; if the stream is
        about that run, they bring the first.
        """
        fresh = news if news is not None and news.place is self._places.get(run_id) else None
        return EventStream(self, self._store, run_id, after, until, fresh)


def _arrive(place: Place, events: Sequence[Event]) -> None:
    news = place.present()
    if news is None:
        return
    place.present = _none
    if events and news.links < LINKS:
        news.events = events
        news.following = News(place, news.links + 1)
    news.arrived.set()


class EventStream:
    """Replays and follows the events of one run: an async iterator, or `batch()` by `batch()`.

    Ends when the run is terminal and everything was delivered; also when it waits for input,
    unless `until="terminal"`; and when the runtime drains (`interrupted` is then true). Waiting
    may be cancelled at any point and resumed: no event is lost. Dropping the stream affects
    nothing. Source: docs/events.md#following.
    """

    def __init__(
        self,
        feed: EventFeed,
        store: Store,
        run_id: str,
        after: int,
        until: Until | None,
        news: News | None = None,
    ) -> None:
        self._feed = feed
        self._store = store
        self._run_id = run_id
        self._until = until
        self._last_seq = after
        self._last_type: str | None = None
        self._buffer: list[Event] = []
        self._interrupted = False
        # Listened to since before the last look, which saw the end of the log; else None.
        self._news: News | None = news
        self._page = FIRST_PAGE

    @property
    def last_seq(self) -> int:
        """The cursor behind the last delivered batch."""
        return self._last_seq

    @property
    def interrupted(self) -> bool:
        """Whether the stream ended only because the runtime drains."""
        return self._interrupted

    async def batch(self) -> Sequence[Event]:
        """The next events, at least one; an empty sequence means that the stream has ended.

        Cancelling it loses nothing, and waiting again costs nothing while there is no news.
        """
        if self._buffer or (self._news is not None and self._news.arrived.is_set()):
            # Nothing below waits then, and so would notice.
            await trio.lowlevel.checkpoint_if_cancelled()
        if self._buffer:
            # What a reader by events began and did not finish.
            rest, self._buffer = self._buffer[::-1], []
            return rest
        while True:
            if (brought := self._brought()) is not None:
                return brought
            if self._news is None or self._news.arrived.is_set():
                self._news = None
                news = self._listen()
                events = await self._look(news, most=self._page)
                if events:
                    self._took(events, news if len(events) < self._page else None)
                    self._page = PAGE
                    return events
                if await self._ended():
                    return ()
                self._news = news
            if self._last_type in TERMINAL_TYPES:
                return ()
            if self._feed.closed:
                self._interrupted = True
                return ()
            await self._news.arrived.wait()

    def _brought(self) -> Sequence[Event] | None:
        """The events that came with the news, if they are the next ones."""
        news = self._news
        if news is None or news.following is None or news.events[0].seq != self._last_seq + 1:
            return None
        self._took(news.events, news.following)
        return news.events

    def _took(self, events: Sequence[Event], news: News | None) -> None:
        """Note events as delivered. `news` are held if they bring whatever comes behind these."""
        self._last_seq, self._last_type = events[-1].seq, events[-1].type
        # A question may be answered before it is delivered: only a new look says that the stream
        # ends with it.
        self._news = None if self._last_type == "interaction.requested" else news

    def _listen(self) -> News:
        return self._feed.listen(self._run_id)

    async def _look(self, news: News, *, most: int) -> Sequence[Event]:
        place = (self._last_seq, most)
        while (others := news.looks.get(place)) is not None:
            await others.over.wait()
            if others.found is not None:
                return others.found
        look = news.looks[place] = Look()
        try:
            look.found = await self._store.list_events(
                self._run_id, after=self._last_seq, limit=most
            )
            return look.found
        finally:
            del news.looks[place]
            look.over.set()

    async def _ended(self) -> bool:
        """Whether nothing more is to come now; asked only when all stored events are delivered."""
        if self._last_type is None:
            run = await self._store.get_run(self._run_id)
            if run.event_seq > self._last_seq:
                # They came since the last look, unless the log of an ended run was pruned.
                return not run.active and not await self._look(self._listen(), most=1)
            waiting = run.status is RunStatus.WAITING_INPUT and self._until != "terminal"
            return waiting or not run.active
        if self._last_type in TERMINAL_TYPES:
            return True
        return self._last_type == "interaction.requested" and self._until != "terminal"

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Event:
        if self._buffer:
            return self._buffer.pop()
        found = await self.batch()
        if not found:
            raise StopAsyncIteration
        if len(found) > 1:
            # A copy: what is found may be shared.
            self._buffer = list(found[:0:-1])
        return found[0]
