"""What reaches a run from outside: creation, answers, host completions, progress, cancels.

Each is one conditional transaction that decides on the run as it is stored; the winner takes
all, and a loser changes nothing. The store may decide in a thread of its own, so the host's clock
is asked before. Source: docs/interactions.md and docs/deferred.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import trio
from pydantic import JsonValue

from rungent._drive.hosts import call_host
from rungent._drive.journal import Desk, facts_of
from rungent._drive.run_log import log_part
from rungent._drive.seal import seal
from rungent._drive.supervisor import Supervisor
from rungent._lifecycle.endings import cancel
from rungent._lifecycle.expiring import expire, is_over
from rungent._lifecycle.follow_ups import end_task, report_task
from rungent._lifecycle.pauses import answered, normal_answer
from rungent._lifecycle.responding import asking_tool, has_answered, is_restricted
from rungent._lifecycle.tool_outcomes import task_ended
from rungent._lifecycle.transition import Transition
from rungent.agent import Agent
from rungent.creation import Source, new_run
from rungent.errors import (
    InteractionAlreadyResolved,
    InteractionMismatch,
    InvalidResponse,
    RunNotWaiting,
    TaskMismatch,
)
from rungent.events import Event
from rungent.identity import Identity
from rungent.ids import new_call_id
from rungent.records import ExternalTask, Interaction, Run, RunReceipt, RunStatus, Session
from rungent.store.port import Commit, Creation
from rungent.tools.results import DeferredRequest, ToolResult

__all__ = ["Doors"]

logger = logging.getLogger("rungent")

Deps = Mapping[str, Any] | None


class Doors:
    """The entries of one runtime to runs that wait or work. Ownership is checked by callers."""

    def __init__(self, desk: Desk, agents: Mapping[str, Agent], supervisor: Supervisor) -> None:
        self._desk = desk
        self._agents = agents
        self._supervisor = supervisor
        self._due = trio.Event()
        supervisor.when_sweeping = self._wake

    @property
    def agents(self) -> Mapping[str, Agent]:
        """The agents of this runtime by name."""
        return self._agents

    @property
    def accepting(self) -> bool:
        """Whether drives may start."""
        return self._supervisor.accepting

    async def until_due(self) -> None:
        """Wait for a sweep, or for the end of a question by this process that is to be told."""
        await self._due.wait()
        self._due = trio.Event()

    def _wake(self) -> None:
        self._due.set()

    async def create(
        self,
        session: Session,
        source: Source,
        key: str | None,
        digest: str | None,
        deps: Deps,
        replace: Callable[[Run], Commit] | None = None,
    ) -> RunReceipt:
        """Store a run and start or queue it, unless a rule of the store forbids it.

        `replace` says how an active run that waits for input makes room.
        """
        with self._supervisor.slot() as claim:
            commit = new_run(
                session,
                source,
                lease=self._supervisor.lease(),
                claim=claim,
                key=key,
                digest=digest,
                now=self._desk.options.now,
            )
            retry_of = commit.run.retried_from
            refusal = self._supervisor.refusal(claim)
            created = await self._desk.store.create_run(
                Creation(commit, replace, retry_of, refusal)
            )
            if created.replayed:
                return _receipt(created.run, replayed=True)
            if claim:
                self._supervisor.start(
                    created.run,
                    deps,
                    claim_events=commit.events,
                    session=session,
                    transcript=commit.messages if created.position == 1 else None,
                )
            else:
                self._supervisor.reserve(created.run, deps)
        if created.replaced is not None:
            log_part(created.replaced.run, self._desk.worker)
            self._note_ends(created.replaced)
            await self._announce(created.replaced)
        return _receipt(created.run)

    async def answer(
        self,
        run_id: str,
        interaction_id: str,
        value: JsonValue,
        by: Identity,
        deps: Deps,
        *,
        checked: str | None,
    ) -> RunReceipt:
        """Resolve a pending interaction and drive the run on; an equal repetition does nothing.

        `checked` is the interaction that `by` is known to be allowed to answer. Raises
        InvalidResponse, InteractionMismatch, InteractionAlreadyResolved, RunNotWaiting or
        ShuttingDown, and then changes nothing but that a question may have expired.
        """
        run, _ = await self.respond(run_id, interaction_id, value, by, deps, checked=checked)
        return _receipt(run)

    async def respond(
        self,
        run_id: str,
        interaction_id: str,
        value: JsonValue,
        by: Identity,
        deps: Deps,
        *,
        checked: str | None,
    ) -> tuple[Run, bool]:
        """As `answer`, with the run, and whether this was the answer and no repetition of it."""
        written: list[Commit] = []
        now, lease = self._desk.options.now(), self._supervisor.lease()

        def decide(run: Run, interaction: Interaction | None) -> Commit | None:
            written.clear()
            if interaction is None:
                raise _no_such_interaction(run)
            facts = facts_of(self._desk, self._agents[run.agent_name], now)
            if interaction.status == "resolved":
                _require_same(interaction, value, facts.agent)
                return None
            tool = asking_tool(interaction, facts.agent)
            if has_answered(interaction, by, tool):
                raise InteractionAlreadyResolved("answered")
            if checked != interaction.id and is_restricted(interaction, tool):
                # It was asked only after its responders were looked up.
                raise InteractionAlreadyResolved(interaction.outcome or "answered")
            transition = (
                expire(run, interaction, lease, facts)
                if is_over(interaction, now)
                else answered(run, interaction, value, by, lease, facts)
            )
            self._supervisor.require_accepting()
            written.append(seal(transition, now))
            return written[0]

        run = await self._desk.store.resolve_interaction(run_id, interaction_id, decide)
        await self._drive_on(run, written, deps)
        if written and written[0].interactions[0].outcome == "expired":
            raise InteractionAlreadyResolved("expired")
        return run, bool(written)

    async def expire(self, interaction: Interaction) -> None:
        """End a question whose time is up, unless somebody else was faster."""
        written: list[Commit] = []
        now, lease = self._desk.options.now(), self._supervisor.lease()

        def decide(run: Run, found: Interaction | None) -> Commit | None:
            written.clear()
            if found is None or found.status != "pending" or not is_over(found, now):
                return None
            self._supervisor.require_accepting()
            facts = facts_of(self._desk, self._agents[run.agent_name], now)
            written.append(seal(expire(run, found, lease, facts), now))
            return written[0]

        store = self._desk.store
        run = await store.resolve_interaction(interaction.run_id, interaction.id, decide)
        await self._drive_on(run, written, None)

    async def complete(self, run_id: str, task_id: str, result: ToolResult, deps: Deps) -> Run:
        """Consume the task that a run waits for and drive the run on with its result.

        Raises RunNotWaiting, TaskMismatch or ShuttingDown, and then changes nothing.
        """
        written: list[Commit] = []
        now, lease = self._desk.options.now(), self._supervisor.lease()

        def decide(run: Run, task: ExternalTask | None) -> Commit | None:
            written.clear()
            waiting = _require_task(run, task)
            facts = facts_of(self._desk, self._agents[run.agent_name], now)
            ended = end_task(run, waiting, result, lease, facts)
            settled = task_ended(ended.run, waiting.call_id, result, new_call_id(), facts)
            self._supervisor.require_accepting()
            written.append(seal(ended.then(settled), now))
            return written[0]

        run = await self._desk.store.complete_task(run_id, task_id, decide)
        return await self._drive_on(run, written, deps)

    async def report(self, run_id: str, task_id: str, message: str, public: JsonValue) -> Event:
        """Store a progress event of the task that a run waits for.

        Raises RunNotWaiting or TaskMismatch, and then changes nothing.
        """
        written, now = list[Commit](), self._desk.options.now()

        def decide(run: Run, task: ExternalTask | None) -> Commit | None:
            written.clear()
            waiting = _require_task(run, task)
            transition = report_task(run, waiting, message, public)
            written.append(seal(transition, now))
            return written[0]

        await self._desk.store.report_task(run_id, task_id, decide)
        await self._announce(written[0])
        return written[0].events[0]

    async def cancel(self, run: Run, session: Session) -> Run:
        """End an active run as cancelled; a run that has ended is returned as it is."""
        written: list[Commit] = []
        parked: list[ExternalTask] = []
        cancelled = self.cancelling()

        def decide(current: Run) -> Commit | None:
            written.clear()
            parked.clear()
            if not current.active:
                return None
            if current.state.task is not None:
                parked.append(current.state.task)
            written.append(cancelled(current))
            return written[0]

        if not run.active:
            return run
        after = await self._desk.store.cancel_run(run.id, decide)
        for commit in written:
            self._note_ends(commit)
            drive = self._supervisor.end_drive(commit)
            if drive is None:
                await self._announce(commit)
            else:
                # Behind what the drive committed before, whoever gets to tell it.
                await drive.journal.tell()
        for task in parked:
            await self._cancel_task(session, after, task)
        return after

    def cancelling(self) -> Callable[[Run], Commit]:
        """What ends an active run as cancelled, now: a decision for the store to make."""
        now = self._desk.options.now()

        def decide(run: Run) -> Commit:
            facts = facts_of(self._desk, self._agents[run.agent_name], now)
            transition: Transition | None = cancel(run, facts)
            assert transition is not None, "only active runs are cancelled"
            return seal(transition, now)

        return decide

    async def _cancel_task(self, session: Session, run: Run, task: ExternalTask) -> None:
        canceller = self._desk.options.external_task_canceller
        if canceller is None:
            return
        request = DeferredRequest(task.task_id, task.message, task.public)
        try:
            await call_host(canceller, session, run, request)
        except Exception:
            logger.exception("cancelling the task of %s failed", run.id)

    async def _drive_on(self, run: Run, written: list[Commit], deps: Deps) -> Run:
        """Start the drive of a run that the commit leased to this worker."""
        for commit in written:
            self._note_ends(commit)
            if commit.run.status is RunStatus.RUNNING:
                self._supervisor.start(commit.run, deps, claim_events=commit.events)
            else:
                log_part(commit.run, self._desk.worker)
                await self._announce(commit)
        return run

    def _note_ends(self, commit: Commit) -> None:
        if any(interaction.closing is not None for interaction in commit.interactions):
            self._wake()

    async def _announce(self, commit: Commit) -> None:
        drive = self._supervisor.drive_of(commit.run.id)
        if drive is None:
            await self._desk.announcer.announce(commit.run.id, commit.events)
        else:
            # It paused the run and may still be telling of it.
            drive.journal.follow(commit.events)
            await drive.journal.tell()


def _receipt(run: Run, *, replayed: bool = False) -> RunReceipt:
    return RunReceipt(run.id, run.status, replayed=replayed, retried_from=run.retried_from)


def _no_such_interaction(run: Run) -> RunNotWaiting | InteractionMismatch:
    pending = run.state.interaction
    return RunNotWaiting(run.status) if pending is None else InteractionMismatch(pending.id)


def _require_same(interaction: Interaction, value: JsonValue, agent: Agent) -> None:
    """The first answer wins; the same once more is accepted and does nothing."""
    try:
        same = normal_answer(interaction, value, agent) == interaction.response
    except InvalidResponse:
        same = False
    if not same:
        raise InteractionAlreadyResolved(interaction.outcome or "cancelled")


def _require_task(run: Run, task: ExternalTask | None) -> ExternalTask:
    if run.status is not RunStatus.WAITING_EXTERNAL:
        raise RunNotWaiting(run.status)
    if task is None or task.state != "waiting":
        raise TaskMismatch("The run does not wait for this task.")
    return task
