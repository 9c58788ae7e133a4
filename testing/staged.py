"""A stage for tests: a served runtime in virtual time with one session, over HTTP if wanted.

Source: docs/virtual-time.md.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Unpack

import trio
import trio.testing
from pydantic import JsonValue

from rungent.agent import Agent
from rungent.events import Event
from rungent.identity import Identity
from rungent.llm.port import Model
from rungent.options import RuntimeOptions
from rungent.records import Session
from rungent.runtime import Runtime
from rungent.store import Store
from rungent.testing.asgi import AsgiClient
from rungent.testing.clock import virtual_now
from rungent.testing.scripted import Response, ScriptedModel
from rungent.testing.stores import StoreKind, fresh_store
from rungent.tools.decorator import AnyTool

__all__ = ["START", "USER", "Staged", "staged"]

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
USER = Identity("user")


@dataclass(slots=True)
class Staged:
    """What a test works with. `recorded` holds every event that was committed, in order.

    `client` is there when the stage was asked for `http`; its requests come from the same user.
    """

    runtime: Runtime
    store: Store
    model: Model
    session: Session
    recorded: list[Event] = field(default_factory=list[Event])
    http: AsgiClient | None = None

    @property
    def client(self) -> AsgiClient:
        """The HTTP client. RuntimeError without `http=True`."""
        if self.http is None:
            raise RuntimeError("ask for the stage with http=True")
        return self.http

    async def say(self, text: str = "Hi", **options: Any) -> list[Event]:
        """The events of a new run, until it ends or waits for the user."""
        return await _read(self.runtime.stream_run(self.session.id, text, identity=USER, **options))

    async def answer(self, asked: Sequence[Event], value: JsonValue) -> list[Event]:
        """The events after the answer to the question that `asked` ends with."""
        question = asked[-1]
        if question.type != "interaction.requested":
            raise AssertionError(f"nothing is asked; the last event is {question.type}")
        return await _read(
            self.runtime.stream_response(question.run_id, question.data["id"], value, identity=USER)
        )

    def seconds(self, events: Iterable[Event], kind: str) -> list[float]:
        """When events of a type came, in virtual seconds since the stage was made."""
        return [
            round((event.created_at - START).total_seconds(), 3)
            for event in events
            if event.type == kind
        ]


@asynccontextmanager
async def staged(
    script: Iterable[Response] | Model = (),
    *,
    tools: Sequence[AnyTool] = (),
    agent: Agent | None = None,
    store: Store | StoreKind = "memory",
    http: bool = False,
    keepalive_seconds: float = 15,
    **options: Unpack[RuntimeOptions],
) -> AsyncGenerator[Staged]:
    """A runtime served for the length of the block, under trio's mock clock.

    `script` is what the model says, or a model; `store` is one, or the kind of a fresh one.
    """
    recorded: list[Event] = []
    options.setdefault("now", virtual_now(START))
    options.setdefault("event_listener", recorded.append)
    async with AsyncExitStack() as stack:
        kept = (
            await stack.enter_async_context(fresh_store(store)) if isinstance(store, str) else store
        )
        model = ScriptedModel(script) if isinstance(script, Iterable) else script
        agents = [agent or Agent("helper", "Help.", tools=tools)]
        runtime = Runtime(agents=agents, model=model, store=kept, **options)
        client = _client(runtime, keepalive_seconds) if http else None
        await stack.enter_async_context(client or runtime)
        session = await runtime.create_session(identity=USER)
        yield Staged(runtime, kept, model, session, recorded, client)


def _client(runtime: Runtime, keepalive_seconds: float) -> AsgiClient:
    from rungent.asgi import create_app

    app = create_app(
        runtime, identity_resolver=lambda request: USER, keepalive_seconds=keepalive_seconds
    )
    return AsgiClient(app)


async def _read(stream: AsyncIterator[Event]) -> list[Event]:
    await trio.lowlevel.checkpoint()
    events = [event async for event in stream]
    # The reader may have been faster than whoever tells the listener.
    await trio.testing.wait_all_tasks_blocked()
    return events
