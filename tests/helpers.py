"""A stage for tests of the whole runtime: a store, a scripted model, a session, virtual time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Unpack, cast

import trio

from rungent import Agent, Event, Identity, Message, Run, Runtime, Session, Tool, ToolCall
from rungent.llm.port import Model, ModelCompleted, ModelRequest
from rungent.options import RuntimeOptions
from rungent.store.memory import MemoryStore
from rungent.store.port import Store
from rungent.testing.clock import virtual_now
from rungent.testing.scripted import Response, ScriptedModel
from tests.grammar import check_log

__all__ = [
    "OWNER",
    "PATIENCE_SECONDS",
    "START",
    "Stage",
    "asking",
    "calls",
    "delays",
    "failed",
    "of",
    "opened",
    "rows",
    "stage",
    "system",
    "texts",
    "types",
]

OWNER = Identity("ada")
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PATIENCE_SECONDS = 1000
"""Virtual seconds after which a test that still waits has failed."""


@dataclass(slots=True)
class Stage:
    """One session of a served runtime."""

    runtime: Runtime
    store: Store
    model: ScriptedModel
    session: Session

    async def start(self, content: str = "hi", **options: Any) -> str:
        """Create a run; returns its id."""
        receipt = await self.runtime.create_run(self.session.id, content, identity=OWNER, **options)
        return receipt.run_id

    async def play(self, content: str = "hi", **options: Any) -> list[Event]:
        """Create a run and return its log, checked, once it has ended."""
        return await self.log(await self.start(content, **options))

    async def log(self, run_id: str) -> list[Event]:
        """The whole log of a run, checked, once it has ended."""
        with trio.fail_after(PATIENCE_SECONDS):
            stream = self.runtime.stream_events(run_id, identity=OWNER, until="terminal")
            events = [event async for event in stream]
        check_log(events)
        return events

    async def so_far(self, run_id: str) -> list[Event]:
        """What is stored of a log now."""
        events = await self.store.list_events(run_id, after=0, limit=500)
        check_log(events, complete=False)
        return events

    async def until(self, run_id: str, kind: str, count: int = 1) -> list[Event]:
        """Wait until the log holds this many events of a type; returns the log so far."""
        seen: list[Event] = []
        with trio.fail_after(PATIENCE_SECONDS):
            async for event in self.runtime.stream_events(run_id, identity=OWNER):
                seen.append(event)
                if len(of(seen, kind)) >= count:
                    return seen
        raise AssertionError(f"the run ended without {count} {kind}: {types(seen)}")

    async def run(self, run_id: str) -> Run:
        """The run as it is stored now."""
        return await self.store.get_run(run_id)

    async def messages(self) -> list[Message]:
        """The session's transcript."""
        return await self.store.list_messages(self.session.id)

    async def answers(self) -> list[dict[str, Any]]:
        """What the model read about its calls: the tool messages of the session."""
        return [json.loads(m.content) for m in await self.messages() if m.role == "tool"]

    async def cancel(self, run_id: str) -> Run:
        """Cancel a run."""
        with trio.fail_after(PATIENCE_SECONDS):
            return await self.runtime.cancel_run(run_id, identity=OWNER)


async def opened(runtime: Runtime, store: Store, model: ScriptedModel, **session: Any) -> Stage:
    """A new session on a runtime."""
    made = await runtime.create_session(identity=OWNER, **session)
    return Stage(runtime, store, model, made)


@asynccontextmanager
async def stage(
    responses: Iterable[object] | ScriptedModel = (),
    *,
    tools: Sequence[Tool[..., Any]] = (),
    agent: Agent | None = None,
    store: Store | None = None,
    model: Model | None = None,
    resource: dict[str, Any] | None = None,
    **options: Unpack[RuntimeOptions],
) -> AsyncIterator[Stage]:
    """A served runtime in virtual time with one session."""
    script = responses
    if not isinstance(script, ScriptedModel):
        script = ScriptedModel(cast("Iterable[Response]", script))
    kept = MemoryStore() if store is None else store
    options.setdefault("now", virtual_now(START))
    runtime = Runtime(
        agents=[agent or Agent("helper", "Help.", tools=tools)],
        model=model or script,
        store=kept,
        **options,
    )
    async with runtime:
        yield await opened(runtime, kept, script, resource=resource)


def calls(*names: str, text: str = "", **arguments: Any) -> ModelCompleted:
    """A reply with calls of these tools, all with the same arguments and without ids."""
    made = tuple(ToolCall(name, dict(arguments)) for name in names)
    return ModelCompleted(text, tool_calls=made)


def asking(*made: ToolCall, text: str = "") -> ModelCompleted:
    """A reply with exactly these calls."""
    return ModelCompleted(text, tool_calls=made)


def types(events: Iterable[Event]) -> list[str]:
    """The types of events."""
    return [event.type for event in events]


def of(events: Iterable[Event], kind: str) -> list[dict[str, Any]]:
    """The payloads of a type."""
    return [event.data for event in events if event.type == kind]


def failed(events: Iterable[Event]) -> str:
    """The code of the run's failure."""
    return str(of(events, "run.failed")[0]["code"])


def system(request: ModelRequest) -> str:
    """The system message of a request."""
    return str(request.messages[0]["content"])


def texts(events: Iterable[Event]) -> list[str]:
    """The deltas of a log."""
    return [data["delta"] for data in of(events, "message.delta")]


def rows(events: Iterable[Event]) -> list[tuple[float, str, str]]:
    """Second since the first event, status and message of each activity row."""
    log = list(events)
    return [
        (
            round((event.created_at - log[0].created_at).total_seconds(), 3),
            event.data["status"],
            event.data["message"],
        )
        for event in log
        if event.type == "activity.updated"
    ]


def delays(events: Iterable[Event]) -> list[float]:
    """The waits before repetitions."""
    return [data["delay_seconds"] for data in of(events, "model.retrying")]
