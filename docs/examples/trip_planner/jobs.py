"""Route jobs in a table of their own, so that work outlives the process that took it on.

```text
open ──finish──> done ──told──> told         open ──cancel──> cancelled
```

`done` means that the trip is changed but its run may not know yet; the table is an outbox.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import trio
from pydantic import JsonValue
from sqlalchemy import Connection, insert, select, update

from rungent import Identity
from rungent.demo.routes import WORTHWHILE, optimised, route_of
from rungent.demo.tables import JOBS, Database
from rungent.demo.trip import Trip, TripError
from rungent.demo.trip_rows import change_trip, load_trip

__all__ = ["Job", "JobOutcome", "JobService", "days_worth_optimising"]


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """How a job ended: the lines to tell, and the trip's revision, None after a failure."""

    lines: tuple[str, ...]
    revision: int | None = None

    def stored(self) -> dict[str, JsonValue]:
        """As JSON."""
        return {"lines": list(self.lines), "revision": self.revision}


@dataclass(frozen=True, slots=True)
class Job:
    """Optimise one day of a trip, or all of them for None, on behalf of a run's owner."""

    task_id: str
    trip_id: str
    run_id: str
    identity: Identity
    day_number: int | None = None
    outcome: JobOutcome | None = None


def days_worth_optimising(trip: Trip, day_number: int | None) -> tuple[int, ...]:
    """The days of the job that have more than one order. Raises DayNotFound."""
    days = trip.days if day_number is None else (trip.day(day_number),)
    return tuple(day.number for day in days if len(trip.places_on(day.number)) >= WORTHWHILE)


class JobService:
    """The jobs of one database. Every method but `wait_added` is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # A wake-up that says "look again": the table holds the work, so one slot is enough.
        self._wake, self._woken = trio.open_memory_channel[None](1)

    async def add(self, job: Job) -> None:
        """Take a job on, once: repeating it with the same task id does nothing."""
        await self._database.transaction(partial(_add, job))
        # When the slot is taken, a wake-up is under way already.
        with suppress(trio.WouldBlock):
            self._wake.send_nowait(None)

    async def wait_added(self) -> None:
        """Return when jobs may have been added since the last return."""
        await self._woken.receive()

    async def unfinished(self) -> tuple[Job, ...]:
        """The jobs whose run has not been told yet."""
        return await self._database.transaction(_unfinished)

    async def state(self, task_id: str) -> str | None:
        """The state of a job, None for an unknown one."""
        return await self._database.transaction(
            lambda connection: connection.scalar(
                select(JOBS.c.state).where(JOBS.c.task_id == task_id)
            )
        )

    async def finish(self, job: Job) -> JobOutcome | None:
        """Optimise the trip and note the outcome together; None when the job is not open.

        A refusal of the trip is an outcome too.
        """
        return await self._database.transaction(partial(_finish, job))

    async def give_up(self, job: Job, reason: str) -> JobOutcome:
        """Note that an open job failed."""
        outcome = JobOutcome((reason,))
        await self._database.transaction(partial(_move, job.task_id, "open", "done", outcome))
        return outcome

    async def told(self, task_id: str) -> None:
        """Note that the run knows the outcome, or will never ask for it."""
        await self._database.transaction(partial(_move, task_id, "done", "told", None))

    async def cancel(self, task_id: str) -> bool:
        """Mark an open job as cancelled; whether it was open."""
        return await self._database.transaction(partial(_move, task_id, "open", "cancelled", None))


def _add(job: Job, connection: Connection) -> None:
    known = select(JOBS.c.task_id).where(JOBS.c.task_id == job.task_id)
    if connection.scalar(known) is None:
        connection.execute(
            insert(JOBS).values(
                task_id=job.task_id,
                trip_id=job.trip_id,
                run_id=job.run_id,
                subject_id=job.identity.subject_id,
                tenant_id=job.identity.tenant_id,
                day_number=job.day_number,
                state="open",
            )
        )


def _unfinished(connection: Connection) -> tuple[Job, ...]:
    rows = connection.execute(select(JOBS).where(JOBS.c.state.in_(("open", "done")))).mappings()
    return tuple(_job(row) for row in rows)


def _job(row: Mapping[Any, Any]) -> Job:
    outcome: Mapping[str, Any] | None = row["outcome"]
    return Job(
        task_id=row["task_id"],
        trip_id=row["trip_id"],
        run_id=row["run_id"],
        identity=Identity(row["subject_id"], row["tenant_id"]),
        day_number=row["day_number"],
        outcome=None if outcome is None else _stored_outcome(outcome),
    )


def _stored_outcome(outcome: Mapping[str, Any]) -> JobOutcome:
    return JobOutcome(tuple(outcome["lines"]), outcome["revision"])


def _finish(job: Job, connection: Connection) -> JobOutcome | None:
    # The conditional update comes first: whoever gets the row, the canceller or this, has won.
    if not _move(job.task_id, "open", "done", None, connection):
        return None
    outcome = _optimise(job, connection)
    connection.execute(
        update(JOBS).where(JOBS.c.task_id == job.task_id).values(outcome=outcome.stored())
    )
    return outcome


def _optimise(job: Job, connection: Connection) -> JobOutcome:
    try:
        trip = load_trip(connection, job.trip_id)
        days = days_worth_optimising(trip, job.day_number)
    except TripError as refusal:
        return JobOutcome((refusal.message,))
    routes = [route_of(trip, number) for number in days]
    changed = change_trip(connection, job.trip_id, lambda current: optimised(current, routes))
    return JobOutcome(tuple(route.describe() for route in routes), changed.revision)


def _move(
    task_id: str, before: str, after: str, outcome: JobOutcome | None, connection: Connection
) -> bool:
    values: dict[str, object] = {"state": after}
    if outcome is not None:
        values["outcome"] = outcome.stored()
    moved = connection.execute(
        update(JOBS).where(JOBS.c.task_id == task_id, JOBS.c.state == before).values(**values)
    )
    return moved.rowcount == 1
