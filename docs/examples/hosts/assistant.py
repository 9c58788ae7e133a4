"""What all hosts of this folder embed: a runtime, and who their users are."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import trio

from rungent import Agent, Identity, Runtime, ToolContext, ToolResult, tool
from rungent.llm import Model, ModelCompleted, ModelRequest, RetryPolicy, TextDelta, ToolCall
from rungent.llm.port import ModelChunk
from rungent.store import MemoryStore

TOKENS = {"secret-of-ada": "ada", "secret-of-bob": "bob"}


def user_of(authorization: str) -> str | None:
    """The user whose token a request carries. Look it up in your database instead."""
    return TOKENS.get(authorization.removeprefix("Bearer "))


@tool(effect="read", approval="never")
async def weather(ctx: ToolContext) -> ToolResult:
    """The weather, from the service that the host put into the dependencies."""
    forecast = ctx.deps.get("forecast")
    return ToolResult(data={"weather": await forecast() if forecast else "unknown"})


class Parrot:
    """Stands for a model: repeats the user's words, and asks for the weather when they do."""

    def __init__(self, seconds_per_word: float = 0.02) -> None:
        self.retry_policy = RetryPolicy()
        self._pause = seconds_per_word

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelChunk]]:
        """One attempt at one reply."""
        last = request.messages[-1]
        chunks = self._chunks(str(last["content"]), asked=last["role"] == "user")
        async with aclosing(chunks):
            yield chunks

    async def _chunks(self, text: str, *, asked: bool) -> AsyncGenerator[ModelChunk]:
        if asked and "weather" in text:
            yield ModelCompleted(tool_calls=(ToolCall("weather", {}),))
            return
        for word in text.split():
            await trio.sleep(self._pause)
            yield TextDelta(f"{word} ")
        yield ModelCompleted(text)


def new_runtime(model: Model | None = None) -> Runtime:
    """The runtime of a host. Use a database and a real model instead."""
    agent = Agent(name="parrot", instructions="Repeat what you hear.", tools=[weather])
    return Runtime(agents=[agent], model=model or Parrot(), store=MemoryStore())


def identity_of(authorization: str) -> Identity | None:
    """The identity of a request; None refuses it."""
    user = user_of(authorization)
    return None if user is None else Identity(user)
