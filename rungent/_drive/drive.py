"""One drive: advance a run until it pauses, ends, is cancelled or the worker stops.

The loop asks the pure core what is next, performs it, and commits what came of it. Source:
docs/runs.md.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

import trio

from rungent._drive.approval import confirmation
from rungent._drive.context import DriveContext
from rungent._drive.initialise import initialise, resolve_deps
from rungent._drive.journal import Desk, Journal
from rungent._drive.model_step import model_step
from rungent._drive.reconcile import reconcile
from rungent._drive.run_log import log_part
from rungent._drive.tool_call import earlier_result, run_tools
from rungent._lifecycle.actions import (
    AskApproval,
    CallModel,
    Initialise,
    Park,
    Reconcile,
    RunTools,
    SkipDuplicate,
)
from rungent._lifecycle.opening import Pending
from rungent._lifecycle.outcomes import Outcome, RunBroke
from rungent.agent import Agent
from rungent.events import Event
from rungent.llm.port import Model
from rungent.records import Message, Run, RunStatus, Session

__all__ = ["CLEANUP_SECONDS", "Drive"]

logger = logging.getLogger("rungent")

CLEANUP_SECONDS = 5.0


@dataclass(slots=True)
class Drive:
    """A leased run being advanced by this process.

    `deps` is None when the runtime's provider has to be asked; `claim_events` are those of the
    commit that claimed the run. `session` is given by whoever has read it. `ended` is the run when
    somebody else in this process ended it.
    """

    desk: Desk
    agent: Agent
    model: Model
    run: Run
    deps: Mapping[str, Any] | None = None
    claim_events: Sequence[Event] = ()
    session: Session | None = None
    transcript: Sequence[Message] | None = None
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    over: trio.Event = field(default_factory=trio.Event)
    begun: float = field(default_factory=trio.current_time)
    ended: Run | None = None
    journal: Journal = field(init=False)

    def __post_init__(self) -> None:
        self.journal = Journal(
            self.desk, self.agent, self.run, self.scope, untold=self.claim_events
        )

    @property
    def token(self) -> int:
        """The fencing token under which this drive writes."""
        return self.run.fencing_token

    @property
    def owns_run(self) -> bool:
        """Whether the run is still this drive's to advance, as far as it knows."""
        return not self.journal.lost and self.journal.run.status is RunStatus.RUNNING

    def log(self) -> None:
        """Log how the drive left its run."""
        run = self.ended or self.journal.run
        code: str | None = None
        if run.status is RunStatus.RUNNING:
            code = "lost" if self.journal.lost else "released"
        log_part(run, self.desk.worker, seconds=trio.current_time() - self.begun, code=code)

    async def advance(self) -> None:
        """Drive the run to its next pause or end.

        Errors of the drive itself fail the run; none is raised. When the drive is cancelled
        while it still owns the run, because the worker stops, the lease is given back and the
        run goes on elsewhere.
        """
        broken: Outcome | None = None
        try:
            with self.scope:
                await self._contained()
        except Exception:
            # Outside the scope: a cancellation of this drive alone is absorbed already.
            logger.exception("drive of %s crashed", self.run.id)
            broken = RunBroke("internal_error")
        finally:
            if self.owns_run or self.desk.announcer.listened:
                with trio.move_on_after(CLEANUP_SECONDS, shield=True):
                    await self._leave(broken)

    async def _contained(self) -> None:
        """The loop, without errors that host code raised because it was cancelled."""
        try:
            await self._loop()
        except BaseExceptionGroup as group:
            errors, cancelled = group.split(Exception)
            if errors is None or cancelled is None:
                raise
            logger.error("host code failed while %s was stopped", self.run.id, exc_info=errors)
            raise cancelled from None

    async def _leave(self, broken: Outcome | None) -> None:
        journal = self.journal
        if self.owns_run:
            await self._let_go(broken)
        await journal.tell()

    async def _let_go(self, broken: Outcome | None) -> None:
        journal = self.journal
        try:
            if broken is not None:
                await journal.apply_last(broken)
            else:
                await self.desk.store.release_lease(self.run.id, self.desk.worker, self.token)
        except Exception:
            # The lease expires by itself, and recovery takes over.
            logger.exception("could not leave %s in order", self.run.id)

    async def _loop(self) -> None:
        journal = self.journal
        await journal.tell()
        session = await self._read()
        if session is None:
            return
        try:
            deps = self.deps
            if deps is None:
                provider = self.desk.options.dependency_provider
                deps = await resolve_deps(provider, session, self.run)
        except Exception:
            logger.exception("dependencies of %s failed", self.run.id)
            first = not self.run.state.initialised
            code = "run_initialization_failed" if first else "context_failed"
            await journal.apply(RunBroke(code))
            return
        async with trio.open_nursery() as nursery:
            context = DriveContext(
                self.desk, journal, self.agent, self.model, session, deps, nursery
            )
            pending = await journal.proceed(None)
            while not isinstance(pending, Park):
                pending = await journal.proceed(await _perform(context, pending))

    async def _read(self) -> Session | None:
        """The session, its transcript read; None when the store fails and another try is left."""
        store, state, session = self.desk.store, self.run.state, self.session
        try:
            provider = self.desk.options.dependency_provider
            if session is None or (self.deps is None and provider is not None):
                # The provider may look at what has changed since, as the count of messages.
                session = await store.get_session(self.run.session_id)
            transcript = self.transcript
            if transcript is None:
                transcript = await store.list_messages(session.id)
            self.journal.transcript.extend(transcript)
        except Exception:
            if state.recoveries >= self.desk.options.max_recoveries:
                raise
            logger.exception("%s could not be read", self.run.id)
            return None
        return session


async def _perform(drive: DriveContext, action: Pending) -> Outcome | None:
    match action:
        case Initialise():
            return await initialise(drive)
        case CallModel():
            return await model_step(drive)
        case RunTools():
            return await run_tools(drive, action)
        case Reconcile():
            return await reconcile(drive, action)
        case AskApproval():
            return await confirmation(drive, action)
        case SkipDuplicate():
            return earlier_result(drive, action)
        case Park():
            return None
        case _:
            assert_never(action)
