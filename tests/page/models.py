"""Models for what the offline planner does not do: every kind of question, and failures."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

import httpx
import trio
from hypercorn.config import Config
from hypercorn.trio import serve  # pyright: ignore[reportUnknownVariableType]
from pydantic import JsonValue
from quart import Response

from rungent import ToolCall
from rungent.demo.offline_model import OFFLINE_MODEL, create_offline_app
from rungent.llm import Model, OpenAICompatibleModel
from rungent.llm.port import ModelCompleted, ModelRequest
from rungent.testing import ScriptedModel
from rungent.testing.scripted import Reply
from tests.page.served import OpenModel, Valve

__all__ = ["DATA_QUESTIONS", "MARKDOWN", "QUESTIONS", "Faults", "asking", "faulty"]

_OPTIONS: list[JsonValue] = [
    {"id": "shibuya", "label": "Shibuya", "description": "around the crossing"},
    {"id": "asakusa", "label": "Asakusa", "recommended": True},
    {"id": "ueno", "label": "Ueno"},
]

QUESTIONS: dict[str, dict[str, JsonValue]] = {
    "ask for a text": {"kind": "text", "prompt": "What shall the trip be called?"},
    "ask for one": {"kind": "choice", "prompt": "Which quarter?", "options": _OPTIONS},
    "ask for one of your own": {
        "kind": "choice",
        "prompt": "Which quarter?",
        "options": _OPTIONS,
        "allow_custom": True,
    },
    "ask for several": {
        "kind": "choice",
        "prompt": "Which quarters?",
        "options": _OPTIONS,
        "multiple": True,
        "allow_custom": True,
    },
    "ask for what may be skipped": {
        "kind": "choice",
        "prompt": "Which quarter?",
        "options": _OPTIONS,
        "allow_skip": True,
        "skip_label": "No matter",
    },
}
"""What the user says, and what the model then asks."""

DATA_QUESTIONS = {"ask for a stay": "ask_stay", "ask for stops": "ask_stops"}
"""What the user says, and the tool of `data_tools` that asks for data."""

MARKDOWN = (
    "**Bold**, `code`, [a link](https://example.org/) and\n\n- a list\n\n"
    "<script>document.title = 'stolen'</script>"
    "<img src='https://example.org/spy.png' onerror='document.title = \"stolen\"'>"
    "[bad](javascript:alert(1))"
    "<style>body { display: none }</style>"
    "<button id='conversation' onclick='alert(1)'>press</button>"
)


@asynccontextmanager
async def asking(words: Valve) -> AsyncIterator[Model]:
    """Asks what it is told to ask, and then repeats the answer that the runtime gave it."""
    del words
    await trio.lowlevel.checkpoint()
    yield ScriptedModel([_reply] * 100)


def _reply(request: ModelRequest) -> Reply:
    last: Any = request.messages[-1]
    if last["role"] == "tool":
        return f"Noted:\n\n```\n{last['content']}\n```"
    if last["content"] in DATA_QUESTIONS:
        return ModelCompleted(tool_calls=(ToolCall(DATA_QUESTIONS[last["content"]], {}),))
    asked = QUESTIONS.get(last["content"])
    if asked is not None:
        return ModelCompleted(tool_calls=(ToolCall("request_input", asked),))
    return MARKDOWN if last["content"] == "markdown" else "Nothing was asked."


class Faults:
    """What a provider does instead of an answer, for as many requests as there are entries.

    A number is an HTTP status, a text is what it sends before it breaks off.
    """

    def __init__(self) -> None:
        self.coming: list[int | str] = []

    def next(self) -> Response | None:
        """The next fault, or None for none."""
        if not self.coming:
            return None
        fault = self.coming.pop(0)
        if isinstance(fault, int):
            return Response('{"error": {"message": "not today"}}', status=fault)
        chunk = f'data: {{"choices": [{{"index": 0, "delta": {{"content": "{fault}"}}}}]}}\n\n'
        return Response(chunk, content_type="text/event-stream")


def faulty(faults: Faults, *, backoff_seconds: float) -> OpenModel:
    """The provider's adapter before an offline planner whose server has these faults first."""
    return partial(_faulty, faults, backoff_seconds)


@asynccontextmanager
async def _faulty(faults: Faults, backoff_seconds: float, words: Valve) -> AsyncIterator[Model]:
    app = create_offline_app("key", pause=words.pass_through)

    async def fail() -> Response | None:
        await trio.lowlevel.checkpoint()
        return faults.next()

    app.before_request(fail)
    config = Config()
    config.bind = ["127.0.0.1:0"]
    config.errorlog = None
    start = cast("Callable[..., Any]", serve)
    async with trio.open_nursery() as nursery:
        bound: list[str] = await nursery.start(start, app, config)
        async with httpx.AsyncClient(trust_env=False) as client:
            yield OpenAICompatibleModel(
                api_key="key",
                base_url=f"{bound[0]}/v1",
                model=OFFLINE_MODEL,
                max_retries=2,
                retry_backoff_seconds=backoff_seconds,
                client=client,
            )
        nursery.cancel_scope.cancel()
