"""How cost grows: with the messages of a session, the writes of a run and the events of a run."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import trio

from rungent import Event, Runtime
from rungent.llm import ModelCompleted, ModelRequest, TextDelta, ToolCall
from rungent.llm.outgoing import request_body
from rungent.records import RunStatus, Session
from rungent.store import Store
from rungent.store.port import Commit
from rungent.testing.store_contract_changes import taken_by
from rungent.testing.store_samples import (
    OWNER,
    at,
    create_running,
    creation_of,
    ended,
    message_of,
    step,
    task_of,
)
from tests.benchmarks.append import FILES, empty_store
from tests.benchmarks.figures import Column, Sheet, Value
from tests.benchmarks.workload import AGENT, TOOLS, USER, InstantModel, sqlite_sync
from tests.persistence.postgres import FAST, run_server

MESSAGE = "What is the weather like there, and how long would the train take? " * 2
CALLS_A_TURN = 8


@dataclass(frozen=True)
class Size:
    """What is compared with what, messages, turns with eight writes, events; and how often."""

    messages: tuple[int, int] = (20, 2_000)
    turns: int = 120
    events: tuple[int, int] = (100, 20_000)
    repeats: int = 9
    tries: int = 49
    servers: Sequence[str] = ("psycopg", "asyncpg")


FULL = Size()
TINY = Size(messages=(2, 4), turns=4, events=(2, 4), repeats=1, tries=1, servers=())


async def measure(size: Size = FULL) -> list[Sheet]:
    """Session, writes, log."""
    sheets = [await _sessions(size), await _writes(size)]
    if not size.servers:
        return [*sheets, await _logs(FILES, "", size)]
    with run_server(FAST) as server:
        return [*sheets, await _logs((*FILES, *size.servers), server.url, size)]


def _compared(
    title: str, headings: tuple[str, str], found: Mapping[str, list[float]], note: str
) -> Sheet:
    columns = (Column("cost"), *(Column(name, 2) for name in headings), Column("ratio", 2))
    rows: list[list[Value]] = [[name, few, many, many / few] for name, (few, many) in found.items()]
    return Sheet(title, columns, rows, note)


# --- a long session ----------------------------------------------------------------------------


class WatchedModel(InstantModel):
    """Notes when each request came and how large it was; waits for ever when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.hangs = False
        self.asked: list[float] = []
        self.last: ModelRequest | None = None

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[AsyncGenerator[TextDelta | ModelCompleted]]:
        """One attempt."""
        self.asked.append(time.perf_counter())
        self.last = request
        if self.hangs:
            await trio.sleep_forever()
        async with super().stream(request) as chunks:
            yield chunks


async def _sessions(size: Size) -> Sheet:
    found: dict[str, list[float]] = {}
    for length in size.messages:
        measured = [await _in_session(length) for _ in range(size.repeats)]
        for name in measured[0]:
            found.setdefault(name, []).append(statistics.median(one[name] for one in measured))
    title = f"A session of {size.messages[0]} and of {size.messages[1]:,} messages, SQLite"
    note = "The request grows with the transcript; its body is made by the adapter of the provider."
    return _compared(title, (f"{size.messages[0]}", f"{size.messages[1]:,}"), found, note)


async def _in_session(length: int) -> dict[str, float]:
    model, told = WatchedModel(), list[tuple[str, float]]()

    def listen(event: Event) -> None:
        told.append((event.type, time.perf_counter()))

    async with sqlite_sync() as store:
        runtime = Runtime(agents=[AGENT], model=model, store=store, event_listener=listen)
        async with runtime:
            session = await runtime.create_session(identity=USER)
            await _fill(store, session, length)
            began = time.perf_counter()
            async for _ in runtime.stream_run(session.id, "Measure this.", identity=USER):
                pass
            took = time.perf_counter() - began
            asked, events, model.hangs = list(model.asked), list(told), True
            cancel = await _cancelled(runtime, session, model)
    assert model.last is not None
    body_began = time.perf_counter()
    body = request_body(model.last, model="m", tool_choice="auto", extra_body={})
    body_took = time.perf_counter() - body_began
    started = [moment for kind, moment in events if kind == "tool.started"]
    completed = [moment for kind, moment in events if kind == "tool.completed"]
    steps = [moment for kind, moment in events if kind == "model.started"]
    writes = [end - begin for begin, end in zip(started[1:], completed[1:], strict=True)]
    return {
        "opening, to the first request, ms": (asked[0] - began) * 1000,
        "prompt assembly, ms": _middle(
            abs(request - step) for step, request in zip(steps[1:], asked[1:], strict=True)
        ),
        "step and call, request to request, ms": _middle(
            later - sooner for sooner, later in pairwise(asked)
        ),
        "a write call, ms": _middle(writes),
        "a cancel, ms": cancel * 1000,
        "the whole run, ms": took * 1000,
        "body of the last request, ms": body_took * 1000,
        "body of the last request, KiB": len(body) / 1024,
    }


def _middle(seconds: Iterable[float]) -> float:
    return statistics.median(seconds) * 1000


async def _fill(store: Store, session: Session, length: int) -> None:
    """Earlier exchanges, as an ended run left them."""
    stored = (await store.create_run(creation_of(session, agent_name=AGENT.name))).run
    roles = ("assistant", "user")
    commit = ended(stored)
    messages = tuple(
        message_of(stored, MESSAGE, role=roles[number % 2]) for number in range(length - 1)
    )
    await store.commit(replace(commit, messages=messages), owner=OWNER, token=1)


