"""COMMIT breaks: every write learns what became of it, whether it was stored or not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import trio
from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import OperationalError
from trio.testing import MockClock

from rungent.errors import NotFound
from rungent.persistence import SQLAlchemyStore
from rungent.records import Lease, Run, RunStatus, Session
from rungent.testing.clock import HoldAutojump
from rungent.testing.store_contract_changes import taken_by
from rungent.testing.store_samples import (
    OTHER,
    OWNER,
    at,
    create_running,
    creation_of,
    ended,
    interaction_of,
    session_of,
    step,
    task_of,
)
from tests.persistence.stores import make_engine, opened, postgres_for


class Breaker:
    """Breaks the next COMMIT of an engine, before or after it takes effect."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._mode: str | None = None
        self._refusals = 0
        self.refused: list[float] = []
        self.broken = trio.Event()
        event.listen(engine, "commit", self._commit)
        event.listen(engine, "checkout", self._checkout)

    def break_next(self, mode: str, refusals: int = 0) -> None:
        """`refusals` times after that there is no connection."""
        self._mode, self._refusals = mode, refusals

    @property
    def broke(self) -> bool:
        return self._mode is None

    def _commit(self, connection: Connection) -> None:
        mode, self._mode = self._mode, None
        if mode == "stored":
            connection.connection.commit()
        if mode is not None:
            self.broken.set()
            raise OperationalError("COMMIT", {}, OSError("connection lost"))

    def _checkout(self, *_: object) -> None:
        if self._mode is None and self._refusals:
            self._refusals -= 1
            self.refused.append(trio.current_time())
            # Unlike OSError this is not tried again on another connection.
            raise RuntimeError("no connection")


@dataclass
class Scene:
    store: SQLAlchemyStore
    breaker: Breaker
    session: Session
    run: Run
    free: Run
    waiting: Run


@pytest.fixture(params=["inline", "psycopg"])
async def scene(
    request: pytest.FixtureRequest, tmp_path: Path, autojump_clock: MockClock
) -> AsyncIterator[Scene]:
    kind: str = request.param
    engine = make_engine(kind, tmp_path, postgres_for(kind, request))
    assert isinstance(engine, Engine)
    hold = HoldAutojump(autojump_clock)
    async with opened(SQLAlchemyStore(engine, inline=True, hold=hold)) as store:
        session = session_of()
        await store.create_session(session)
        waiting = await create_running(store)
        parked = replace(
            ended(waiting, RunStatus.WAITING_INPUT),
            interactions=(interaction_of(waiting, id="int_1"),),
            tasks=(task_of(waiting),),
        )
        await store.commit(parked, owner=OWNER, token=1)
        yield Scene(
            store,
            Breaker(engine),
            session,
            await create_running(store),
            await create_running(store, lease=None),
            parked.run,
        )


async def create_session(s: Scene) -> bool:
    session = session_of(id="ses_new")
    await s.store.create_session(session)
    return await s.store.get_session(session.id) == session


async def set_title(s: Scene) -> bool:
    titled = await s.store.set_title(s.session.id, "New", at(9))
    return titled == await s.store.get_session(s.session.id)


async def create_run(s: Scene) -> bool:
    created = await s.store.create_run(creation_of(s.session, id="run_new"))
    return not created.replayed and await s.store.get_run("run_new") == created.run


async def claim_run(s: Scene) -> bool:
    claimed = await s.store.claim_run(s.free.id, OTHER, at(1), taken_by(OTHER))
    return claimed == await s.store.get_run(s.free.id)


async def answer(s: Scene) -> bool:
    resumed = await s.store.resolve_interaction(
        s.waiting.id, "int_1", lambda run, _: taken_by(OTHER)(run)
    )
    return resumed == await s.store.get_run(s.waiting.id)


async def complete_task(s: Scene) -> bool:
    resumed = await s.store.complete_task(
        s.waiting.id, "job-1", lambda run, _: taken_by(OTHER)(run)
    )
    return resumed == await s.store.get_run(s.waiting.id)


async def cancel_run(s: Scene) -> bool:
    cancelled = await s.store.cancel_run(s.run.id, lambda r: ended(r, RunStatus.CANCELLED))
    return cancelled == await s.store.get_run(s.run.id)


async def cancel_silently(s: Scene) -> bool:
    """A transition without an event: the row itself is the proof."""
    cancelled = await s.store.cancel_run(
        s.run.id, lambda r: step(r, events=0, status=RunStatus.CANCELLED, lease=None)
    )
    return cancelled == await s.store.get_run(s.run.id)


