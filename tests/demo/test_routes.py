"""Optimised routes: the order itself, the job, its progress, cancelling, and a restart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import trio

from rungent import Event, Identity
from rungent.demo import edits
from rungent.demo.app import LOCAL_IDENTITY
from rungent.demo.jobs import Job
from rungent.demo.routes import optimised, route_of
from rungent.demo.seed import DEMO_TRIP_ID, demo_trip
from rungent.demo.trip import DayNotFound
from tests.demo.hosted import Hosted, hosted, said, types

SHORTER = "Day 1 (walk): Asakusa Temple, Edo-Tokyo Museum, Tokyo Tower"


class Gate:
    """A pause of the worker that says when it is reached, and lasts until it is opened."""

    def __init__(self) -> None:
        self.reached = trio.Event()
        self.open = trio.Event()

    async def __call__(self) -> None:
        self.reached.set()
        await self.open.wait()


async def until(app: Hosted, run_id: str, kind: str) -> Event:
    """The first event of a type in a run's log, once it is there."""
    async for event in app.runtime.stream_events(run_id, identity=LOCAL_IDENTITY):
        if event.type == kind:
            return event
    raise AssertionError(f"no {kind}")


async def start(app: Hosted, text: str) -> str:
    session = await app.runtime.create_session(identity=LOCAL_IDENTITY)
    return (await app.runtime.create_run(session.id, text, identity=LOCAL_IDENTITY)).run_id


def test_the_shortest_way_begins_where_the_day_begins() -> None:
    route = route_of(demo_trip(), 1)
    assert route.order == ("Asakusa Temple", "Edo-Tokyo Museum", "Tokyo Tower")
    assert route.after_km < route.before_km
    assert [place.name for place in optimised(demo_trip(), [route]).places_on(1)] == [*route.order]


def test_a_day_that_is_as_short_as_it_gets_is_left_alone() -> None:
    trip = optimised(demo_trip(), [route_of(demo_trip(), 1)])
    route = route_of(trip, 1)
    assert optimised(trip, [route]) == trip
    assert "as short as it gets" in route.describe()


def test_a_day_that_is_not_there_has_no_route() -> None:
    with pytest.raises(DayNotFound):
        route_of(demo_trip(), 9)


def test_a_long_day_always_goes_on_to_the_nearest_place_and_unknown_ones_come_last() -> None:
    trip = demo_trip()
    names = [place.name for place in trip.places]
    trip = replace(trip, places=tuple(replace(place, day_number=1) for place in trip.places))
    for number, name in enumerate(("Atlantis", "Meiji Shrine", "Tokyo Skytree")):
        trip = edits.add_place(trip, f"new-{number}", name, 1)
    route = route_of(trip, 1)
    assert route.after_km < route.before_km
    assert sorted(route.order) == sorted([*names, "Atlantis", "Meiji Shrine", "Tokyo Skytree"])
    assert (route.order[0], route.order[-1]) == (names[0], "Atlantis")


@pytest.mark.parametrize("text", ["Optimise day 1", "Optimize the route"])
async def test_a_job_reports_progress_and_wakes_its_run(database: Path | None, text: str) -> None:
    async with hosted(database) as app:
        log = await app.say(text)
        kinds = types(log)
        begin = kinds.index("external_task.started")
        assert kinds[begin : begin + 5] == [
            "external_task.started",
            "run.waiting_external",
            "external_task.progress",
            "external_task.completed",
            "tool.completed",
        ]
        assert log[begin + 2].data["message"] == "Comparing the ways through 3 places on day 1"
        assert said(log) == "- Day 1: 8.2 km instead of 14.0 km."
        assert SHORTER in await app.trip()
        task_id = log[begin].data["task_id"]
        assert await app.services.jobs.state(task_id) == "told"


async def test_a_day_with_one_order_needs_no_job() -> None:
    async with hosted(None) as app:
        log = await app.say("Optimise day 3")
        assert "external_task.started" not in types(log)
        assert "too few places on day 3" in said(log)
        assert "There is no such day" in said(await app.say("Optimise day 9"))


