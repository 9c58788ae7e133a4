"""The event stream: a response body that waits in a scope and hands out frames outside it.

The stream owns nothing but its subscription. A reader that is slow, stuck or gone delays neither
the run nor other readers. Source: docs/http.md#stream.
"""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Self

import trio
from quart import Response
from quart.wrappers.response import ResponseBody

from rungent.access import OwnedStream
from rungent.asgi.requests import Call
from rungent.events import Event

__all__ = ["EventStreamBody", "StreamBroken", "stream_events"]

logger = logging.getLogger("rungent")

RETRY = b"retry: 1000\n\n"
KEEP_ALIVE = b": keep-alive\n\n"
RECONNECT = b": reconnect\n\n"

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

    def __init__(self, stream: OwnedStream, keepalive_seconds: float) -> None:
        self._stream = stream
        self._keepalive_seconds = keepalive_seconds
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
            return RETRY
        # A send to a connection that is gone may be no checkpoint, so this always is one.
        await trio.lowlevel.checkpoint()
        if self._ended:
            raise StopAsyncIteration
        events: list[Event] = []
        try:
            with trio.move_on_after(self._keepalive_seconds) as waiting:
                events = await self._stream.batch()
        except Exception:
            logger.exception("reading an event stream failed")
            # The server logs what ends a response; it gets no text of ours to log.
            raise StreamBroken() from None
        if waiting.cancelled_caught:
            return KEEP_ALIVE
        if events:
            return "".join(map(_frame, events)).encode()
        self._ended = True
        if self._stream.interrupted:
            return RECONNECT
        raise StopAsyncIteration


def _frame(event: Event) -> str:
    return f"id: {event.seq}\ndata: {event.to_json()}\n\n"


async def stream_events(call: Call, run_id: str) -> Response:
    """Replay and follow a run's events; identity and ownership are checked only here."""
    until, after = call.until(), call.first_seq()
    stream = call.host.runtime.stream_events(
        run_id, identity=call.identity, after_seq=after, until=until
    )
    await stream.check()
    response = Response(EventStreamBody(stream, call.host.keepalive_seconds), headers=HEADERS)
    # The framework cuts a response after a minute unless it is told not to.
    response.timeout = None
    return response
