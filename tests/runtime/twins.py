"""Two runtimes over one store: what stands for two processes."""

from __future__ import annotations

from typing import Any

import trio

from rungent import Agent, Runtime
from rungent.llm.port import Heartbeat
from rungent.store.port import Store
from rungent.testing.scripted import Delay, Part, Response, ScriptedModel

__all__ = ["never", "runtime_over", "serve_in"]


def never() -> list[Part]:
    """An attempt that does not end by itself."""
    return [Heartbeat(), Delay(10**9)]


def runtime_over(store: Store, responses: list[Response], agent: Agent, **options: Any) -> Runtime:
    """A runtime of its own over a store."""
    return Runtime(agents=[agent], model=ScriptedModel(responses), store=store, **options)


async def serve_in(nursery: trio.Nursery, runtime: Runtime) -> trio.CancelScope:
    """Serve a runtime; cancelling the returned scope is the loss of its process."""
    scope = trio.CancelScope()

    async def serve(*, task_status: trio.TaskStatus[None]) -> None:
        with scope:
            await runtime.serve(task_status=task_status)

    await nursery.start(serve)
    return scope
