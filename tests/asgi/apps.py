"""What the tests of the HTTP adapter share: a served application and users who talk to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import trio
from quart import Request

from rungent import Agent, Identity, Runtime, Unauthenticated
from rungent.asgi import create_app
from rungent.llm import Model, ModelCompleted, ModelRequest, RetryPolicy, TextDelta
from rungent.llm.port import ModelChunk
from rungent.store import MemoryStore
from rungent.testing import ScriptedModel
from rungent.testing.asgi import AsgiApp, AsgiClient, AsgiResponse
from rungent.testing.scripted import Response

ADA = {"x-user": "ada"}
BOB = {"x-user": "bob"}


def identify(request: Request) -> Identity | None:
    """Whoever the header names."""
    user = request.headers.get("x-user")
    if user == "refused":
        raise Unauthenticated("canary", www_authenticate='Bearer realm="trips"')
    if user == "forbidden":
        raise PermissionError("canary")
    return None if user is None else Identity(user)


class GatedModel:
    """Says "a", waits for its gate, then says "b" and ends."""

    def __init__(self) -> None:
        self.retry_policy = RetryPolicy()
        self.gate = trio.Event()
        self.asked = trio.Event()

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelChunk]]:
        del request
        async with aclosing(self._chunks()) as chunks:
            yield chunks

    async def _chunks(self) -> AsyncGenerator[ModelChunk]:
        yield TextDelta("a")
        self.asked.set()
        await self.gate.wait()
        yield TextDelta("b")
        yield ModelCompleted("ab")


def runtime_with(model: Model, **options: Any) -> Runtime:
    agents = [Agent(name="planner", instructions="Plan."), Agent(name="other", instructions="-")]
    options.setdefault("agents", agents)
    options.setdefault("store", MemoryStore())
    return Runtime(model=model, **options)


def app_of(runtime: Runtime, **options: Any) -> AsgiApp:
    options.setdefault("identity_resolver", identify)
    return create_app(runtime, **options)


@dataclass(frozen=True, slots=True)
class World:
    """A served application, its runtime, and Ada's client."""

    client: AsgiClient
    runtime: Runtime

    async def session(self, **body: Any) -> str:
        answer = await self.client.request("POST", "/sessions", json=body)
        assert answer.status == 200, answer.body
        return str(answer.json()["id"])

    async def run(self, session_id: str, text: str = "Hi", **options: Any) -> AsgiResponse:
        path = f"/sessions/{session_id}/runs"
        return await self.client.request("POST", path, json={"input": text}, **options)

    async def started(self, text: str = "Hi") -> str:
        """A new run in a new session."""
        answer = await self.run(await self.session(), text)
        assert answer.status == 202, answer.body
        return str(answer.json()["run_id"])

    async def ended(self, run_id: str) -> None:
        """Wait until nothing more comes."""
        async for _ in self.runtime.stream_events(run_id, identity=Identity("ada")):
            pass


@asynccontextmanager
async def world(
    model: Model | Iterable[Response] = (),
    *,
    runtime_options: dict[str, Any] | None = None,
    **app_options: Any,
) -> AsyncGenerator[World]:
    """The application around a model or a script, used by Ada."""
    scripted = ScriptedModel(model) if isinstance(model, Iterable) else model
    runtime = runtime_with(scripted, **(runtime_options or {}))
    async with AsgiClient(app_of(runtime, **app_options), headers=ADA) as client:
        yield World(client, runtime)


def detail(answer: AsgiResponse) -> dict[str, Any]:
    """The error that an answer holds, and nothing beside it."""
    body = answer.json()
    assert list(body) == ["detail"]
    return dict(body["detail"])
