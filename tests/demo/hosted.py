"""The whole application in one process: services, store, runtime, worker, offline model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio

from rungent import Event, Runtime
from rungent.demo.app import LOCAL_IDENTITY, build_runtime
from rungent.demo.database import open_database
from rungent.demo.seed import DEMO_TRIP_ID
from rungent.demo.services import Services
from rungent.demo.worker import Pause, RouteWorker
from tests.demo.offline import offline_model

Log = list[Event]


@dataclass(frozen=True, slots=True)
class Hosted:
    """A served runtime, spoken to as a client in the same process would."""

    runtime: Runtime
    services: Services

    async def say(self, text: str) -> Log:
        """The events of a run in a new session, until it pauses for the user or ends."""
        session = await self.runtime.create_session(identity=LOCAL_IDENTITY)
        stream = self.runtime.stream_run(session.id, text, identity=LOCAL_IDENTITY)
        return [event async for event in stream]

    async def answer(self, log: Log, value: Any) -> Log:
        """The events after the answer to the question that ends `log`."""
        asked = log[-1]
        assert asked.type == "interaction.requested", types(log)
        stream = self.runtime.stream_response(
            asked.run_id, asked.data["id"], value, identity=LOCAL_IDENTITY
        )
        return [event async for event in stream]

    async def trip(self) -> str:
        """The trip as text."""
        return await self.services.trips.snapshot(DEMO_TRIP_ID)


@asynccontextmanager
async def hosted(
    path: Path | None, *, pause: Pause = trio.lowlevel.checkpoint, working: bool = True
) -> AsyncIterator[Hosted]:
    """Everything for the length of the block; a MemoryStore for None. `working`: with worker."""
    with trio.fail_after(300):
        async with open_database(path) as (store, services), offline_model() as model:
            runtime = build_runtime(store, model, services)
            worker = RouteWorker(runtime, services.trips, services.jobs, pause=pause)
            async with runtime, trio.open_nursery() as nursery:
                if working:
                    nursery.start_soon(worker.run)
                yield Hosted(runtime, services)
                nursery.cancel_scope.cancel()


def types(log: Sequence[Event]) -> list[str]:
    """Event types in order, deltas joined: how many there are is a matter of speed."""
    kinds = [event.type for event in log]
    return [kind for i, kind in enumerate(kinds) if kind != "message.delta" or kinds[i - 1] != kind]


def tools(log: Sequence[Event]) -> list[str]:
    """The tools that were executed, in order."""
    return [event.data["name"] for event in log if event.type == "tool.started"]


def said(log: Sequence[Event]) -> str:
    """The final answer of a completed run."""
    assert log[-1].type == "run.completed", (log[-1].type, log[-1].data)
    return str(log[-2].data["content"])
