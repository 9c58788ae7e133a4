"""A store that fails where it is told to; all it does is done by another one.

Source: docs/testing.md#faults.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

import trio
from typing_extensions import override

from rungent.events import Event
from rungent.identity import Identity
from rungent.records import (
    ActionToken,
    ExternalTask,
    Interaction,
    Message,
    Run,
    Session,
    ToolClaim,
)
from rungent.store import Store
from rungent.store.port import Commit, Created, Creation, Cursor, Decision

__all__ = ["Fault", "FaultyStore", "InjectedFault", "WorkerGone"]

T = TypeVar("T")


class Fault(StrEnum):
    """What happens at a write, or in a task step."""

    CRASH_BEFORE = "crash before"
    """The worker is gone before anything is stored."""
    CRASH_AFTER = "crash after"
    """The worker is gone once it is stored, and never learns of it."""
    CRASH_IN_STEP = "crash"
    """The worker is gone at the next checkpoint; only `crash_points` can do this."""
    LOST_REPLY = "lost reply"
    """It is stored, but the caller gets an error."""
    ERROR = "error"
    """Nothing is stored, and the caller gets an error."""
    STALL = "stall"
    """The worker stands still for longer than its lease, without noticing, and then goes on."""


class InjectedFault(OSError):
    """The error of a store that was told to fail."""


class WorkerGone(InjectedFault):
    """The worker crashed: whatever it still tries happens no more."""


class FaultyStore(Store):
    """Passes everything on to `store` and fails at the writes that `faults` number, from 1.

    `writes` names the writes so far. `crashed` says whether the worker is gone, `when_crashed` is
    called when it goes; `stalled` is set once it stood still. `crash` and `stall` may also be called directly, by a tool for example. One such
    store stands for the connection of one worker: others over the same store are not affected.
    """

    def __init__(
        self,
        store: Store,
        faults: Mapping[int, Fault] | None = None,
        *,
        stall_seconds: float = 60,
    ) -> None:
        self._store = store
        self._faults = dict(faults or {})
        self._stall_seconds = stall_seconds
        self._still_until = -math.inf
        self.stalled = trio.Event()
        self.crashed = False
        self.when_crashed: Callable[[], object] = _nothing
        self.writes: list[str] = []

    def crash(self) -> None:
        """The worker is gone from now on."""
        if not self.crashed:
            self.crashed = True
            self.when_crashed()

    async def stall(self, seconds: float) -> None:
        """Let the worker stand still: its store answers no more, and its leases are not renewed.

        As a process that was suspended, it does not notice: renewals seem to succeed.
        """
        self._still_until = max(self._still_until, trio.current_time() + seconds)
        self.stalled.set()
        await trio.sleep(seconds)

    @property
    def _stands_still(self) -> bool:
        return trio.current_time() < self._still_until

    async def _ready(self) -> None:
        if self._stands_still:
            await trio.sleep_until(self._still_until)
        if self.crashed:
            await trio.lowlevel.checkpoint()
            raise WorkerGone("the worker crashed")

    async def _read(self, read: Callable[[], Awaitable[T]]) -> T:
        await self._ready()
        return await read()

    async def _write(self, what: str, write: Callable[[], Awaitable[T]]) -> T:
        await self._ready()
        self.writes.append(what)
        fault = self._faults.get(len(self.writes))
        if fault is Fault.CRASH_BEFORE:
            self.crash()
        if fault is Fault.STALL:
            await self.stall(self._stall_seconds)
        if fault is Fault.ERROR:
            raise InjectedFault(f"{what} failed")
        await self._ready()
        try:
            result = await write()
        finally:
            if fault is Fault.CRASH_AFTER:
                # Also when the write was refused: that is an end of it, too.
                self.crash()
        if fault is Fault.LOST_REPLY:
            raise InjectedFault(f"the reply to {what} was lost")
        await self._ready()
        return result

    @override
    def open(self) -> AbstractAsyncContextManager[object]:
        return self._store.open()

    @override
    async def watch(self, wake: Callable[[str | None], None], poll_seconds: float) -> None:
        await self._read(lambda: self._store.watch(wake, poll_seconds))

    # --- writes ------------------------------------------------------------------------------

    @override
    async def create_session(self, session: Session) -> None:
        await self._write("create_session", lambda: self._store.create_session(session))

    @override
    async def set_title(self, session_id: str, title: str | None, now: datetime) -> Session:
        return await self._write("set_title", lambda: self._store.set_title(session_id, title, now))

    @override
    async def create_run(self, creation: Creation) -> Created:
        return await self._write("create_run", lambda: self._store.create_run(creation))

    @override
    async def claim_run(self, run_id: str, owner: str, now: datetime, decide: Decision) -> Run:
        return await self._write(
            "claim_run", lambda: self._store.claim_run(run_id, owner, now, decide)
        )

    @override
    async def commit(self, commit: Commit, *, owner: str, token: int) -> None:
        what = " ".join(["commit", *(event.type for event in commit.events)])
        await self._write(what, lambda: self._store.commit(commit, owner=owner, token=token))

    @override
    async def resolve_interaction(
        self,
        run_id: str,
        interaction_id: str,
        decide: Callable[[Run, Interaction | None], Commit | None],
    ) -> Run:
        return await self._write(
            "resolve_interaction",
            lambda: self._store.resolve_interaction(run_id, interaction_id, decide),
        )

    @override
    async def complete_task(
        self,
        run_id: str,
        task_id: str,
        decide: Callable[[Run, ExternalTask | None], Commit | None],
    ) -> Run:
        return await self._write(
            "complete_task", lambda: self._store.complete_task(run_id, task_id, decide)
        )

    @override
    async def report_task(
        self,
        run_id: str,
        task_id: str,
        decide: Callable[[Run, ExternalTask | None], Commit | None],
    ) -> Run:
        return await self._write(
            "report_task", lambda: self._store.report_task(run_id, task_id, decide)
        )

    @override
    async def cancel_run(self, run_id: str, decide: Decision) -> Run:
        return await self._write("cancel_run", lambda: self._store.cancel_run(run_id, decide))

    @override
    async def take_closing(self, interaction_id: str) -> bool:
        return await self._write("take_closing", lambda: self._store.take_closing(interaction_id))

    @override
    async def renew_lease(
        self, tokens: Mapping[str, int], owner: str, expires_at: datetime
    ) -> set[str]:
        if self._stands_still:
            await trio.lowlevel.checkpoint()
            return set(tokens)
        return await self._write(
            "renew_lease", lambda: self._store.renew_lease(tokens, owner, expires_at)
        )

    @override
    async def release_lease(self, run_id: str, owner: str, token: int) -> bool:
        return await self._write(
            "release_lease", lambda: self._store.release_lease(run_id, owner, token)
        )

    # --- reads -------------------------------------------------------------------------------

    @override
    async def get_session(self, session_id: str) -> Session:
        return await self._read(lambda: self._store.get_session(session_id))

    @override
    async def list_sessions(
        self,
        owner: Identity,
        agent_names: Collection[str],
        *,
        limit: int,
        after: Cursor | None = None,
    ) -> list[Session]:
        return await self._read(
            lambda: self._store.list_sessions(owner, agent_names, limit=limit, after=after)
        )

    @override
    async def list_messages(
        self, session_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[Message]:
        return await self._read(
            lambda: self._store.list_messages(session_id, after=after, limit=limit)
        )

    @override
    async def get_run(self, run_id: str) -> Run:
        return await self._read(lambda: self._store.get_run(run_id))

    @override
    async def list_runs(
        self, session_id: str, *, limit: int, after: Cursor | None = None
    ) -> list[Run]:
        return await self._read(lambda: self._store.list_runs(session_id, limit=limit, after=after))

    @override
    async def list_claimable(
        self, agent_names: Collection[str], owner: str, now: datetime, *, limit: int
    ) -> list[Run]:
        return await self._read(
            lambda: self._store.list_claimable(agent_names, owner, now, limit=limit)
        )

    @override
    async def get_interaction(self, interaction_id: str) -> Interaction:
        return await self._read(lambda: self._store.get_interaction(interaction_id))

    @override
    async def find_token(self, token_hash: str) -> ActionToken | None:
        return await self._read(lambda: self._store.find_token(token_hash))

    @override
    async def list_due(
        self, agent_names: Collection[str], now: datetime, *, limit: int
    ) -> list[Interaction]:
        return await self._read(lambda: self._store.list_due(agent_names, now, limit=limit))

    @override
    async def list_claims(self, run_id: str) -> list[ToolClaim]:
        return await self._read(lambda: self._store.list_claims(run_id))

    @override
    async def list_events(self, run_id: str, *, after: int, limit: int) -> list[Event]:
        return await self._read(lambda: self._store.list_events(run_id, after=after, limit=limit))


def _nothing() -> None:
    """Nobody wants to know."""
