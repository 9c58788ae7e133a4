"""The store port over SQLAlchemy: which function runs where, in what kind of transaction.

Source: docs/persistence.md.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    nullcontext,
    suppress,
)
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias, TypeVar

import trio
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine, async_sessionmaker
from sqlalchemy.orm import sessionmaker
from typing_extensions import override

from rungent.events import Event
from rungent.identity import Identity
from rungent.persistence import creation as creations
from rungent.persistence import due, events, notify, runs, sessions, sqlite, transactions
from rungent.persistence.commits import DriveCommit
from rungent.persistence.executors import Executor, choose_executor
from rungent.persistence.grouping import GroupCommit, Verdict, write_batch
from rungent.persistence.lifespan import Lifespan
from rungent.persistence.outage import LONGEST_PAUSE, Outage
from rungent.persistence.tables import RungentBase
from rungent.persistence.transactions import Unreachable, Unsure
from rungent.persistence.writer import Writer
from rungent.records import (
    ActionToken,
    ExternalTask,
    Interaction,
    Message,
    Run,
    Session,
    ToolClaim,
)
from rungent.store.port import Commit, Created, Creation, Cursor, Decision, Store

__all__ = ["SQLAlchemyStore"]

logger = logging.getLogger("rungent")

T = TypeVar("T")
Sessionmaker = sessionmaker[Any] | async_sessionmaker[Any]
Hold = Callable[[], AbstractContextManager[object]]
Turn: TypeAlias = "AbstractAsyncContextManager[object, None]"
CREATE_ATTEMPTS = 5


class SQLAlchemyStore(Store):
    """Durable runs in SQLite or PostgreSQL.

    Takes a `sessionmaker` or `Engine` (threads of its own; fastest on SQLite) or an
    `async_sessionmaker` or `AsyncEngine` (aiosqlite, asyncpg, psycopg; one private asyncio
    thread). Only the engine of a sessionmaker is used. Its transactions must be real ones: no
    AUTOCOMMIT, and READ COMMITTED on PostgreSQL.

    `configure_sqlite` sets WAL, `synchronous=NORMAL`, `busy_timeout`, `foreign_keys` and a longer
    write-ahead log on each connection. `inline` runs a synchronous engine on trio's own thread,
    for tests. `hold` makes a context manager that is entered while the database works, so that
    virtual time can stand still meanwhile.

    The runtime enters `open()`. An operation outside it opens for itself alone and closes again,
    which is right but slow; leaving disposes the engine's pool. A database in memory outlives
    such single operations, but not a left `open()`.

    Cancellation: writes check for it before they begin and are shielded afterwards, so their
    caller always learns the verdict; reads can be cancelled until they have a connection. How
    long the database itself may take is bounded there (`busy_timeout`, `statement_timeout`).

    Raises TypeError for a sessionmaker without an engine, ValueError for an engine that the
    chosen executor cannot use. Source: docs/persistence.md.
    """

    def __init__(
        self,
        source: Sessionmaker | Engine | AsyncEngine,
        *,
        configure_sqlite: bool = True,
        inline: bool = False,
        hold: Hold = nullcontext,
    ) -> None:
        engine = _engine_of(source)
        plain = engine.sync_engine if isinstance(engine, AsyncEngine) else engine
        self._executor: Executor = choose_executor(engine, inline=inline)
        self._hold = hold
        self._lifespan = Lifespan(self._executor.start, self._stop)
        self._opened = False
        self._sqlite = sqlite.is_sqlite(plain)
        self._in_memory = sqlite.in_memory(plain)
        self._can_listen = notify.can_listen(plain)
        # SQLite has one writer at a time anyway, and its lock has no queue; this one has.
        lock = trio.Lock()
        self._writing: Turn = lock if self._sqlite else nullcontext()
        self._reading: Turn = lock if self._in_memory else nullcontext()
        self._group = GroupCommit(self._write_group, lock)
        self._writer = Writer(plain) if self._sqlite and not self._in_memory else None
        if self._sqlite and configure_sqlite:
            sqlite.configure(plain)

    @override
    @asynccontextmanager
    async def open(self) -> AsyncGenerator[SQLAlchemyStore, None]:
        async with self._lifespan.use():
            self._opened = True
            yield self

    async def create_schema(self) -> None:
        """Create the tables that are missing: for tests and demos; hosts own their migrations."""
        async with self._lifespan.use(), self._writing:
            with trio.CancelScope(shield=True):
                await self._run(RungentBase.metadata.create_all)

    @override
    async def watch(self, wake: Callable[[str | None], None], poll_seconds: float) -> None:
        if self._writer is not None:
            async with self._lifespan.use():
                await self._watch_file(self._writer, wake, poll_seconds)
        if self._can_listen:
            async with self._lifespan.use():
                await notify.listen(self._run, wake, poll_seconds)
        while True:
            await trio.sleep(poll_seconds)
            wake(None)

    @override
    async def create_session(self, session: Session) -> None:
        await self._write(
            partial(sessions.create_session, session=session),
            lambda c, _: sessions.ensure_session(c, session),
        )

    @override
    async def get_session(self, session_id: str) -> Session:
        return await self._read(partial(sessions.get_session, session_id=session_id))

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
            lambda c: sessions.list_sessions(c, owner, agent_names, limit, after)
        )

    @override
    async def set_title(self, session_id: str, title: str | None, now: datetime) -> Session:
        return await self._write(lambda c: sessions.set_title(c, session_id, title, now))

    @override
    async def list_messages(
        self, session_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[Message]:
        return await self._read(lambda c: sessions.list_messages(c, session_id, after, limit))

    @override
    async def create_run(self, creation: Creation) -> Created:
        create = partial(creations.create_run, creation=creation)
        for _ in range(CREATE_ATTEMPTS - 1):
            # Somebody created a run in between; the next look sees it and names it.
            with suppress(IntegrityError):
                return await self._write(create, creations.is_created)
        return await self._write(create, creations.is_created)

    @override
    async def get_run(self, run_id: str) -> Run:
        return await self._read(partial(runs.get_run, run_id=run_id))

    @override
    async def list_runs(
        self, session_id: str, *, limit: int, after: Cursor | None = None
    ) -> list[Run]:
        return await self._read(lambda c: runs.list_runs(c, session_id, limit, after))

    @override
    async def list_claimable(
        self, agent_names: Collection[str], owner: str, now: datetime, *, limit: int
    ) -> list[Run]:
        return await self._read(lambda c: runs.list_claimable(c, agent_names, owner, now, limit))

    @override
    async def claim_run(self, run_id: str, owner: str, now: datetime, decide: Decision) -> Run:
        return await self._decide(lambda c: runs.claim_run(c, run_id, owner, now, decide))

    @override
    async def commit(self, commit: Commit, *, owner: str, token: int) -> None:
        async with self._lifespan.use():
            await self._group.commit(DriveCommit(commit, owner, token))

    @override
    async def resolve_interaction(
        self,
        run_id: str,
        interaction_id: str,
        decide: Callable[[Run, Interaction | None], Commit | None],
    ) -> Run:
        def resolve(connection: Connection) -> runs.Decided:
            def think(run: Run) -> Commit | None:
                return decide(run, runs.find_interaction(connection, run_id, interaction_id))

            return runs.decide(connection, run_id, think)

        return await self._decide(resolve)

    @override
    async def get_interaction(self, interaction_id: str) -> Interaction:
        return await self._read(partial(runs.get_interaction, interaction_id=interaction_id))

    @override
    async def find_token(self, token_hash: str) -> ActionToken | None:
        return await self._read(partial(due.find_token, token_hash=token_hash))

    @override
    async def list_due(
        self, agent_names: Collection[str], now: datetime, *, limit: int
    ) -> list[Interaction]:
        return await self._read(lambda c: due.list_due(c, agent_names, now, limit))

    @override
    async def take_closing(self, interaction_id: str) -> bool:
        return await self._write(
            partial(due.take_closing, interaction_id=interaction_id), lambda c, _: False
        )

    @override
    async def complete_task(
        self,
        run_id: str,
        task_id: str,
        decide: Callable[[Run, ExternalTask | None], Commit | None],
    ) -> Run:
        def complete(connection: Connection) -> runs.Decided:
            def think(run: Run) -> Commit | None:
                return decide(run, runs.find_task(connection, run_id, task_id))

            return runs.decide(connection, run_id, think)

        return await self._decide(complete)

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
        return await self._decide(lambda c: runs.decide(c, run_id, decide))

    @override
    async def list_claims(self, run_id: str) -> list[ToolClaim]:
        return await self._read(partial(runs.list_claims, run_id=run_id))

    @override
    async def renew_lease(
        self, tokens: Mapping[str, int], owner: str, expires_at: datetime
    ) -> set[str]:
        return await self._write(lambda c: runs.renew_lease(c, tokens, owner, expires_at))

    @override
    async def release_lease(self, run_id: str, owner: str, token: int) -> bool:
        return await self._write(
            lambda c: runs.release_lease(c, run_id, owner, token),
            lambda c, released: runs.is_released(c, released, run_id, token),
        )

    @override
    async def list_events(self, run_id: str, *, after: int, limit: int) -> list[Event]:
        return await self._read(lambda c: events.list_events(c, run_id, after, limit))

    async def _read(self, query: Callable[[Connection], T]) -> T:
        async with self._lifespan.use(), self._reading:
            return await self._run(partial(transactions.read, query=query))

    async def _decide(self, decide: Callable[[Connection], runs.Decided]) -> Run:
        return (await self._write(decide, runs.is_decided)).run

    async def _write(
        self,
        change: Callable[[Connection], T],
        stored: Callable[[Connection, T], bool] | None = None,
    ) -> T:
        """Make a change. An exception, other than a cancellation, means that it was not made.

        When its COMMIT broke, `stored` finds out; what has none can simply be done again.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        async with self._lifespan.use():
            try:
                outcome = await self._transact(change)
            except Unreachable as away:
                raise away.error from None
            if not isinstance(outcome, Unsure):
                return outcome
            logger.warning("a COMMIT broke: %s", type(outcome.error).__name__)
            if stored is None:
                return await self._until_known(change)
            result: T = outcome.result
            if await self._until_known(lambda connection: stored(connection, result)):
                return result
            raise outcome.error

    async def _until_known(self, change: Callable[[Connection], T]) -> T:
        """The result of a transaction, tried for as long as the database is away.

        Waits in between, and only there heeds a cancellation: then nobody can say what happened.
        """
        outage = Outage(LONGEST_PAUSE)
        while True:
            outage.failed()
            await outage.wait()
            with suppress(Unreachable):
                outcome = await self._transact(change)
                if not isinstance(outcome, Unsure):
                    return outcome

    async def _transact(self, change: Callable[[Connection], T]) -> T | Unsure:
        async with self._writing:
            with trio.CancelScope(shield=True):
                return await self._run(lambda e: transactions.write(self._writer or e, change))
        raise AssertionError("a shield swallows nothing")

    async def _write_group(self, units: Sequence[DriveCommit]) -> Sequence[Verdict]:
        return await self._run(lambda engine: write_batch(self._writer or engine, units))

    async def _run(self, job: Callable[[Engine], T]) -> T:
        with self._hold():
            return await self._executor.run(job)

    async def _stop(self) -> None:
        try:
            if (writer := self._writer) is not None:
                await self._run(lambda _: writer.close())
            if self._opened or not self._in_memory:
                await self._run(Engine.dispose)
        finally:
            self._opened = False
            with self._hold():
                await self._executor.stop()  # noqa: ASYNC102 - bounded by the last statement

    async def _watch_file(
        self, writer: Writer, wake: Callable[[str | None], None], poll_seconds: float
    ) -> None:
        seen: tuple[int, int] | None = None
        while True:
            async with self._writing:
                found = await self._run(lambda _: writer.others())
            if found != seen:
                # At first, too: what was committed before this look was seen by nobody.
                seen = found
                wake(None)
            await trio.sleep(poll_seconds)


def _engine_of(source: Sessionmaker | Engine | AsyncEngine) -> Engine | AsyncEngine:
    if isinstance(source, (Engine, AsyncEngine)):
        return source
    bind: object = source.kw.get("bind")
    if not isinstance(bind, (Engine, AsyncEngine)):
        raise TypeError("the sessionmaker must be bound to an engine")
    return bind
