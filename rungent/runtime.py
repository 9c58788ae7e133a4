"""The runtime: the one object through which a host creates, follows and cancels runs.

Source: docs/runtime.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, Unpack

import trio
from pydantic import JsonValue

from rungent import creation
from rungent._drive.acting import Acting
from rungent._drive.announce import Announcer
from rungent._drive.closing import Closer
from rungent._drive.doors import Doors
from rungent._drive.journal import Desk
from rungent._drive.service import Service
from rungent._drive.supervisor import Supervisor
from rungent._drive.tool_call import in_json
from rungent.access import Access, OpeningStream, OwnedStream, checked_seq, page_limit
from rungent.agent import Agent
from rungent.creation import IfActive
from rungent.errors import NotAllowed, NotFound
from rungent.events import Event
from rungent.identity import Identity
from rungent.ids import new_id
from rungent.llm.port import Model
from rungent.options import Options, RuntimeOptions
from rungent.records import ActionOutcome, Message, Run, RunReceipt, Session
from rungent.store.feed import EventFeed, Until
from rungent.store.port import Store
from rungent.text import to_json_value
from rungent.tools.messages import public_text
from rungent.tools.results import ToolResult, coerce_result

__all__ = ["Runtime"]


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
        self._feed = EventFeed(store)
        self._desk = Desk(
            store=store,
            announcer=Announcer(self._feed, self._options.event_listener),
            catalog=self._options.catalog(),
            options=self._options,
            worker=new_id("wrk_"),
        )
        self._supervisor = Supervisor(self._desk, self._agents, model)
        self._doors = Doors(self._desk, self._agents, self._supervisor)
        self._access = Access(store, self._agents.keys())
        self._acting = Acting(self._desk, self._doors, self._feed)
        closer = Closer(self._desk, self._doors)
        self._service = Service(self._desk, self._feed, self._supervisor, closer, model)

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
        await self._service.serve(task_status=task_status)

    async def stop(self, grace_seconds: float | None = None) -> None:
        """Stop serving; this cancels no run. Returns when `serve` has ended.

        New work is refused, open event streams end, drives get `grace_seconds` (default
        `shutdown_grace_seconds`) to reach a pause or their end, then they are cancelled and their
        leases released, so that another worker goes on. Does nothing when not serving.
        """
        await self._service.stop(grace_seconds)

    async def __aenter__(self) -> Self:
        await self._service.enter()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._service.leave(kind, error, trace)  # noqa: ASYNC102 - bounded inside

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
        checked_limit, after = page_limit(limit), checked_seq(after_seq)
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
        limit = self._options.max_input_chars
        asked = creation.checked_request(content, if_active, idempotency_key, limit)
        return await self._create(asked, session_id, identity, deps)

    async def _create(
        self,
        asked: creation.Request,
        session_id: str,
        identity: Identity,
        deps: Mapping[str, Any] | None,
    ) -> RunReceipt:
        session = await self._access.session(session_id, identity)
        replace = self._doors.cancelling() if asked.replaces else None
        source = creation.Message(asked.text, asked.run_id)
        return await self._doors.create(session, source, asked.key, asked.digest, deps, replace)

    async def retry_run(
        self,
        run_id: str,
        *,
        identity: Identity,
        deps: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> RunReceipt:
        """Start a new run for the user message of a failed one, from the transcript as it stands.

        Only the newest run of a session, and only after a retryable failure: else
        RunNotRetryable. Everything else is as in `create_run`.
        """
        key = creation.checked_key(idempotency_key)
        run, session = await self._access.run(run_id, identity)
        digest = creation.request_digest(key, "retry", {"run": run_id})
        return await self._doors.create(session, creation.Retry(run), key, digest, deps, None)

    async def submit_response(
        self,
        run_id: str,
        interaction_id: str,
        value: JsonValue,
        *,
        identity: Identity,
        deps: Mapping[str, Any] | None = None,
    ) -> RunReceipt:
        """Answer the question or approval that a run waits for; the run goes on at once.

        The first answer wins: the same once more is accepted without effect. Raises
        InvalidResponse, NotAllowed, InteractionMismatch, InteractionAlreadyResolved,
        RunNotWaiting, NotFound or ShuttingDown; then nothing is stored and the run keeps waiting.
        """
        run, session = await self._access.run(run_id, identity)
        pending = run.state.interaction
        asked = pending if pending is not None and pending.id == interaction_id else None
        if asked and not await self._acting.may_answer(run, session, asked, identity, deps):
            raise NotAllowed("Other people are to answer this.")
        checked = None if asked is None else asked.id
        return await self._doors.answer(
            run_id, interaction_id, value, identity, deps, checked=checked
        )

    async def act(
        self, token: str, *, identity: Identity, deps: Mapping[str, Any] | None = None
    ) -> ActionOutcome:
        """Give the answer of a button, as the person who clicked it; what came of it as a value.

        `identity` need not own the session: who may answer is what the question says. The run
        goes on at once, with `deps` or those of `dependency_provider`. While an earlier answer of
        several is being handled it waits up to two seconds. Raises ShuttingDown only.
        Source: docs/interactive-tools.md#clicks.
        """
        return await self._acting.act(token, identity, deps)

    async def report_external_progress(
        self,
        run_id: str,
        task_id: str,
        message: str,
        *,
        identity: Identity,
        public: object = None,
    ) -> Event:
        """Show how the host's work goes; `message` has 1–280 characters, else ValueError.

        Raises RunNotWaiting, TaskMismatch or NotFound.
        """
        text, shown = public_text(message), to_json_value(public)
        await self._access.run(run_id, identity)
        return await self._doors.report(run_id, task_id, text, shown)

    async def resume_deferred(
        self,
        run_id: str,
        task_id: str,
        result: ToolResult,
        *,
        identity: Identity,
        deps: Mapping[str, Any] | None = None,
    ) -> Run:
        """Complete the task that a run waits for; exactly one completion succeeds.

        The result settles the original call. It may ask a question, but not defer again
        (ValueError). Raises RunNotWaiting, TaskMismatch, NotFound or ShuttingDown.
        """
        told = in_json(coerce_result(result))
        if told.deferred is not None:
            raise ValueError("a completion cannot be deferred again")
        await self._access.run(run_id, identity)
        return await self._doors.complete(run_id, task_id, told, deps)

    async def cancel_run(self, run_id: str, *, identity: Identity) -> Run:
        """End the run as cancelled, from any process; returns the run as it is afterwards.

        Idempotent: a run that has ended is returned unchanged. A local drive is cancelled at
        once; one elsewhere can write nothing more.
        """
        run, session = await self._access.run(run_id, identity)
        return await self._doors.cancel(run, session)

    def stream_events(
        self, run_id: str, *, identity: Identity, after_seq: int = 0, until: Until | None = None
    ) -> OwnedStream:
        """Replay and follow a run's events, ending as `EventStream` does.

        The identity is checked by the first read, which raises NotFound. Leaving the iterator at
        any point affects nothing.
        """
        stream = self._feed.follow(run_id, checked_seq(after_seq), until)
        return OwnedStream(self._access, stream, run_id, identity)

    def stream_run(
        self,
        session_id: str,
        content: str,
        *,
        identity: Identity,
        deps: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        if_active: IfActive = "reject",
    ) -> OpeningStream:
        """Create a run as `create_run` does and follow its events from the first.

        The run is created by the first read, and goes on when the iterator is left.
        """

        async def begin() -> OwnedStream:
            limit = self._options.max_input_chars
            asked = creation.checked_request(content, if_active, idempotency_key, limit)
            # From before its first event, so that none has to be looked for.
            news = self._feed.listen(asked.run_id)
            receipt = await self._create(asked, session_id, identity, deps)
            stream = self._feed.follow(receipt.run_id, 0, news=news)
            return OwnedStream(self._access, stream, receipt.run_id, identity, checked=True)

        return OpeningStream(begin)

    def stream_response(
        self,
        run_id: str,
        interaction_id: str,
        value: JsonValue,
        *,
        identity: Identity,
        deps: Mapping[str, Any] | None = None,
    ) -> OpeningStream:
        """Answer as `submit_response` does and follow the events from the first new one.

        The answer is submitted by the first read.
        """

        async def begin() -> OwnedStream:
            before = await self.get_run(run_id, identity=identity)
            await self.submit_response(run_id, interaction_id, value, identity=identity, deps=deps)
            stream = self._feed.follow(run_id, before.event_seq)
            return OwnedStream(self._access, stream, run_id, identity, checked=True)

        return OpeningStream(begin)

    async def recover_runs(self) -> int:
        """Claim runs that nobody drives, once; returns how many. Raises ShuttingDown."""
        self._supervisor.require_accepting()
        return await self._supervisor.sweep()