async def test_cancelling_the_run_marks_the_job_and_nothing_completes_it(
    database: Path | None,
) -> None:
    gate = Gate()
    async with hosted(database, pause=gate) as app:
        before = await app.trip()
        run_id = await start(app, "Optimise day 1")
        await gate.reached.wait()
        task_id = (await until(app, run_id, "external_task.progress")).data["task_id"]
        cancelled = await app.runtime.cancel_run(run_id, identity=LOCAL_IDENTITY)
        assert cancelled.status == "cancelled"
        assert await app.services.jobs.state(task_id) == "cancelled"
        gate.open.set()
        # The worker itself was not cancelled: the next job is done.
        assert "8.2 km" in said(await app.say("Optimise day 1"))
        events = await app.runtime.get_run_events(run_id, identity=LOCAL_IDENTITY)
        assert types(events)[-2:] == ["external_task.cancelled", "run.cancelled"]
        assert await app.services.jobs.state(task_id) == "cancelled"
        assert "(revision 1)" in before
        assert "(revision 2)" in await app.trip()


async def test_a_job_survives_a_restart_of_the_application(tmp_path: Path) -> None:
    path = tmp_path / "demo.sqlite3"
    gate = Gate()
    async with hosted(path, pause=gate) as first:
        run_id = await start(first, "Optimise day 1")
        await gate.reached.wait()
        await until(first, run_id, "external_task.progress")
    async with hosted(path) as second:
        await until(second, run_id, "run.completed")
        assert SHORTER in await second.trip()


async def test_an_outcome_that_nobody_was_told_is_told_by_the_next_start(tmp_path: Path) -> None:
    path = tmp_path / "demo.sqlite3"
    async with hosted(path, working=False) as first:
        run_id = await start(first, "Optimise day 1")
        await until(first, run_id, "run.waiting_external")
        (job,) = await first.services.jobs.unfinished()
        assert await first.services.jobs.finish(job) is not None
    async with hosted(path) as second:
        await until(second, run_id, "run.completed")
        # Once, although it was worked on twice.
        assert "(revision 2)" in await second.trip()


async def test_a_refusal_ends_the_job_and_is_told(database: Path | None) -> None:
    gate = Gate()
    async with hosted(database, pause=gate) as app:
        run_id = await start(app, "Optimise day 3, then add a day")
        await until(app, run_id, "run.completed")
        await app.services.trips.move_place(DEMO_TRIP_ID, "Odaiba Beach", 3)
        run_id = await start(app, "Optimise day 3")
        await gate.reached.wait()
        for _ in range(2):
            await app.services.trips.remove_day(DEMO_TRIP_ID, 3)
        gate.open.set()
        failed = await until(app, run_id, "tool.failed")
        assert failed.data["code"] == "external_task_failed"
        assert failed.data["message"].startswith("There is no such day")
        await until(app, run_id, "run.completed")


async def test_a_worker_that_breaks_tells_its_run() -> None:
    async def broken() -> None:
        raise RuntimeError("canary-4711")

    async with hosted(None, pause=broken) as app:
        log = await app.say("Optimise day 1")
        failed = next(event for event in log if event.type == "tool.failed")
        assert failed.data["code"] == "external_task_failed"
        assert failed.data["message"] == "The route could not be optimised."
        assert "canary" not in "".join(event.to_json() for event in log)
        assert "(revision 1)" in await app.trip()


async def test_work_done_while_the_runtime_stopped_is_told_by_the_next_start(
    tmp_path: Path,
) -> None:
    path = tmp_path / "demo.sqlite3"
    gate = Gate()
    async with hosted(path, pause=gate) as first:
        run_id = await start(first, "Optimise day 1")
        await gate.reached.wait()
        task_id = (await until(first, run_id, "external_task.progress")).data["task_id"]
        await first.runtime.stop(0)
        gate.open.set()
        while await first.services.jobs.state(task_id) != "done":
            await trio.lowlevel.checkpoint()
    async with hosted(path) as second:
        await until(second, run_id, "run.completed")
        assert "(revision 2)" in await second.trip()


async def test_a_job_of_a_run_that_is_gone_is_dropped() -> None:
    async with hosted(None) as app:
        lost = Job("route-lost", DEMO_TRIP_ID, "run_nowhere", Identity("demo"))
        await app.services.jobs.add(lost)
        await app.services.jobs.add(lost)
        # A job after it shows that the worker has looked.
        await app.say("Optimise day 1")
        while await app.services.jobs.state("route-lost") != "cancelled":
            await trio.lowlevel.checkpoint()
        assert await app.services.jobs.finish(lost) is None
