"""The route worker: the host's own background work, whose outcome wakes a parked run.

It belongs to the host's nursery and not to the runtime. Cancelling a run only marks its job.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import trio

from rungent import NotFound, RunNotWaiting, Runtime, ShuttingDown, TaskMismatch, ToolResult
from rungent.demo.jobs import Job, JobOutcome, JobService, days_worth_optimising
from rungent.demo.service import TripService

__all__ = ["Pause", "RouteWorker"]

logger = logging.getLogger("rungent.demo.worker")

Pause = Callable[[], Awaitable[object]]
_GONE = (RunNotWaiting, TaskMismatch, NotFound)


class RouteWorker:
    """Works on route jobs, those of an earlier process first. `pause` is awaited per day."""

    def __init__(
        self,
        runtime: Runtime,
        trips: TripService,
        jobs: JobService,
        *,
        pause: Pause = trio.lowlevel.checkpoint,
    ) -> None:
        self._runtime = runtime
        self._trips = trips
        self._jobs = jobs
        self._pause = pause
        self._in_hand: set[str] = set()

    async def run(self) -> None:
        """Work until cancelled. The runtime has to be served before this starts."""
        async with trio.open_nursery() as nursery:
            while True:
                for job in await self._jobs.unfinished():
                    if job.task_id not in self._in_hand:
                        self._in_hand.add(job.task_id)
                        nursery.start_soon(self._work, job)
                await self._jobs.wait_added()

    async def _work(self, job: Job) -> None:
        """One job, with its failures: one job must not end the others."""
        try:
            await self._carry_out(job)
        except ShuttingDown:
            # The table knows how far the job is; the next start goes on from there.
            logger.info("job %s is left for the next start", job.task_id)
        except Exception:
            logger.exception("job %s failed", job.task_id)
        finally:
            self._in_hand.discard(job.task_id)

    async def _carry_out(self, job: Job) -> None:
        if not await self._parked(job):
            return
        outcome = job.outcome or await self._outcome(job)
        if outcome is not None:
            await self._tell(job, outcome)

    async def _parked(self, job: Job) -> bool:
        """Whether the run waits for this job, or did.

        The tool takes the job on before the runtime parks the run: in between, nobody could be
        told anything. The run's own log says when it is ready.
        """
        stream = self._runtime.stream_events(job.run_id, identity=job.identity, until="terminal")
        try:
            async for event in stream:
                ours = event.data.get("task_id") == job.task_id
                if event.type == "external_task.started" and ours:
                    return True
            ended = not (await self._runtime.get_run(job.run_id, identity=job.identity)).active
        except NotFound:
            ended = True
        if ended:
            await self._jobs.cancel(job.task_id)
            await self._jobs.told(job.task_id)
        return False

    async def _outcome(self, job: Job) -> JobOutcome | None:
        """Do the work, with progress; None when the run does not wait for it any more."""
        try:
            trip = await self._trips.get(job.trip_id)
            for number in days_worth_optimising(trip, job.day_number):
                places = len(trip.places_on(number))
                await self._report(job, f"Comparing the ways through {places} places", number)
                await self._pause()
            return await self._jobs.finish(job)
        except _GONE:
            await self._jobs.cancel(job.task_id)
            return None
        except ShuttingDown:
            raise
        except Exception:
            # The run would wait for ever for a worker that has given up.
            logger.exception("job %s failed", job.task_id)
            return await self._jobs.give_up(job, "The route could not be optimised.")

    async def _report(self, job: Job, text: str, day_number: int) -> None:
        await self._runtime.report_external_progress(
            job.run_id,
            job.task_id,
            f"{text} on day {day_number}",
            identity=job.identity,
            public={"day_number": day_number},
        )

    async def _tell(self, job: Job, outcome: JobOutcome) -> None:
        try:
            await self._runtime.resume_deferred(
                job.run_id, job.task_id, _result(outcome), identity=job.identity
            )
        except _GONE:
            # Cancelled meanwhile, or told by an earlier process that did not live to note it.
            logger.info("run %s does not wait for its job any more", job.run_id)
        await self._jobs.told(job.task_id)


def _result(outcome: JobOutcome) -> ToolResult:
    message = " ".join(outcome.lines)
    if outcome.revision is None:
        return ToolResult(data={"ok": False, "code": "route_failed"}, message=message)
    return ToolResult(
        data={"revision": outcome.revision, "routes": list(outcome.lines)},
        message=message,
        public={"resource": "trip", "revision": outcome.revision},
    )
