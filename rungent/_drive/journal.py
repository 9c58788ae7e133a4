"""The only writer of a running run: applies outcomes, commits them, keeps the current value.

Commits of one drive happen one after another. A commit that lost its condition, or that the
store could not make, stops the drive at once: its scope is cancelled and nothing more is
written. What is committed is told to the host's listener event by event; what a cancelled drive
could not tell any more is told when it leaves. Source: docs/runs.md#leases.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NoReturn

import trio

from rungent._drive.announce import Announcer
from rungent._drive.seal import seal
from rungent._drive.silence import Clock
from rungent._drive.transcript import Transcript
from rungent._drive.turn import Turn
from rungent._lifecycle.advance import advance
from rungent._lifecycle.opening import Pending, proceed
from rungent._lifecycle.outcomes import Outcome
from rungent._lifecycle.transition import Facts, Transition
from rungent.agent import Agent
from rungent.catalog import Catalog
from rungent.errors import StaleRun
from rungent.events import Event
from rungent.ids import new_id
from rungent.options import Options
from rungent.records import Run, RunStatus
from rungent.store.port import Commit, Store

__all__ = ["Desk", "Journal", "facts_of"]

logger = logging.getLogger("rungent")


@dataclass(frozen=True, slots=True)
class Desk:
    """What every drive of one runtime shares."""

    store: Store
    announcer: Announcer
    catalog: Catalog
    options: Options
    worker: str
    clock: Clock = field(default_factory=Clock)


def facts_of(desk: Desk, agent: Agent, now: datetime, interaction_id: str = "") -> Facts:
    """What decisions of the moment `now` depend on.

    It is given because a store may decide in another thread, in which the host's clock need not
    work. `interaction_id` is made where none is given.
    """
    options = desk.options
    return Facts(
        agent=agent,
        catalog=desk.catalog,
        now=now,
        interaction_id=interaction_id or new_id("int_"),
        max_model_steps=options.max_model_steps,
        max_identical_tool_failures=options.max_identical_tool_failures,
        max_recoveries=options.max_recoveries,
        question_seconds=options.question_expires_seconds,
    )


class DriveOver(RuntimeError):
    """The drive may write nothing more: what code sees that hides from its cancellation."""


class Journal:
    """The current run of one drive. `scope` is cancelled when the drive must stop.

    `untold` are the events of the claim that led to the drive.
    """

    def __init__(
        self,
        desk: Desk,
        agent: Agent,
        run: Run,
        scope: trio.CancelScope,
        untold: Sequence[Event] = (),
    ) -> None:
        self._desk = desk
        self._agent = agent
        self._run = self._stored_run = run
        self._token = run.fencing_token
        self._scope = scope
        self._turn = Turn()
        self._lost = False
        self._untold = deque(untold)
        self._last_events: tuple[Event, ...] = ()
        self._question_id = new_id("int_")
        self._committing = desk.announcer.committing(run.id)
        self.transcript = Transcript(agent, ())

    @property
    def run(self) -> Run:
        """The run as last committed by this drive."""
        return self._run

    @property
    def turn(self) -> Turn:
        """Held while an outcome is committed and told."""
        return self._turn

    @property
    def lost(self) -> bool:
        """Whether this drive may write nothing more."""
        return self._lost

    def lose(self) -> None:
        """Stop the drive: somebody else owns the run, or the store cannot be written."""
        self._lost = True
        self._scope.cancel()

    def end(self, events: Sequence[Event]) -> None:
        """Stop the drive: its run was ended by a commit of this process, with `events`."""
        self.follow(events)
        self.lose()

    def follow(self, events: Sequence[Event]) -> None:
        """Take events to tell that another commit of this process added behind the drive's."""
        self._last_events += tuple(events)
        self._desk.announcer.wake(self._run.id, events)

    async def tell(self) -> None:
        """Tell the listener what it has not heard yet, in order."""
        if self._desk.announcer.inside(self._run.id):
            # The listener itself asks, while it is told of a commit: none is under way.
            await self._tell_last()
            return
        async with self._turn:
            # Only now is no commit under way whose events come first.
            await self._tell_last()

    async def _tell_last(self) -> None:
        self._untold.extend(self._last_events)
        self._last_events = ()
        await self._tell()

    async def _tell(self) -> None:
        events = list(self._untold)
        self._untold.clear()
        await self._desk.announcer.tell(self._run.id, events)

    async def apply(self, outcome: Outcome) -> None:
        """Commit an outcome. Returns once it is stored and announced.

        A cancelled caller either stored nothing or gets the cancellation after the commit.
        """
        async with self._turn:
            facts = self._facts()
            await self._commit(advance(self._run, outcome, facts), facts.now)

    async def apply_late(self, decide: Callable[[], Outcome | None]) -> None:
        """Commit what `decide` says once this drive may write; nothing for None."""
        async with self._turn:
            outcome = decide()
            if outcome is not None:
                facts = self._facts()
                await self._commit(advance(self._run, outcome, facts), facts.now)

    async def proceed(self, outcome: Outcome | None) -> Pending:
        """Commit an outcome together with the opening of the next action, which is returned."""
        async with self._turn:
            facts = self._facts()
            transition, pending = proceed(self._run, outcome, facts)
            await self._commit(transition, facts.now)
        return pending

    async def apply_last(self, outcome: Outcome) -> None:
        """Commit the last outcome of a drive that broke, if it still owns its run."""
        if self._lost or self._run.status is not RunStatus.RUNNING:
            return
        facts = self._facts()
        commit = seal(advance(self._run, outcome, facts), facts.now)
        try:
            with self._committing:
                await self._desk.store.commit(commit, owner=self._desk.worker, token=self._token)
        except StaleRun:
            self._lost = True
            return
        self._stored(commit)

    def _facts(self) -> Facts:
        return facts_of(self._desk, self._agent, self._desk.options.now(), self._question_id)

    async def _commit(self, transition: Transition, now: datetime) -> None:
        if self._lost:
            await self._stop()
        if not transition.changes:
            # Nothing that anybody could see or need: it is stored with the next change.
            self._run = transition.run
            return
        commit = seal(transition, now, stored=self._stored_run)
        desk = self._desk
        try:
            with self._committing:
                await desk.store.commit(commit, owner=desk.worker, token=self._token)
        except StaleRun:
            logger.info("drive of %s stops: the run was advanced elsewhere", self._run.id)
            await self._stop()
        except Exception:
            logger.exception("drive of %s stops: the store failed", self._run.id)
            await self._stop()
        self._stored(commit)
        if self._untold:
            await self._tell()

    def _stored(self, commit: Commit) -> None:
        self._run = self._stored_run = commit.run
        if commit.messages:
            self.transcript.extend(commit.messages)
        if commit.interactions:
            # Used up: the next question is another one.
            self._question_id = new_id("int_")
        announcer = self._desk.announcer
        if announcer.listened:
            self._untold.extend(commit.events)
        announcer.wake(commit.run.id, commit.events)

    async def _stop(self) -> NoReturn:
        self.lose()
        await trio.lowlevel.checkpoint()
        raise DriveOver("the call is over; nothing more is stored of it")
