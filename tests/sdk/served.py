"""A process that serves an app for the SDK's own test: `python -m tests.sdk.served DB PORT MODE`.

The user's message says what the model does. In mode `holding` it never finishes a long text, in
mode `finishing` it does.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import trio
from pydantic import JsonValue
from sqlalchemy import create_engine

from rungent import Agent, Identity, Runtime, ToolCall
from rungent.asgi import create_app, serve
from rungent.llm.port import ModelCompleted, ModelFailure, ModelRequest, TextDelta
from rungent.sqlalchemy import SQLAlchemyStore
from rungent.testing.scripted import Delay, Reply, ScriptedModel

CITIES: dict[str, JsonValue] = {
    "kind": "choice",
    "prompt": "Which city?",
    "options": [{"id": "rome", "label": "Rome"}, {"id": "oslo", "label": "Oslo"}],
}


def reply(request: ModelRequest, *, finishing: bool) -> Reply:
    """What the model says to the last message."""
    last: Any = request.messages[-1]
    if last["role"] == "tool":
        return "Noted."
    match last["content"]:
        case "ask":
            return ModelCompleted(tool_calls=(ToolCall("request_input", CITIES),))
        case "fail" if not finishing:
            return ModelFailure("network")
        case "hold" if not finishing:
            return [TextDelta("One moment"), Delay(3600)]
        case _:
            return "Done."


def identify(request: Any) -> Identity | None:
    """Whoever names himself; nobody else."""
    name = request.headers.get("Authorization", "").removeprefix("Bearer ")
    return Identity(name) if name else None


async def main(database: str, port: int, mode: str) -> None:
    """Serve until killed."""
    store = SQLAlchemyStore(create_engine(f"sqlite:///{database}"))
    await store.create_schema()
    play = partial(reply, finishing=mode == "finishing")
    runtime = Runtime(
        agents=[Agent("helper", "Help.")],
        model=ScriptedModel([play] * 100, max_retries=0),
        store=store,
        lease_seconds=1,
        lease_renew_seconds=0.2,
        recovery_interval_seconds=0.2,
    )
    app = create_app(runtime, identity_resolver=identify, url_prefix="/api")
    async with trio.open_nursery() as nursery:
        url = await nursery.start(partial(serve, app, runtime=runtime, port=port))
        print(url, flush=True)


if __name__ == "__main__":
    trio.run(main, sys.argv[1], int(sys.argv[2]), sys.argv[3])
