"""The store port in memory: dictionaries, for tests and for runs that need not survive.

Each operation checks for cancellation first and then changes everything without an `await` in
between. Source: docs/persistence.md#memory.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

import trio
from typing_extensions import override

from rungent.errors import (
    ActiveRunConflict,
    IdempotencyKeyReused,
    NotFound,
    RunNotRetryable,
    StaleRun,
)
from rungent.events import Event
from rungent.identity import Identity
from rungent.records import (
    ActionToken,
    ExternalTask,
    Interaction,
    Lease,
    Message,
    Run,
    RunStatus,
    Session,
    ToolClaim,
)
from rungent.store.port import Commit, Created, Creation, Cursor, Decision, Store

__all__ = ["MemoryStore"]


class MemoryStore(Store):
    """Runs that live as long as this object. Records are frozen, so they are handed out as is."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._messages: dict[str, list[Message]] = {}
        self._runs: dict[str, Run] = {}
        self._runs_of: dict[str, list[str]] = {}
        self._active: dict[str, str] = {}
        self._keys: dict[tuple[str, str], str] = {}
        self._events: dict[str, list[Event]] = {}
        self._claims: dict[str, dict[str, ToolClaim]] = {}
        self._interactions: dict[str, Interaction] = {}
        self._tasks: dict[tuple[str, str], ExternalTask] = {}
        self._tokens: dict[str, ActionToken] = {}
        self._watchers: list[Callable[[str | None], None]] = []

    @override
    @asynccontextmanager
    async def open(self) -> AsyncGenerator[MemoryStore, None]:
        await trio.lowlevel.checkpoint()
        yield self

    @override
    async def watch(self, wake: Callable[[str | None], None], poll_seconds: float) -> None:
        # Several runtimes may share a store, as several processes share a database.
        self._watchers.append(wake)
        try:
            await trio.sleep_forever()
        finally:
            self._watchers.remove(wake)

    @override
    async def create_session(self, session: Session) -> None:
        await trio.lowlevel.checkpoint()
        self._sessions[session.id] = session
        self._messages[session.id] = []
        self._runs_of[session.id] = []

    @override
    async def get_session(self, session_id: str) -> Session:
        await trio.lowlevel.checkpoint()
        return self._session(session_id)

    @override
    async def list_sessions(
        self,
        owner: Identity,
        agent_names: Collection[str],
        *,
        limit: int,
        after: Cursor | None = None,
    ) -> list[Session]:
        await trio.lowlevel.checkpoint()
        found = [
            session
            for session in self._sessions.values()
            if session.subject_id == owner.subject_id
            and session.tenant_id == owner.tenant_id
            and session.agent_name in agent_names
            and (after is None or (session.updated_at, session.id) < after)
        ]
        return sorted(found, key=lambda s: (s.updated_at, s.id), reverse=True)[:limit]

    @override
    async def set_title(self, session_id: str, title: str | None, now: datetime) -> Session:
        await trio.lowlevel.checkpoint()
        change = {"title": title, "updated_at": now}
        session = self._session(session_id).model_copy(update=change)
        self._sessions[session_id] = session
        return session

    @override
    async def list_messages(
        self, session_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[Message]:
        await trio.lowlevel.checkpoint()
        # Positions count from 1 without gaps, so a position is also an index.
        end = None if limit is None else after + limit
        return self._messages.get(session_id, [])[after:end]

    @override
    async def create_run(self, creation: Creation) -> Created:
        await trio.lowlevel.checkpoint()
        run = creation.commit.run
        self._session(run.session_id)
        key = None if run.idempotency_key is None else (run.session_id, run.idempotency_key)
        if key is not None and key in self._keys:
            earlier = self._runs[self._keys[key]]
            if earlier.request_digest != run.request_digest:
                raise IdempotencyKeyReused(earlier.id)
            return Created(earlier, replayed=True)
        if creation.retry_of is not None:
            self._require_retryable(run.session_id, creation.retry_of)
        replaced = self._make_room(creation)
        if creation.refusal is not None:
            raise creation.refusal
        if replaced is not None:
            self._apply(replaced)
        self._runs_of[run.session_id].append(run.id)
        self._events[run.id] = []
        self._claims[run.id] = {}
        if key is not None:
            self._keys[key] = run.id
        self._apply(creation.commit)
        position = len(self._messages[run.session_id]) if creation.commit.messages else None
        return Created(run, replaced=replaced, position=position)

    @override
    async def get_run(self, run_id: str) -> Run:
        await trio.lowlevel.checkpoint()
        return self._run(run_id)

    @override
    async def list_runs(
        self, session_id: str, *, limit: int, after: Cursor | None = None
    ) -> list[Run]:
        await trio.lowlevel.checkpoint()
        found = [self._runs[run_id] for run_id in self._runs_of.get(session_id, ())]
        return _oldest(r for r in found if after is None or (r.created_at, r.id) > after)[:limit]

    @override
    async def list_claimable(
        self, agent_names: Collection[str], owner: str, now: datetime, *, limit: int
    ) -> list[Run]:
        await trio.lowlevel.checkpoint()
        active = (self._runs[run_id] for run_id in self._active.values())
        found = (r for r in active if r.agent_name in agent_names and _claimable(r, owner, now))
        return _oldest(found)[:limit]

    @override
    async def claim_run(self, run_id: str, owner: str, now: datetime, decide: Decision) -> Run:
        await trio.lowlevel.checkpoint()
        run = self._run(run_id)
        if not _claimable(run, owner, now):
            raise StaleRun("The run cannot be claimed.")
        return self._decided(run, decide(run))

    @override
    async def commit(self, commit: Commit, *, owner: str, token: int) -> None:
        await trio.lowlevel.checkpoint()
        stored = self._runs.get(commit.run.id)
        if (
            stored is None
            or stored.status is not RunStatus.RUNNING
            or stored.lease is None
            or stored.lease.owner != owner
            or stored.fencing_token != token
            or stored.version != commit.run.version - 1
        ):
            raise StaleRun("The run is no longer this drive's.")
        self._apply(commit, _renewed(stored.lease, commit.run.lease))

    @override
    async def resolve_interaction(
        self,
        run_id: str,
        interaction_id: str,
        decide: Callable[[Run, Interaction | None], Commit | None],
    ) -> Run:
        await trio.lowlevel.checkpoint()
        run = self._run(run_id)
        found = self._interactions.get(interaction_id)
        own = found if found is not None and found.run_id == run_id else None
        return self._decided(run, decide(run, own))

    @override
    async def get_interaction(self, interaction_id: str) -> Interaction:
        await trio.lowlevel.checkpoint()
        if interaction_id not in self._interactions:
            raise NotFound("There is no such interaction.")
        return self._interactions[interaction_id]

    @override
    async def find_token(self, token_hash: str) -> ActionToken | None:
        await trio.lowlevel.checkpoint()
        return self._tokens.get(token_hash)

    @override
    async def list_due(
        self, agent_names: Collection[str], now: datetime, *, limit: int
    ) -> list[Interaction]:
        await trio.lowlevel.checkpoint()
        found = [
            one
            for one in self._interactions.values()
            if one.closing is not None
            or (one.status == "pending" and one.expires_at is not None and one.expires_at <= now)
        ]
        return [one for one in found if self._runs[one.run_id].agent_name in agent_names][:limit]

    @override
    async def take_closing(self, interaction_id: str) -> bool:
        await trio.lowlevel.checkpoint()
        one = self._interactions.get(interaction_id)
        if one is None or one.closing is None:
            return False
        self._interactions[interaction_id] = one.model_copy(update={"closing": None})
        return True

    @override
    async def complete_task(
        self,
        run_id: str,
        task_id: str,
        decide: Callable[[Run, ExternalTask | None], Commit | None],
    ) -> Run:
        await trio.lowlevel.checkpoint()
        run = self._run(run_id)
        return self._decided(run, decide(run, self._tasks.get((run_id, task_id))))

    @override
    async def report_task(
        self,
        run_id: str,
        task_id: str,
        decide: Callable[[Run, ExternalTask | None], Commit | None],
    ) -> Run:
        return await self.complete_task(run_id, task_id, decide)

    @override
    async def cancel_run(self, run_id: str, decide: Decision) -> Run:
        await trio.lowlevel.checkpoint()
        run = self._run(run_id)
        return self._decided(run, decide(run))

    @override
    async def list_claims(self, run_id: str) -> list[ToolClaim]:
        await trio.lowlevel.checkpoint()
        return self._ledger(run_id)

    @override
    async def renew_lease(
        self, tokens: Mapping[str, int], owner: str, expires_at: datetime
    ) -> set[str]:
        await trio.lowlevel.checkpoint()
        held = {run_id for run_id, token in tokens.items() if self._holds(run_id, owner, token)}
        lease = Lease(owner=owner, expires_at=expires_at)
        for run_id in held:
            self._runs[run_id] = self._runs[run_id].model_copy(update={"lease": lease})
        return held

    @override
    async def release_lease(self, run_id: str, owner: str, token: int) -> bool:
        await trio.lowlevel.checkpoint()
        if not self._holds(run_id, owner, token):
            return False
        self._runs[run_id] = self._runs[run_id].model_copy(update={"lease": None})
        return True

    @override
    async def list_events(self, run_id: str, *, after: int, limit: int) -> list[Event]:
        # No turn for others, which every write gives: followers read after each of them.
        await trio.lowlevel.checkpoint_if_cancelled()
        # Events count from 1 without gaps, so a seq is also an index.
        return self._events.get(run_id, [])[after : after + limit]

    def _session(self, session_id: str) -> Session:
        if session_id not in self._sessions:
            raise NotFound("There is no such session.")
        return self._sessions[session_id]

    def _run(self, run_id: str) -> Run:
        if run_id not in self._runs:
            raise NotFound("There is no such run.")
        return self._runs[run_id]

    def _ledger(self, run_id: str) -> list[ToolClaim]:
        claims = self._claims.get(run_id, {}).values()
        return sorted(claims, key=lambda c: (c.started_at is None, c.started_at, c.call_id))

    def _holds(self, run_id: str, owner: str, token: int) -> bool:
        run = self._runs.get(run_id)
        return (
            run is not None
            and run.lease is not None
            and run.lease.owner == owner
            and run.fencing_token == token
        )

    def _require_retryable(self, session_id: str, run_id: str) -> None:
        run = self._runs.get(run_id)
        if run is None or run.session_id != session_id:
            raise NotFound("There is no such run.")
        newest = self._runs_of[session_id][-1] == run_id
        failed = run.status is RunStatus.FAILED and run.failure_retryable is True
        if not newest or not failed:
            raise RunNotRetryable(run.status)

    def _make_room(self, creation: Creation) -> Commit | None:
        active_id = self._active.get(creation.commit.run.session_id)
        if active_id is None:
            return None
        active = self._runs[active_id]
        if creation.replace_waiting is None or active.status is not RunStatus.WAITING_INPUT:
            raise ActiveRunConflict(active.id, active.status)
        return creation.replace_waiting(active)

    def _decided(self, run: Run, commit: Commit | None) -> Run:
        if commit is None:
            return run
        if commit.run.version != run.version + 1:
            raise StaleRun("The run was changed by somebody else.")
        self._apply(commit)
        return commit.run

    def _apply(self, commit: Commit, lease: Lease | None = None) -> None:
        """Write everything. Nothing below can fail or wait."""
        run = commit.run if lease is None else commit.run.model_copy(update={"lease": lease})
        self._runs[run.id] = run
        if not commit.appends:
            self._note_active(run)
        self._events[run.id] += commit.events
        for claim in commit.claims:
            self._claims[run.id][claim.call_id] = claim
        for one in commit.interactions:
            self._interactions[one.id] = one
        for task in commit.tasks:
            self._tasks[task.run_id, task.task_id] = task
        for token in commit.tokens:
            self._tokens[token.token_hash] = token
        if commit.messages:
            self._append(run, commit.messages)
        for wake in self._watchers:
            wake(run.id)

    def _note_active(self, run: Run) -> None:
        if run.active:
            self._active[run.session_id] = run.id
        elif self._active.get(run.session_id) == run.id:
            del self._active[run.session_id]

    def _append(self, run: Run, added: Sequence[Message]) -> None:
        messages = self._messages[run.session_id]
        first = len(messages) + 1
        messages += [m.model_copy(update={"position": first + i}) for i, m in enumerate(added)]
        change = {"message_count": len(messages), "updated_at": run.updated_at}
        self._sessions[run.session_id] = self._sessions[run.session_id].model_copy(update=change)


def _oldest(runs: Iterator[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: (run.created_at, run.id))


def _renewed(stored: Lease, given: Lease | None) -> Lease | None:
    """The stored lease if it is to be kept: a renewal may be newer than what the drive knows."""
    return None if given is None or given.expires_at >= stored.expires_at else stored


def _claimable(run: Run, owner: str, now: datetime) -> bool:
    free = run.lease is None or run.lease.expires_at <= now
    if run.status is RunStatus.QUEUED:
        return free or (run.lease is not None and run.lease.owner == owner)
    return run.status is RunStatus.RUNNING and free
