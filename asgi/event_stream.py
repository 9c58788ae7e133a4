"""The event stream: a response body that waits in a scope and hands out frames outside it.

The stream owns nothing but its subscription. A reader that is slow, stuck or gone delays neither
the run nor other readers. Source: docs/http.md#stream.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import trio
from quart import Response, current_app
from quart.wrappers.response import ResponseBody

from rungent.access import OwnedStream
from rungent.asgi.host import Pace
from rungent.asgi.requests import Call
from rungent.events import Event

__all__ = ["EventStreamBody", "StreamBroken", "stream_events"]

logger = logging.getLogger("rungent")

RETRY = b"retry: 1000\n\n"
KEEP_ALIVE = b": keep-alive\n\n"
RECONNECT = b": reconnect\n\n"
# What a reader that does not read can hold of what was made for it.
CHUNK_BYTES = 65_536

HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
}


class StreamBroken(Exception):
    """An event stream could not be read on; the reason was logged."""


class EventStreamBody(ResponseBody):
    """The frames of one subscription.

    A cancelled reader ends the subscription and nothing else. Raises StreamBroken when reading
    the store fails: the response then ends without its closing chunk, so that clients see a
    break and not a boundary.
    """

    def __init__(self, stream: OwnedStream, pace: Pace) -> None:
        self._stream = stream
        self._keepalive_seconds = pace.keepalive_seconds
        self._padding = b":" + b" " * pace.padding_bytes + b"\n\n" if pace.padding_bytes else b""
        self._events: Sequence[Event] = ()
        self._next = 0
        self._begun = False
        self._ended = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        return

    def __aiter__(self) -> EventStreamBody:
        return self

    async def __anext__(self) -> bytes:
        if not self._begun:
            self._begun = True
            return RETRY + self._padding
        # A send to a connection that is gone may be no checkpoint, so this always is one.
        await trio.lowlevel.checkpoint()
        if self._ended:
            raise StopAsyncIteration
        if self._next == len(self._events) and not await self._read():
            return KEEP_ALIVE + self._padding
        if self._events:
            return self._chunk()
        self._ended = True
        if self._stream.interrupted:
            return RECONNECT
        raise StopAsyncIteration

    async def _read(self) -> bool:
        """Get the next events, or none at the end; False when the silence lasted too long."""
        self._events, self._next = (), 0
        try:
            with trio.move_on_after(self._keepalive_seconds) as waiting:
                self._events = await self._stream.batch()
        except Exception:
            logger.exception("reading an event stream failed")
            # The server logs what ends a response; it gets no text of ours to log.
            raise StreamBroken() from None
        return not waiting.cancelled_caught

    def _chunk(self) -> bytes:
        """The frames of the next events, up to the one that makes the chunk large enough."""
        frames: list[bytes] = []
        size = 0
        while size < CHUNK_BYTES and self._next < len(self._events):
            event = self._events[self._next]
            frames.append(f"id: {event.seq}\ndata: {event.to_json()}\n\n".encode())
            size += len(frames[-1])
            self._next += 1
        return b"".join(frames)


async def stream_events(call: Call, run_id: str) -> Response:
    """Replay and follow a run's events; identity and ownership are checked only here."""
    until, after = call.until(), call.first_seq()
    stream = call.host.runtime.stream_events(
        run_id, identity=call.identity, after_seq=after, until=until
    )
    await stream.check()
    # Who runs the server knows the proxies before it, and has the last word.
    pace: Pace = current_app.extensions.get("rungent_pace") or call.host.pace
    response = Response(EventStreamBody(stream, pace), headers=HEADERS)
    # The framework cuts a response after a minute unless it is told not to.
    response.timeout = None
    return response
