"""Owned reads: sessions, runs and events that an identity may see, page by page.

A thing of another owner is answered like one that does not exist. Source: docs/runtime.md.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from rungent.errors import InvalidRequest, NotFound
from rungent.events import Event
from rungent.identity import Identity
from rungent.records import Message, Run, Session
from rungent.store.feed import EventStream
from rungent.store.port import Cursor, Store
from rungent.text import storable

__all__ = ["Access", "OpeningStream", "OwnedStream", "checked_seq", "page_limit"]

MAX_PAGE = 500
T = TypeVar("T")


def page_limit(limit: object) -> int:
    """`limit` when it is 1–500, else InvalidRequest."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_PAGE:
        raise InvalidRequest.at(
            "query", "limit", message=f"limit must be 1 to {MAX_PAGE}", kind="out_of_range"
        )
    return limit


def checked_seq(after_seq: object) -> int:
    """`after_seq` when it is a number of an event or 0, else InvalidRequest."""
    if isinstance(after_seq, bool) or not isinstance(after_seq, int) or after_seq < 0:
        raise InvalidRequest.at(
            "query", "after_seq", message="after_seq must be 0 or more", kind="out_of_range"
        )
    return after_seq


class Access:
    """Reads of one runtime, limited to what the asking identity owns."""

    def __init__(self, store: Store, agent_names: Collection[str]) -> None:
        self._store = store
        self._agent_names = agent_names

    async def session(self, session_id: str, identity: Identity) -> Session:
        """The session of a registered agent, if `identity` owns it, else NotFound."""
        session = await self._store.get_session(session_id)
        owner = Identity(session.subject_id, session.tenant_id)
        if owner != identity or session.agent_name not in self._agent_names:
            raise NotFound("There is no such session.")
        return session

    async def run(self, run_id: str, identity: Identity) -> tuple[Run, Session]:
        """The run with its session, if `identity` owns it, else NotFound."""
        run = await self._store.get_run(run_id)
        try:
            return run, await self.session(run.session_id, identity)
        except NotFound:
            raise NotFound("There is no such run.") from None

    async def messages(self, session: Session) -> list[Message]:
        """The whole transcript, tool messages included, oldest first."""
        return await self._store.list_messages(session.id)

    async def sessions(
        self, identity: Identity, limit: int, cursor: str | None
    ) -> tuple[list[Session], str | None]:
        """A page of the identity's sessions, newest `updated_at` first, and the next cursor."""
        limit = page_limit(limit)
        rows = await self._store.list_sessions(
            identity, self._agent_names, limit=limit + 1, after=_decode(cursor)
        )
        return _page(rows, limit, lambda session: (session.updated_at, session.id))

    async def runs(
        self, session: Session, limit: int, cursor: str | None
    ) -> tuple[list[Run], str | None]:
        """A page of the session's runs, oldest first, and the next cursor."""
        limit = page_limit(limit)
        rows = await self._store.list_runs(session.id, limit=limit + 1, after=_decode(cursor))
        return _page(rows, limit, lambda run: (run.created_at, run.id))


class OwnedStream:
    """An event stream that checks once that its reader owns the run, unless that is known."""

    def __init__(
        self,
        access: Access,
        stream: EventStream,
        run_id: str,
        identity: Identity,
        *,
        checked: bool = False,
    ) -> None:
        self._access = access
        self._stream = stream
        self._run_id = run_id
        self._identity = identity
        self._checked = checked

    @property
    def interrupted(self) -> bool:
        """Whether the stream ended only because the runtime drains."""
        return self._stream.interrupted

    async def check(self) -> None:
        """Raise NotFound unless the reader owns the run."""
        if not self._checked:
            await self._access.run(self._run_id, self._identity)
            self._checked = True

    async def batch(self) -> Sequence[Event]:
        """The next events, at least one; empty at the end. Cancelling it loses nothing."""
        await self.check()
        return await self._stream.batch()

    def __aiter__(self) -> OwnedStream:
        return self

    def __anext__(self) -> Awaitable[Event]:
        # Not a coroutine of its own, which would cost each event as much as the stream itself.
        return self._stream.__anext__() if self._checked else self._first()

    async def _first(self) -> Event:
        await self.check()
        return await self._stream.__anext__()


class OpeningStream:
    """An event stream whose first read does what makes the events: a run, or an answer."""

    def __init__(self, begin: Callable[[], Awaitable[OwnedStream]]) -> None:
        self._begin = begin
        self._stream: OwnedStream | None = None

    def __aiter__(self) -> OpeningStream:
        return self

    def __anext__(self) -> Awaitable[Event]:
        return self._first() if self._stream is None else self._stream.__anext__()

    async def _first(self) -> Event:
        if self._stream is None:
            self._stream = await self._begin()
        return await self._stream.__anext__()


def _page(rows: list[T], limit: int, key: Callable[[T], Cursor]) -> tuple[list[T], str | None]:
    shown = rows[:limit]
    return shown, _encode(key(shown[-1])) if len(rows) > limit else None


def _encode(cursor: Cursor) -> str:
    text = json.dumps([cursor[0].isoformat(), cursor[1]], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode(cursor: str | None) -> Cursor | None:
    if cursor is None:
        return None
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        moment, row_id = json.loads(base64.urlsafe_b64decode(padded))
        at = datetime.fromisoformat(moment)
        if at.tzinfo is None or not isinstance(row_id, str) or storable(row_id) != row_id:
            raise ValueError("not a cursor")
        at = at.astimezone(UTC)
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        raise InvalidRequest.at(
            "query", "cursor", message="the cursor is not valid", kind="invalid_cursor"
        ) from None
    return at, row_id
