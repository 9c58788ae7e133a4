"""The grammar of a run's log for tests: envelopes, then the order that `rungent verify` checks.

`check_log` raises GrammarError at the first event that may not stand where it stands, with its
number and what stood before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from rungent.events import Event
from rungent.verify import LogError, LogReader

__all__ = ["GrammarError", "check_log"]


class GrammarError(AssertionError):
    """A log that no client should ever see."""


def check_log(events: Sequence[Event], *, complete: bool = True) -> None:
    """Check the log of one run from its first event on.

    With `complete` it must end with a terminal event; without, it may stop anywhere.
    """
    reader = LogReader(events[0].run_id if events else "")
    for position, event in enumerate(events):
        try:
            _check_envelope(event, events[0])
            reader.read(event.seq, event.type, event.data)
        except (GrammarError, LogError) as wrong:
            before = " ".join(e.type for e in events[max(0, position - 6) : position])
            raise GrammarError(
                f"event {event.seq} {event.type}: {wrong} (after: {before})"
            ) from None
    if len({event.id for event in events}) != len(events):
        raise GrammarError("an event id is there twice")
    if complete and not reader.ended:
        raise GrammarError("the log has no end")


def _check_envelope(event: Event, first: Event) -> None:
    _require(event.v == 1, "unknown version")
    _require(event.run_id == first.run_id, "another run's event")
    _require(event.session_id == first.session_id, "another session's event")
    _require(event.created_at.utcoffset() == timedelta(0), "the time is not in UTC")
    event.to_json()


def _require(condition: object, reason: str) -> None:
    if not condition:
        raise GrammarError(reason)
