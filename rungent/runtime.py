"""The runtime: the one object through which a host creates, follows and cancels runs.

Source: docs/runtime.md.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any, Self, Unpack, cast

import trio

from rungent import creation
from rungent._drive.announce import Announcer
from rungent._drive.journal import Desk, facts_of
from rungent._drive.seal import seal
from rungent._drive.supervisor import Supervisor
from rungent._lifecycle.endings import cancel
from rungent.access import Access, OwnedStream, page_limit
from rungent.agent import Agent
from rungent.creation import IfActive
from rungent.errors import InvalidRequest, NotFound
from rungent.events import Event
from rungent.identity import Identity
from rungent.ids import new_id
from rungent.llm.port import Model
from rungent.options import Options, RuntimeOptions
from rungent.records import Message, Run, RunReceipt, Session
from rungent.store.feed import EventFeed, Until
from rungent.store.port import Commit, Creation, Store

__all__ = ["Runtime"]

logger = logging.getLogger("rungent")

WATCH_RETRY_SECONDS = 1.0
STOP_MARGIN_SECONDS = 10.0


class Runtime:
    """Agents, a model and a store, served by `async with runtime:` or `runtime.serve`.

    Nothing runs outside a serving runtime: methods that would start a run raise ShuttingDown.
    `options` are those of `rungent.options.Options`. Raises ValueError for a violated rule.
    Source: docs/runtime.md.
    """

    def __init__(
        self,
        *,
        agents: Sequence[Agent],
        model: Model,
        store: Store,
        default_agent: str | None = None,
        **options: Unpack[RuntimeOptions],
    ) -> None:
        self._agents = {agent.name: agent for agent in agents}
        if not agents or len(self._agents) != len(agents):
            raise ValueError("a runtime needs agents with different names")
        self._default_agent = agents[0].name if default_agent is None else default_agent
        if self._default_agent not in self._agents:
            raise ValueError("default_agent must name a registered agent")
        self._options = Options(**options)
        self._store = store
        self._model = model
        self._feed = EventFeed(store)
        self._desk = Desk(
            store=store,
            announcer=Announcer(self._feed, self._options.event_listener),
            catalog=self._options.catalog(),
            options=self._options,
            worker=new_id("wrk_"),
        )
        self._supervisor = Supervisor(self._desk, self._agents, model)
        self._access = Access(store, self._agents.keys())
        self._scope: trio.CancelScope | None = None
        self._over = trio.Event()
        self._served: AbstractAsyncContextManager[None] | None = None

    # --- serving -----------------------------------------------------------------------------

    @property
    def serving(self) -> bool:
        """Whether the runtime is served and not stopping."""
        return self._supervisor.accepting

    @property
    def draining(self) -> bool:
        """Whether event streams end because the runtime stops."""
        return self._feed.closed

    @property
    def options(self) -> Options:
        """The checked options."""
        return self._options

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Own every drive, the recovery sweep and the model's connection, until `stop()`.

        Start it with `await nursery.start(runtime.serve)`: when that returns, runs can be
        created. Cancelling it is a stop without grace: leases are released, no run is cancelled.
        Raises RuntimeError when the runtime is served already.
        """
        if self._scope is not None:
            raise RuntimeError("the runtime is served already")
        self._scope, self._over = trio.CancelScope(), trio.Event()
        self._feed.open()
        try:
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(self._store.open())
                await self._enter_model(stack)
                with self._scope:
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(self._watch)
                        await nursery.start(self._supervisor.run)
                        task_status.started()
        finally:
            self._scope = None
            self._feed.close()
            self._over.set()

    async def stop(self, grace_seconds: float | None = None) -> None:
        """Stop serving; this cancels no run. Returns when `serve` has ended.

        New work is refused, open event streams end, drives get `grace_seconds` (default
        `shutdown_grace_seconds`) to reach a pause or their end, then they are cancelled and their
        leases released, so that another worker goes on. Does nothing when not serving.
        """
        scope = self._scope
        if scope is None:
            return
        grace = self._options.shutdown_grace_seconds if grace_seconds is None else grace_seconds
        self._feed.close()
        over = self._over
        try:
            await self._supervisor.drain(grace)
        finally:
            # A stop that is cut short is one without grace.
            scope.cancel()
        await over.wait()

    async def __aenter__(self) -> Self:
        self._served = self._serving()
        await self._served.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        served, self._served = self._served, None
        assert served is not None
        return await served.__aexit__(kind, error, trace)  # noqa: ASYNC102 - bounded inside

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        failed: Exception | None = None
        async with trio.open_nursery() as nursery:
            await nursery.start(self.serve)
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised again below
                # Carried over the nursery's edge as a value, which would wrap it in a group.
                failed = error
            finally:
                with trio.move_on_after(self._stop_seconds(), shield=True):
                    await self.stop()
        if failed is not None:
            raise failed

    def _stop_seconds(self) -> float:
        return self._options.shutdown_grace_seconds + STOP_MARGIN_SECONDS

    async def _enter_model(self, stack: AsyncExitStack) -> None:
        if isinstance(self._model, AbstractAsyncContextManager):
            await stack.enter_async_context(
                cast("AbstractAsyncContextManager[object]", self._model)
            )

    async def _watch(self) -> None:
        """Learn of events that other processes commit."""
        while True:
            try:
                await self._store.watch(self._feed.notify, self._options.follow_poll_seconds)
            except Exception:
                logger.exception("watching the store failed")
                self._feed.notify(None)
            await trio.sleep(WATCH_RETRY_SECONDS)

    # --- sessions ----------------------------------------------------------------------------

    async def create_session(
        self,
        *,
        identity: Identity,
        agent: str | None = None,
        title: str | None = None,
        resource: Mapping[str, Any] | None = None,
    ) -> Session:
        """A new session that `identity` owns. NotFound for an unknown agent."""
        name = self._default_agent if agent is None else agent
        if name not in self._agents:
            raise NotFound("There is no such agent.")
        session = creation.new_session(
            identity,
            name,
            title=creation.checked_title(title),
            resource=creation.checked_resource(resource),
            now=self._options.now,
        )
        await self._store.create_session(session)
        return session

    async def get_session(
        self, session_id: str, *, identity: Identity
    ) -> tuple[Session, list[Message]]:
        """The session and its whole transcript, tool messages included."""
        session = await self._access.session(session_id, identity)
        return session, await self._access.messages(session)

    async def find_session(self, session_id: str, *, identity: Identity) -> Session:
        """The session without its transcript. NotFound unless `identity` owns it."""
        return await self._access.session(session_id, identity)

    async def list_sessions(
        self, *, identity: Identity, limit: int = 100, cursor: str | None = None
    ) -> tuple[list[Session], str | None]:
        """A page of own sessions, newest first, and the cursor of the next page."""
        return await self._access.sessions(identity, limit, cursor)

    async def set_session_title(
        self, session_id: str, title: str | None, *, identity: Identity
    ) -> Session:
        """Set the title, or clear it with None."""
        checked = creation.checked_title(title)
        await self._access.session(session_id, identity)
        return await self._store.set_title(session_id, checked, self._options.now())

    async def list_session_runs(
        self, session_id: str, *, identity: Identity, limit: int = 100, cursor: str | None = None
    ) -> tuple[list[Run], str | None]:
        """A page of the session's runs, oldest first, and the cursor of the next page."""
        session = await self._access.session(session_id, identity)
        return await self._access.runs(session, limit, cursor)

    # --- runs --------------------------------------------------------------------------------

    async def get_run(self, run_id: str, *, identity: Identity) -> Run:
        """The run as it is stored now."""
        return (await self._access.run(run_id, identity))[0]

    async def get_run_events(
        self, run_id: str, *, identity: Identity, after_seq: int = 0, limit: int = 500
    ) -> list[Event]:
        """Stored events with `seq > after_seq`, at most `limit` (1–500)."""
        checked_limit, after = page_limit(limit), _checked_seq(after_seq)
        await self._access.run(run_id, identity)
        return await self._store.list_events(run_id, after=after, limit=checked_limit)

    async def create_run(
        self,
        session_id: str,
        content: str,
        *,
        identity: Identity,
        deps: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        if_active: IfActive = "reject",
    ) -> RunReceipt:
        """Store a user message and start a run for it; the drive belongs to the runtime.

        Returns at once. With `idempotency_key` a repeated request gets the run of the first.
        Raises InvalidRequest, NotFound, IdempotencyKeyReused, ActiveRunConflict, RuntimeBusy or
        ShuttingDown; then nothing is stored. A cancelled caller either created the run, which
        then goes on, or left no trace.
        """
        text = creation.checked_input(content, self._options.max_input_chars)
        mode = creation.checked_if_active(if_active)
        key = creation.checked_key(idempotency_key)
        session = await self._access.session(session_id, identity)
        self._supervisor.require_accepting()
        replace = self._cancelled if mode == "cancel_waiting" else None
        digest = creation.request_digest("create", {"input": text, "if_active": mode})
        with self._supervisor.slot() as claim:
            commit = creation.new_run(
                session,
                text,
                lease=self._supervisor.lease(),
                claim=claim,
                key=key,
                digest=digest,
                now=self._options.now,
            )
            created = await self._store.create_run(
                Creation(commit, replace_waiting=replace, refusal=self._supervisor.refusal(claim))
            )
            if created.replayed:
                return RunReceipt(created.run.id, created.run.status, replayed=True)
            if claim:
                self._supervisor.start(created.run, deps, claim_events=commit.events)
            else:
                self._supervisor.reserve(created.run, deps)
        if created.replaced is not None:
            await self._announce(created.replaced)
        return RunReceipt(created.run.id, created.run.status)

    async def cancel_run(self, run_id: str, *, identity: Identity) -> Run:
        """End the run as cancelled, from any process; returns the run as it is afterwards.

        Idempotent: a run that has ended is returned unchanged. A local drive is cancelled at
        once; one elsewhere can write nothing more.
        """
        before, _ = await self._access.run(run_id, identity)
        cancelled: list[Commit] = []

        def decide(run: Run) -> Commit | None:
            cancelled.clear()
            if run.active:
                cancelled.append(self._cancelled(run))
            return cancelled[0] if cancelled else None

        if not before.active:
            return before
        run = await self._store.cancel_run(run_id, decide)
        for commit in cancelled:
            drive = self._supervisor.end_drive(commit)
            if drive is None:
                await self._announce(commit)
            else:
                # Behind what the drive committed before, whoever gets to tell it.
                await drive.journal.tell()
        return run

    def stream_events(
        self, run_id: str, *, identity: Identity, after_seq: int = 0, until: Until | None = None
    ) -> OwnedStream:
        """Replay and follow a run's events, ending as `EventStream` does.

        The identity is checked by the first read, which raises NotFound. Leaving the iterator at
        any point affects nothing.
        """
        after = _checked_seq(after_seq)
        return OwnedStream(self._access, self._feed.follow(run_id, after, until), run_id, identity)

    async def stream_run(
        self,
        session_id: str,
        content: str,
        *,
        identity: Identity,
        deps: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        if_active: IfActive = "reject",
    ) -> AsyncIterator[Event]:
        """Create a run as `create_run` does and follow its events from the first."""
        receipt = await self.create_run(
            session_id,
            content,
            identity=identity,
            deps=deps,
            idempotency_key=idempotency_key,
            if_active=if_active,
        )
        async for event in self.stream_events(receipt.run_id, identity=identity):
            yield event

    async def recover_runs(self) -> int:
        """Claim runs that nobody drives, once; returns how many. Raises ShuttingDown."""
        self._supervisor.require_accepting()
        return await self._supervisor.sweep()

    def _cancelled(self, run: Run) -> Commit:
        facts = facts_of(self._desk, self._agents[run.agent_name])
        transition = cancel(run, facts)
        assert transition is not None, "only active runs are cancelled"
        return seal(transition, self._options.now())

    async def _announce(self, commit: Commit) -> None:
        await self._desk.announcer.announce(commit.run.id, commit.events)


def _checked_seq(after_seq: object) -> int:
    if isinstance(after_seq, bool) or not isinstance(after_seq, int) or after_seq < 0:
        raise InvalidRequest.at(
            "query", "after_seq", message="after_seq must be 0 or more", kind="out_of_range"
        )
    return after_seq
