"""Memory of a worker: per run that waits for its model, per follower, per paused run."""

from __future__ import annotations

import gc
import json
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import trio
from pydantic import JsonValue
from sqlalchemy import create_engine

from rungent import Agent, Event, Runtime
from rungent.llm import ModelCompleted, ModelRequest, RetryPolicy, TextDelta, ToolCall
from rungent.sqlalchemy import SQLAlchemyStore
from tests.benchmarks.figures import Column, Sheet
from tests.benchmarks.processes import child, resident_kib
from tests.benchmarks.workload import USER

KINDS = {
    "a run inside a model step": "model",
    "a follower of one idle run": "follower",
    "a run that waits for an answer": "parked",
}


@dataclass(frozen=True)
class Size:
    """How many of each kind, and how many before as a warm-up."""

    count: int = 2_000
    warm_up: int = 100


FULL = Size()
TINY = Size(count=2, warm_up=1)


AGENT = Agent(name="bench", instructions="You are measured.")


class PausingModel:
    """Asks the user when it is told to park, else never answers."""

    retry_policy = RetryPolicy()

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[AsyncGenerator[TextDelta | ModelCompleted]]:
        """One attempt."""
        chunks = self._chunks("parked" in str(request.messages[-1]))
        try:
            yield chunks
        finally:
            await chunks.aclose()

    async def _chunks(self, asks: bool) -> AsyncGenerator[TextDelta | ModelCompleted]:
        await trio.lowlevel.checkpoint()
        if not asks:
            await trio.sleep_forever()
        question: dict[str, JsonValue] = {"kind": "text", "prompt": "Which day?"}
        yield ModelCompleted(tool_calls=(ToolCall("request_input", question),))


async def measure(size: Size = FULL) -> list[Sheet]:
    """Each kind in a process of its own; the growth after a warm-up."""
    rows: list[list[str | float]] = []
    for name, kind in KINDS.items():
        async with child(__name__, kind, str(size.warm_up), str(size.count)) as worker:
            before, after = json.loads(await worker.line())
        rows.append([name, (after - before) / size.count, before / 1024])
    columns = (Column("what"), Column("KiB each", 1), Column("MB of the worker before", 0))
    title = f"Resident memory of one worker with {size.count:,} of each, SQLite"
    return [Sheet(title, columns, rows)]


async def main(kind: str, warm_up: int, count: int) -> None:
    """Make so many, and print the memory before and after."""
    reached, wanted = set[str](), {"parked": "interaction.requested"}.get(kind, "model.started")

    def listen(event: Event) -> None:
        if event.type == wanted:
            reached.add(event.run_id)

    with tempfile.TemporaryDirectory() as folder:
        store = SQLAlchemyStore(create_engine(f"sqlite:///{Path(folder) / 'memory.db'}"))
        await store.create_schema()
        runtime = Runtime(
            agents=[AGENT],
            model=PausingModel(),
            store=store,
            event_listener=listen,
            model_wait_progress_after_seconds=86_400,
        )
        async with runtime, trio.open_nursery() as nursery:
            hold = _Holder(runtime, nursery, kind, reached)
            await hold.grow(warm_up)
            before = _settled_kib()
            await hold.grow(count)
            print(json.dumps([before, _settled_kib()]), flush=True)
            nursery.cancel_scope.cancel()


class _Holder:
    """Makes runs or followers and waits until they are idle."""

    def __init__(
        self, runtime: Runtime, nursery: trio.Nursery, kind: str, reached: set[str]
    ) -> None:
        self._runtime, self._nursery, self._kind = runtime, nursery, kind
        self._reached, self._followed, self._following = reached, "", 0

    async def grow(self, count: int) -> None:
        """So many more."""
        if self._kind != "follower":
            goal = len(self._reached) + count
            for _ in range(count):
                await self._run()
        elif not self._followed:
            goal, self._followed = 1, await self._run()
        else:
            goal = 1
        while len(self._reached) < goal:  # noqa: ASYNC110
            await trio.sleep(0.01)
        if self._kind == "follower":
            following = self._following + count
            for _ in range(count):
                self._nursery.start_soon(self._follow)
            while self._following < following:  # noqa: ASYNC110
                await trio.sleep(0.01)
        await trio.sleep(0.2)

    async def _run(self) -> str:
        session = await self._runtime.create_session(identity=USER)
        receipt = await self._runtime.create_run(session.id, self._kind, identity=USER)
        return receipt.run_id

    async def _follow(self) -> None:
        async for event in self._runtime.stream_events(self._followed, identity=USER):
            self._following += event.type == "model.started"


def _settled_kib() -> int:
    gc.collect()
    return resident_kib()


if __name__ == "__main__":
    trio.run(main, sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
