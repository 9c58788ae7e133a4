"""Stores that misbehave on purpose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Self

import trio
from typing_extensions import override

from rungent import Event, Message, Run, Session
from rungent.store.memory import MemoryStore
from rungent.store.port import Commit, Created, Creation, Decision

__all__ = ["FaultyStore", "GatedStore", "QuietStore"]


class QuietStore(MemoryStore):
    """Tells nobody of its changes, as a database between two polls."""

    @override
    async def watch(self, wake: Callable[[str | None], None], poll_seconds: float) -> None:
        await trio.sleep_forever()


class GatedStore(MemoryStore):
    """Commits wait while the gate is shut; `waiting` counts those that do."""

    def __init__(self) -> None:
        super().__init__()
        self._gate = trio.Event()
        self._gate.set()
        self.waiting = 0

    def shut(self) -> None:
        """Let no commit through."""
        self._gate = trio.Event()

    def open_gate(self) -> None:
        """Let commits through again."""
        self._gate.set()

    @override
    async def commit(self, commit: Commit, *, owner: str, token: int) -> None:
        self.waiting += 1
        try:
            await self._gate.wait()
        finally:
            self.waiting -= 1
        await super().commit(commit, owner=owner, token=token)


class FaultyStore(MemoryStore):
    """Operations named in `broken` raise; `used` counts the operations.

    `before` is called with the operation's name ahead of each one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.broken: set[str] = set()
        self.used: Counter[str] = Counter()
        self.before: Callable[[str], None] | None = None

    @classmethod
    def beside(cls, store: MemoryStore) -> Self:
        """Another worker's connection to the same data, which fails by itself."""
        other = cls()
        other.__dict__.update(store.__dict__ | {"broken": set(), "used": Counter()})
        return other

    def _use(self, operation: str) -> None:
        self.used[operation] += 1
        if self.before is not None:
            self.before(operation)
        if operation in self.broken:
            raise OSError(f"{operation} failed: canary-of-the-store")

    @override
    async def commit(self, commit: Commit, *, owner: str, token: int) -> None:
        self._use("commit")
        await super().commit(commit, owner=owner, token=token)

    @override
    async def create_run(self, creation: Creation) -> Created:
        self._use("create_run")
        return await super().create_run(creation)

    @override
    async def get_session(self, session_id: str) -> Session:
        self._use("get_session")
        return await super().get_session(session_id)

    @override
    async def list_messages(
        self, session_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[Message]:
        self._use("list_messages")
        return await super().list_messages(session_id, after=after, limit=limit)

    @override
    async def claim_run(self, run_id: str, owner: str, now: datetime, decide: Decision) -> Run:
        self._use("claim_run")
        return await super().claim_run(run_id, owner, now, decide)

    @override
    async def list_events(self, run_id: str, *, after: int, limit: int) -> list[Event]:
        self._use("list_events")
        return await super().list_events(run_id, after=after, limit=limit)

    @override
    async def renew_lease(
        self, tokens: Mapping[str, int], owner: str, expires_at: datetime
    ) -> set[str]:
        self._use("renew_lease")
        return await super().renew_lease(tokens, owner, expires_at)

    @override
    async def release_lease(self, run_id: str, owner: str, token: int) -> bool:
        self._use("release_lease")
        return await super().release_lease(run_id, owner, token)
