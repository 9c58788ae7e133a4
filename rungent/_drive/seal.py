"""Sealing a transition: ids, sequence numbers and times, right before it is stored."""

from __future__ import annotations

from datetime import datetime

from rungent._lifecycle.transition import MessageDraft, Transition
from rungent.events import Event
from rungent.ids import new_id
from rungent.records import Message, Run
from rungent.store.port import Commit

__all__ = ["seal", "seal_message"]


def seal(
    transition: Transition, now: datetime, *, stored: Run | None = None, created: bool = False
) -> Commit:
    """The commit that stores a transition at `now`.

    The run's version grows by one, except for a run that is `created` by it. `stored` is the run
    as it is in the store, where that is known.
    """
    before = transition.run
    seq = before.event_seq
    events: list[Event] = []
    for draft in transition.events:
        seq += 1
        values = {
            "v": 1,
            "id": new_id("evt_"),
            "seq": seq,
            "type": draft.type,
            "session_id": before.session_id,
            "run_id": before.id,
            "created_at": now,
            "data": dict(draft.data),
        }
        events.append(Event.unchecked(values))
    version = before.version if created else before.version + 1
    run = before.model_copy(update={"event_seq": seq, "version": version, "updated_at": now})
    return Commit(
        run=run,
        events=tuple(events),
        messages=tuple([seal_message(draft, run, now) for draft in transition.messages]),
        claims=transition.claims,
        interactions=transition.interactions,
        tasks=transition.tasks,
        tokens=transition.tokens,
        appends=before is stored,
    )


def seal_message(draft: MessageDraft, run: Run, now: datetime, *, id: str = "") -> Message:
    """The stored form of a transcript entry of `run`."""
    return Message.unchecked(
        {
            "id": id or new_id("msg_"),
            "session_id": run.session_id,
            "run_id": run.id,
            "role": draft.role,
            "content": draft.content,
            "tool_calls": draft.tool_calls,
            "tool_call_id": draft.tool_call_id,
            "name": draft.name,
            "public": draft.public,
            "position": 0,
            "created_at": now,
        }
    )