async def release(s: Scene) -> bool:
    released = await s.store.release_lease(s.run.id, OWNER, 1)
    return released and (await s.store.get_run(s.run.id)).lease is None


async def renew(s: Scene) -> bool:
    kept = await s.store.renew_lease({s.run.id: 1}, OWNER, at(77))
    lease = (await s.store.get_run(s.run.id)).lease
    return kept == {s.run.id} and lease == Lease(owner=OWNER, expires_at=at(77))


async def commit(s: Scene) -> bool:
    made = step(s.run)
    await s.store.commit(made, owner=OWNER, token=1)
    events = await s.store.list_events(s.run.id, after=0, limit=9)
    return await s.store.get_run(s.run.id) == made.run and events == list(made.events)


Write = Callable[[Scene], Awaitable[bool]]
ONCE: list[Write] = [
    create_run,
    claim_run,
    answer,
    complete_task,
    cancel_run,
    cancel_silently,
    release,
]
AGAIN: list[Write] = [create_session, set_title, renew, commit]
"""These can be made once more without harm, and are."""


@pytest.mark.parametrize("write", ONCE + AGAIN)
@pytest.mark.parametrize("refusals", [0, 3])
async def test_a_write_that_was_stored_although_its_commit_broke_succeeds(
    scene: Scene, write: Write, refusals: int, autojump_clock: MockClock
) -> None:
    """Also when the database then stays away for a while; the pauses grow."""
    scene.breaker.break_next("stored", refusals)
    began = trio.current_time()
    assert await write(scene)
    assert scene.breaker.broke
    assert len(scene.breaker.refused) == refusals
    if refusals and write is not commit:
        times = [moment - began for moment in scene.breaker.refused]
        assert times == pytest.approx([0.05, 0.15, 0.35])


@pytest.mark.parametrize("write", ONCE)
@pytest.mark.parametrize("refusals", [0, 3])
async def test_a_write_whose_commit_broke_and_that_was_not_stored_raises(
    scene: Scene, write: Write, refusals: int, autojump_clock: MockClock
) -> None:
    scene.breaker.break_next("lost", refusals)
    with pytest.raises(OperationalError, match="connection lost"):
        await write(scene)
    with pytest.raises(NotFound):
        await scene.store.get_run("run_new")
    for run in (scene.run, scene.free, scene.waiting):
        assert await scene.store.get_run(run.id) == run
    assert await write(scene)


@pytest.mark.parametrize("write", AGAIN)
@pytest.mark.parametrize("refusals", [0, 3])
async def test_a_write_that_may_be_repeated_is_when_its_commit_broke(
    scene: Scene, write: Write, refusals: int, autojump_clock: MockClock
) -> None:
    scene.breaker.break_next("lost", refusals)
    assert await write(scene)


async def test_a_cancelled_caller_does_not_wait_for_a_database_that_stays_away(
    scene: Scene, autojump_clock: MockClock
) -> None:
    scene.breaker.break_next("stored", refusals=1_000_000)
    began = trio.current_time()
    with trio.move_on_after(20) as scope:
        await cancel_run(scene)
    assert scope.cancelled_caught
    assert trio.current_time() - began == pytest.approx(20)
    assert len(scene.breaker.refused) < 30


async def test_a_stored_commit_is_recognised_after_others_came_on_top(
    scene: Scene, autojump_clock: MockClock
) -> None:
    """The worker that takes over before the verdict is in does not make it untrue."""
    made = step(scene.run)
    scene.breaker.break_next("stored")

    async def take_over() -> None:
        await scene.breaker.broken.wait()
        await scene.store.cancel_run(scene.run.id, lambda r: ended(r, RunStatus.CANCELLED))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take_over)
        assert await scene.store.cancel_run(scene.run.id, lambda _: made) == made.run
    stored = await scene.store.get_run(scene.run.id)
    assert (stored.status, stored.version) == (RunStatus.CANCELLED, 3)


@pytest.mark.parametrize("scene", ["psycopg"], indirect=True)
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_an_append_whose_connection_broke_is_stored_once(
    scene: Scene, moment: str, autojump_clock: MockClock
) -> None:
    """It is one statement without a COMMIT: it may have taken effect, or may not."""
    broke: list[str] = []

    def break_once(*arguments: object) -> None:
        statement = str(arguments[2])
        if not broke:
            broke.append(statement)
            raise OperationalError(statement, {}, OSError(), connection_invalidated=True)

    event.listen(scene.breaker.engine, f"{moment}_cursor_execute", break_once)
    assert await commit(scene)
    assert "pg_notify" in broke[0]
