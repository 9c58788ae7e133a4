"""This runtime on the harness of the peers: MemoryStore, and SQLAlchemyStore on SQLite.

    PEERS=FOLDER python bench_rungent.py [VARIANT]

FOLDER holds `harness.py` and `workload.py`. See README.md beside this file for what is counted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, os.environ["PEERS"])

import harness  # type: ignore[import-not-found]  # pyright: ignore[reportMissingImports]
import trio
import workload  # type: ignore[import-not-found]  # pyright: ignore[reportMissingImports]

from rungent import Agent, Identity, Runtime, ToolContext, ToolResult, tool
from rungent.llm import ModelCompleted, ModelRequest, RetryPolicy, TextDelta, ToolCall
from rungent.store import MemoryStore, Store

ME = Identity("u")
work: Any = workload
bench: Any = harness

One = Callable[[], Awaitable[tuple[str, int]]]
Opener = Callable[[Path], AbstractAsyncContextManager[One]]


@tool(effect="read", approval="never")
async def find_order(ctx: ToolContext, order_id: str, limit: int) -> ToolResult:
    """Find an order."""
    return ToolResult(data=await work.find_order(order_id, limit))


@tool(effect="read", approval="never")
async def check_stock(ctx: ToolContext, sku: str, quantity: int) -> ToolResult:
    """Check whether an article is in stock."""
    return ToolResult(data=await work.check_stock(sku, quantity))


@tool(effect="read", approval="never")
async def quote_shipping(ctx: ToolContext, city: str, express: bool) -> ToolResult:
    """Quote the shipping time."""
    return ToolResult(data=await work.quote_shipping(city, express))


class Scripted:
    """Asks for the next tool, or says the sentence in 60 chunks.

    Never suspends, like the models of the other scripts, unless its chunks are `spaced`: then
    other tasks have a turn before each, as they do when chunks come from a network.
    """

    retry_policy = RetryPolicy()

    def __init__(self, *, spaced: bool) -> None:
        self._spaced = spaced

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[AsyncGenerator[TextDelta | ModelCompleted]]:
        """One attempt."""
        done = sum(message["role"] == "tool" for message in request.messages)
        async with aclosing(self._chunks(done)) as chunks:
            yield chunks

    async def _chunks(self, done: int) -> AsyncGenerator[TextDelta | ModelCompleted]:
        call = work.next_step(done)
        if call is not None:
            yield ModelCompleted(tool_calls=(ToolCall(call[0], call[1]),))
            return
        for delta in work.DELTAS:
            if self._spaced:
                await trio.lowlevel.checkpoint()
            yield TextDelta(delta)
        yield ModelCompleted(text=work.SENTENCE)


async def one_run(runtime: Runtime, detached: bool) -> tuple[str, int]:
    """A new conversation with one run: the joined text, and the words that arrived."""
    session = await runtime.create_session(identity=ME)
    if detached:
        receipt = await runtime.create_run(session.id, work.PROMPT, identity=ME)
        events: Any = runtime.stream_events(receipt.run_id, identity=ME)
    else:
        events = runtime.stream_run(session.id, work.PROMPT, identity=ME)
    parts: list[str] = []
    last = ""
    async for event in events:
        last = event.type
        if last == "message.delta":
            parts.append(event.data["delta"])
    if last != "run.completed":
        raise RuntimeError(last)
    return "".join(parts), sum(len(part.split()) for part in parts)


def variant(kind: str, *, detached: bool = False, spaced: bool = False) -> Opener:
    """A runtime over this kind of store, served for as long as it is measured."""

    @asynccontextmanager
    async def opened(folder: Path) -> AsyncGenerator[One]:
        store, tools = await store_of(kind, folder), (find_order, check_stock, quote_shipping)
        agent = Agent(name="bench", instructions=work.INSTRUCTIONS, tools=tools)
        async with Runtime(agents=[agent], model=Scripted(spaced=spaced), store=store) as runtime:
            yield partial(one_run, runtime, detached)

    return opened


async def store_of(kind: str, folder: Path) -> Store:
    """A new store of this kind."""
    await trio.lowlevel.checkpoint()
    if kind == "memory":
        return MemoryStore()
    from sqlalchemy import create_engine
    from sqlalchemy.ext.asyncio import create_async_engine

    from rungent.sqlalchemy import SQLAlchemyStore

    file = f"{folder}/rungent.db"
    if kind == "sqlite":
        store = SQLAlchemyStore(create_engine(f"sqlite:///{file}"))
    else:
        store = SQLAlchemyStore(create_async_engine(f"sqlite+aiosqlite:///{file}"))
    await store.create_schema()
    return store


if __name__ == "__main__":
    of = partial(bench.Variant, backend="trio")
    bench.main(
        "rungent-trio",
        ["rungent-trio", "trio", "sqlalchemy", "aiosqlite", "pydantic"],
        {
            "MemoryStore, create_run": of(variant("memory", detached=True)),
            "MemoryStore, stream_run": of(variant("memory")),
            "SQLAlchemyStore, create_run": of(variant("sqlite", detached=True), durable=True),
            "SQLAlchemyStore, stream_run": of(variant("sqlite"), durable=True),
            "SQLAlchemyStore on aiosqlite, stream_run": of(variant("aiosqlite"), durable=True),
            "MemoryStore, stream_run, spaced chunks": of(variant("memory", spaced=True)),
            "SQLAlchemyStore, stream_run, spaced chunks": of(
                variant("sqlite", spaced=True), durable=True
            ),
        },
    )