async def _cancelled(runtime: Runtime, session: Session, model: WatchedModel) -> float:
    before = len(model.asked)
    receipt = await runtime.create_run(session.id, "Wait.", identity=USER)
    while len(model.asked) == before:
        await trio.lowlevel.checkpoint()
    began = time.perf_counter()
    await runtime.cancel_run(receipt.run_id, identity=USER)
    return time.perf_counter() - began


# --- many writes -------------------------------------------------------------------------------


class WritingModel(WatchedModel):
    """Asks for eight different writes in each turn, for so many turns."""

    def __init__(self, turns: int) -> None:
        super().__init__()
        self._turns = turns

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[AsyncGenerator[TextDelta | ModelCompleted]]:
        """One attempt."""
        self.asked.append(time.perf_counter())
        chunks = self._ask(len(self.asked))
        try:
            yield chunks
        finally:
            await chunks.aclose()

    async def _ask(self, turn: int) -> AsyncGenerator[TextDelta | ModelCompleted]:
        await trio.lowlevel.checkpoint()
        if turn > self._turns:
            yield ModelCompleted(text="Done.")
            return
        first = turn * CALLS_A_TURN
        calls = [
            ToolCall(TOOLS[1], {"city": "Kyoto", "days": first + number})
            for number in range(CALLS_A_TURN)
        ]
        yield ModelCompleted(tool_calls=tuple(calls))


async def _writes(size: Size) -> Sheet:
    model = WritingModel(size.turns)
    async with sqlite_sync() as store:
        runtime = Runtime(agents=[AGENT], model=model, store=store, max_model_steps=size.turns + 1)
        async with runtime:
            session = await runtime.create_session(identity=USER)
            async for _ in runtime.stream_run(session.id, "Write.", identity=USER):
                pass
    turns = [later - sooner for sooner, later in pairwise(model.asked)]
    some = max(1, size.turns // 6)
    each = [statistics.median(part) * 1000 / CALLS_A_TURN for part in (turns[:some], turns[-some:])]
    title = f"{size.turns * CALLS_A_TURN:,} different writes in one run, SQLite"
    note = (
        f"Medians of the first and last {some} turns. A turn checks {CALLS_A_TURN} calls against "
        "all earlier ones, performs them, and makes the next request, which holds them all."
    )
    return _compared(
        title, ("first", "last"), {"a write with its share of the step, ms": each}, note
    )


# --- a long log --------------------------------------------------------------------------------


async def _logs(kinds: Sequence[str], postgres: str, size: Size) -> Sheet:
    found: dict[str, list[float]] = {}
    for kind in kinds:
        for name, both in (await _side_by_side(kind, postgres, size)).items():
            found[f"{kind}: {name}"] = [statistics.median(times) for times in both]
    few, many = size.events
    title = f"ms at {few} and at {many:,} events of the run; medians of {size.tries}"
    return _compared(title, (f"{few}", f"{many:,}"), found, "The runs take turns.")


async def _side_by_side(
    kind: str, postgres: str, size: Size
) -> dict[str, tuple[list[float], list[float]]]:
    """How long each operation took on the run with few and on the one with many events."""
    with tempfile.TemporaryDirectory() as folder:
        async with empty_store(kind, postgres, Path(folder)) as store:
            runs = [_operations(store, await _logged(store, events)) for events in size.events]
            took: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in runs[0]}
            for _ in range(size.tries):
                for name, both in took.items():
                    for times, operations in zip(both, runs, strict=True):
                        times.append(await operations[name]())
            return took


async def _logged(store: Store, events: int) -> str:
    """A run with this many events."""
    run = await create_running(store)
    begin = replace(step(run, events=events), tasks=(task_of(run),))
    await store.commit(begin, owner=OWNER, token=1)
    return run.id


def _operations(store: Store, run_id: str) -> dict[str, Callable[[], Awaitable[float]]]:
    def still_running(found: Any) -> Commit:
        # Kept running, so that it can be done again.
        return step(found, status=RunStatus.RUNNING)

    async def commit(run: Any) -> None:
        await store.commit(step(run), owner=OWNER, token=run.fencing_token)

    async def claim(run: Any) -> None:
        await store.release_lease(run.id, OWNER, run.fencing_token)
        await store.claim_run(run.id, OWNER, at(0), taken_by(OWNER))

    async def cancel(run: Any) -> None:
        await store.cancel_run(run.id, still_running)

    async def progress(run: Any) -> None:
        await store.report_task(run.id, "job-1", lambda found, _: step(found))

    async def read(run: Any) -> None:
        await store.list_events(run.id, after=run.event_seq - 100, limit=100)

    async def on_current(operation: Callable[[Any], Awaitable[None]]) -> float:
        run = await store.get_run(run_id)
        began = time.perf_counter()
        await operation(run)
        return (time.perf_counter() - began) * 1000

    operations = {
        "commit": commit,
        "release and claim": claim,
        "cancel": cancel,
        "progress": progress,
        "last page of 100": read,
    }
    return {name: partial(on_current, chosen) for name, chosen in operations.items()}
