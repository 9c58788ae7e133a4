"""Every drive of this process: starting, capacity, leases, sweeps, stopping.

Source: docs/runs.md#leases.
"""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import trio

from rungent._drive.claims import claimed
from rungent._drive.drive import CLEANUP_SECONDS, Drive
from rungent._drive.journal import Desk
from rungent._drive.run_log import log_part
from rungent.agent import Agent
from rungent.errors import NotFound, RuntimeBusy, ShuttingDown, StaleRun
from rungent.events import Event
from rungent.llm.port import Model
from rungent.records import Lease, Message, Run, Session
from rungent.store.port import Commit

__all__ = ["Supervisor"]

logger = logging.getLogger("rungent")

SWEEP_PAGE = 100
CHECK_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Reservation:
    """A queued run of this worker: the token of its lease, and what its creator gave it."""

    token: int
    deps: Mapping[str, Any] | None


class Supervisor:
    """Owns the drives. `run()` holds their nursery; nothing is driven outside it.

    `when_sweeping` is called at each sweep, for what else is to be looked after.
    """

    def __init__(self, desk: Desk, agents: Mapping[str, Agent], model: Model) -> None:
        self._desk = desk
        self._agents = agents
        self._model = model
        self._drives: dict[str, Drive] = {}
        self._reserved: dict[str, Reservation] = {}
        self._starting = 0
        self._queueing = 0
        self._nursery: trio.Nursery | None = None
        self._context: contextvars.Context | None = None
        self._kick = trio.Event()
        self._suspects: set[str] = set()
        self._suspicion = trio.Event()
        self._all_done = trio.Event()
        self._draining = False
        self._stopping = False
        self.when_sweeping: Callable[[], None] = _nothing

    @property
    def accepting(self) -> bool:
        """Whether new drives may start."""
        return self._nursery is not None and not self._draining

    @property
    def busy(self) -> bool:
        """Whether as many runs are driven as allowed."""
        limit = self._desk.options.max_concurrent_runs
        return limit is not None and len(self._drives) + self._starting >= limit

    @contextmanager
    def slot(self) -> Generator[bool]:
        """Whether a run created now may be driven at once; keeps its place until it started."""
        free = not self.busy
        self._starting += free
        self._queueing += not free
        try:
            yield free
        finally:
            self._starting -= free
            self._queueing -= not free

    def require_accepting(self) -> None:
        """Raise ShuttingDown unless the runtime serves and is not stopping."""
        if not self.accepting:
            raise ShuttingDown("The runtime is not serving.")

    def refusal(self, free: bool) -> RuntimeBusy | ShuttingDown | None:
        """Why a run may not even be queued, or None; `free` when it need not be queued.

        Asked inside `slot`, whose own place counts.
        """
        if not self.accepting:
            return ShuttingDown("The runtime is not serving.")
        queued = len(self._reserved) + self._queueing
        if not free and queued > self._desk.options.max_queued_runs:
            return RuntimeBusy("Too many runs are waiting.")
        return None

    def lease(self) -> Lease:
        """A lease for this worker from now on."""
        options = self._desk.options
        expires = options.now() + timedelta(seconds=options.lease_seconds)
        return Lease(owner=self._desk.worker, expires_at=expires)

    def reserve(self, run: Run, deps: Mapping[str, Any] | None) -> None:
        """Remember a queued run that this worker created: its reservation and dependencies."""
        self._reserved[run.id] = Reservation(run.fencing_token, deps)
        if not self.busy:
            # The last drive may have ended while the run was being stored.
            self._kick.set()

    def start(
        self,
        run: Run,
        deps: Mapping[str, Any] | None = None,
        *,
        claim_events: Sequence[Event] = (),
        session: Session | None = None,
        transcript: Sequence[Message] | None = None,
    ) -> None:
        """Drive a run that is leased to this worker, and announce the events of its claim.

        A `session` or a whole `transcript` that the caller knows need not be read again.

        The drive belongs to the runtime: it outlives the caller and sees none of the caller's
        context variables. After a stop the lease simply expires.
        """
        self._desk.announcer.wake(run.id, claim_events)
        if self._nursery is None or self._context is None:
            return
        reserved = self._reserved.pop(run.id, None)
        if deps is None and reserved is not None:
            deps = reserved.deps
        agent = self._agents[run.agent_name]
        drive = Drive(self._desk, agent, self._model, run, deps, claim_events, session, transcript)
        if self._stopping:
            # It came too late for the grace: it only gives the lease back.
            drive.scope.cancel()
        if not self._drives:
            self._all_done = trio.Event()
        earlier = self._drives.get(run.id)
        self._drives[run.id] = drive
        self._context.run(self._nursery.start_soon, self._supervise, drive, earlier)

    def drive_of(self, run_id: str) -> Drive | None:
        """The local drive of a run, also while it is leaving."""
        return self._drives.get(run_id)

    def end_drive(self, ended: Commit) -> Drive | None:
        """Cancel the local drive of a run that this commit ended; it has the events told."""
        self._reserved.pop(ended.run.id, None)
        drive = self._drives.get(ended.run.id)
        if drive is not None and drive.owns_run:
            drive.ended = ended.run
        else:
            log_part(ended.run, self._desk.worker)
        if drive is not None:
            drive.journal.end(ended.events)
        return drive

    def suspect(self, run_id: str | None) -> None:
        """Somebody else may have changed a run, or any run for None: see whether it is still ours.

        So a cancel in another process stops a tool here long before the next renewal.
        """
        if run_id is None:
            self._suspects.update(self._drives)
        elif run_id in self._drives:
            self._suspects.add(run_id)
        if self._suspects:
            self._suspicion.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Hold the nursery of all drives until cancelled."""
        self._context = contextvars.copy_context()
        self._draining = self._stopping = False
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self._desk.clock.run)
                nursery.start_soon(self._renew_forever)
                nursery.start_soon(self._sweep_forever)
                nursery.start_soon(self._check_forever)
                task_status.started()
                await trio.sleep_forever()
        finally:
            self._nursery = None
            with trio.move_on_after(CLEANUP_SECONDS, shield=True):
                await self._give_back_reservations()

    async def _give_back_reservations(self) -> None:
        """Let other workers claim the queued runs of this one at once."""
        reserved, self._reserved = self._reserved, {}
        for run_id, reservation in reserved.items():
            try:
                await self._desk.store.release_lease(run_id, self._desk.worker, reservation.token)
            except Exception:
                # It expires by itself.
                logger.exception("could not give %s back", run_id)
                return

    async def drain(self, grace_seconds: float) -> None:
        """Refuse new drives, give the present ones time, then cancel them.

        Returns once every drive has left its run in order.
        """
        self._draining = True
        with trio.move_on_after(grace_seconds):
            await self._until_idle()
        self._stopping = True
        for drive in self._drives.values():
            drive.scope.cancel()
        await self._until_idle()

    async def sweep(self) -> int:
        """Claim what nobody drives, as far as capacity allows; returns how many were claimed."""
        if not self.accepting:
            return 0
        now = self._desk.options.now()
        candidates = await self._desk.store.list_claimable(
            list(self._agents), self._desk.worker, now, limit=SWEEP_PAGE
        )
        count = 0
        for candidate in candidates:
            with self.slot() as free:
                if not free:
                    break
                count += await self._claim(candidate)
        return count

    async def _claim(self, candidate: Run) -> bool:
        if not self.accepting or candidate.id in self._drives:
            return False
        # The store decides in a thread of its own, in which the host's clock need not work.
        now = self._desk.options.now()
        made = claimed(self.lease(), now)
        commits: list[Commit] = []

        def decide(run: Run) -> Commit | None:
            commits[:] = [made(run)]
            return commits[0]

        try:
            run = await self._desk.store.claim_run(candidate.id, self._desk.worker, now, decide)
        except (StaleRun, NotFound):
            return False
        except Exception:
            logger.exception("could not claim %s", candidate.id)
            return False
        # No checkpoint since the commit: what is claimed is driven.
        self.start(run, claim_events=commits[-1].events)
        return True

    async def _supervise(self, drive: Drive, earlier: Drive | None) -> None:
        try:
            if earlier is not None:
                # It paused the run and may still be telling the listener about it.
                await earlier.over.wait()
            await drive.advance()
        finally:
            drive.log()
            drive.over.set()
            if self._drives.get(drive.run.id) is drive:
                del self._drives[drive.run.id]
            self._kick.set()
            if not self._drives:
                self._all_done.set()

    async def _until_idle(self) -> None:
        while self._drives:
            await self._all_done.wait()

    async def _sweep_forever(self) -> None:
        while True:
            self._kick = trio.Event()
            self.when_sweeping()
            try:
                if await self.sweep() == SWEEP_PAGE:
                    # There may be more, and their clients wait.
                    continue
            except Exception:
                logger.exception("the recovery sweep failed")
            with trio.move_on_after(self._desk.options.recovery_interval_seconds):
                await self._kick_when_useful()

    async def _kick_when_useful(self) -> None:
        """Wait for the end of a drive, which matters only while runs are queued here."""
        while True:
            await self._kick.wait()
            if self._reserved:
                return
            self._kick = trio.Event()

    async def _check_forever(self) -> None:
        while True:
            await self._suspicion.wait()
            self._suspicion = trio.Event()
            suspects, self._suspects = self._suspects, set()
            for run_id in suspects:
                await self._check(run_id)
            # Our own commits raise suspicion, too: once in a while is enough.
            await trio.sleep(CHECK_SECONDS)

    async def _check(self, run_id: str) -> None:
        drive = self._drives.get(run_id)
        if drive is None:
            return
        try:
            run = await self._desk.store.get_run(run_id)
        except Exception:
            # The renewal of its lease decides.
            logger.exception("could not look at %s", run_id)
            return
        if run.fencing_token != drive.token and self._drives.get(run_id) is drive:
            logger.info("drive of %s stops: the run was advanced elsewhere", run_id)
            drive.journal.lose()

    async def _renew_forever(self) -> None:
        options = self._desk.options
        while True:
            await trio.sleep(options.lease_renew_seconds)
            held = {drive.run.id: drive for drive in self._drives.values()}
            tokens = {run_id: drive.token for run_id, drive in held.items()}
            reserved = {run_id: r.token for run_id, r in self._reserved.items()}
            deadline = options.lease_seconds - options.lease_renew_seconds
            kept: set[str] = set()
            with trio.move_on_after(deadline):
                kept = await self._renew(tokens | reserved)
            for run_id in reserved.keys() - kept:
                # Cancelled or claimed by somebody else.
                self._reserved.pop(run_id, None)
            for run_id, drive in held.items():
                if run_id not in kept and drive.owns_run:
                    logger.warning("lease of %s was lost", run_id)
                    drive.journal.lose()

    async def _renew(self, tokens: Mapping[str, int]) -> set[str]:
        """The run ids still held; retried while the store fails, until the caller's deadline."""
        while tokens:
            try:
                return await self._desk.store.renew_lease(
                    tokens, self._desk.worker, self.lease().expires_at
                )
            except Exception:
                logger.exception("could not renew leases")
                await trio.sleep(1)
        return set()


def _nothing() -> None:
    """Nothing else is looked after."""
