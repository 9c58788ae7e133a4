"""The measured run: three tools, one after another, then sixty words streamed one by one."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import trio
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import sessionmaker

from rungent import Agent, Identity, Runtime, ToolContext, ToolResult, tool
from rungent.llm import ModelCompleted, ModelRequest, RetryPolicy, TextDelta, ToolCall
from rungent.sqlalchemy import SQLAlchemyStore
from rungent.store import MemoryStore, Store

WORDS = 60
TOOLS = ("first", "second", "third")
STEPS = len(TOOLS) + 1
USER = Identity("benchmark")


@tool(effect="read", approval="never")
async def first(ctx: ToolContext, city: str, days: int) -> ToolResult:
    """Look something up."""
    return ToolResult(data={"city": city, "days": days}, message="Looked up")


@tool(effect="write", approval="never")
async def second(ctx: ToolContext, city: str, days: int) -> ToolResult:
    """Change something."""
    return ToolResult(data={"changed": True}, message="Changed")


@tool(effect="write", approval="never")
async def third(ctx: ToolContext, city: str, days: int) -> ToolResult:
    """Change something else."""
    return ToolResult(data={"changed": True}, message="Changed")


AGENT = Agent(name="bench", instructions="You are measured.", tools=[first, second, third])


class InstantModel:
    """Replies at once: the loop is measured, not a provider."""

    retry_policy = RetryPolicy()

    def __init__(self, words: int = WORDS) -> None:
        self._words = words

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[AsyncGenerator[TextDelta | ModelCompleted]]:
        """One attempt: the tool whose turn it is, or the words."""
        done = 0
        for message in reversed(request.messages):
            if message["role"] == "user":
                break
            done += message["role"] == "tool"
        chunks = self._call(done) if done < len(TOOLS) else self._speak()
        try:
            yield chunks
        finally:
            await chunks.aclose()

    async def _call(self, index: int) -> AsyncGenerator[TextDelta | ModelCompleted]:
        await trio.lowlevel.checkpoint()
        call = ToolCall(TOOLS[index], {"city": "Kyoto", "days": index})
        yield ModelCompleted(tool_calls=(call,))

    async def _speak(self) -> AsyncGenerator[TextDelta | ModelCompleted]:
        for number in range(self._words):
            await trio.lowlevel.checkpoint()
            yield TextDelta(f"word{number} ")
        yield ModelCompleted(text="".join(f"word{number} " for number in range(self._words)))


@asynccontextmanager
async def memory() -> AsyncGenerator[Store]:
    """Nothing is kept."""
    await trio.lowlevel.checkpoint()
    yield MemoryStore()


@asynccontextmanager
async def sqlite_sync() -> AsyncGenerator[Store]:
    """A file, through the synchronous driver in a worker thread."""
    with tempfile.TemporaryDirectory() as folder:
        engine = create_engine(f"sqlite:///{Path(folder) / 'bench.db'}")
        store = SQLAlchemyStore(sessionmaker(engine))
        await store.create_schema()
        yield store


@asynccontextmanager
async def sqlite_aiosqlite() -> AsyncGenerator[Store]:
    """A file, through aiosqlite on the store's own loop."""
    with tempfile.TemporaryDirectory() as folder:
        engine = create_async_engine(f"sqlite+aiosqlite:///{Path(folder) / 'bench.db'}")
        store = SQLAlchemyStore(async_sessionmaker(engine, expire_on_commit=False))
        await store.create_schema()
        yield store


STORES: Mapping[str, Callable[[], AbstractAsyncContextManager[Store]]] = {
    "memory": memory,
    "sqlite sync": sqlite_sync,
    "sqlite aiosqlite": sqlite_aiosqlite,
}


async def one_run(runtime: Runtime) -> int:
    """A new conversation with one run, followed to its end; returns the number of deltas."""
    session = await runtime.create_session(identity=USER)
    deltas, last = 0, ""
    async for event in runtime.stream_run(session.id, "Measure this.", identity=USER):
        deltas += event.type == "message.delta"
        last = event.type
    if last != "run.completed":
        raise RuntimeError(f"the run ended with {last}")
    return deltas
