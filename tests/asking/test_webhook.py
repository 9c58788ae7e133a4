"""The whole way over real HTTP: a chat service, its webhook, two lives of the application."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from hypercorn.config import Config
from hypercorn.trio import serve  # pyright: ignore[reportUnknownVariableType]
from quart import request
from quart_trio import QuartTrio

from rungent import Agent, Event, Identity, Runtime
from rungent.asgi import create_app
from rungent.testing import ScriptedModel
from tests.asgi.apps import identify
from tests.asking.channel import ASK, TEAM, ask_channel
from tests.grammar import check_log
from tests.helpers import OWNER, of
from tests.persistence.stores import opened, postgres_for, sql_store

SECRET = "shared with the chat service"
PATIENCE = 20


@asynccontextmanager
async def listening(app: Any) -> AsyncGenerator[str]:
    """The application on a port of its own; its URL."""
    config = Config()
    config.bind = ["127.0.0.1:0"]
    config.errorlog = None
    config.graceful_timeout = 1
    over = trio.Event()
    begin: Any = partial(serve, app, config, shutdown_trigger=over.wait)
    async with trio.open_nursery() as nursery:
        (url,) = await nursery.start(begin)
        yield url
        over.set()


@dataclass
class ChatService:
    """Keeps messages, and tells its webhook of clicks: what every chat service does."""

    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    webhook: str = ""
    changed: trio.Event = field(default_factory=trio.Event)

    def app(self) -> QuartTrio:
        app = QuartTrio("chat")
        app.post("/messages")(self.post)
        app.put("/messages/<int:number>")(self.put)
        return app

    async def post(self) -> Any:
        message = await request.get_json()
        self.messages.append({**message, "history": [message["text"]]})
        return {"id": str(len(self.messages) - 1)}

    async def put(self, number: int) -> Any:
        text = (await request.get_json())["text"]
        self.messages[number]["history"].append(text)
        self.messages[number]["buttons"] = {}
        self.changed.set()
        return {}

    async def click(self, button: str, user: str, token: str | None = None) -> str:
        """Somebody clicks; what the webhook answered is shown to them."""
        value = self.messages[-1]["buttons"][button] if token is None else token
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
            answer = await client.post(
                self.webhook,
                json={"user": user, "value": value},
                headers={"X-Signature": SECRET},
            )
        assert answer.status_code == 200, answer.text
        return str(answer.json()["text"])


@dataclass(frozen=True)
class Chat:
    """The client of the chat service that the tools use."""

    url: str

    @dataclass(frozen=True)
    class Post:
        id: str

    async def post(self, text: str, buttons: dict[str, str]) -> Post:
        body = {"text": text, "buttons": buttons}
        return self.Post((await self._send("POST", "/messages", body))["id"])

    async def update(self, message_id: str, text: str) -> None:
        await self._send("PUT", f"/messages/{message_id}", {"text": text})

    async def _send(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        async with httpx.AsyncClient(base_url=self.url, trust_env=False) as client:
            answer = await client.request(method, path, json=body)
            answer.raise_for_status()
            return dict(answer.json())


TEXTS = {
    "accepted": "Thank you!",
    "already_answered": "Somebody was faster.",
    "not_allowed": "This is not yours to decide.",
    "closed": "This is over.",
    "unknown": "This button is not known.",
}


def application(runtime: Runtime) -> QuartTrio:
    """The host: the routes of the runtime, and the webhook of the chat service."""
    app = create_app(runtime, identity_resolver=identify, url_prefix="/api")

    @app.post("/chat/clicks")
    async def clicks() -> Any:
        if request.headers.get("X-Signature") != SECRET:
            return {"text": "Who are you?"}, 401
        click = await request.get_json()
        outcome = await runtime.act(click["value"], identity=Identity(click["user"]))
        return {"text": TEXTS[outcome.status]}

    return app


@dataclass
class House:
    """A database in which one application after the other lives, and the chat service beside."""

    store: Callable[[], Any]
    chat: ChatService
    url: str

    @asynccontextmanager
    async def living(self, *script: Any) -> AsyncGenerator[Runtime]:
        """The application from its start to its end, with objects of its own."""
        async with opened(self.store()) as store:
            runtime = Runtime(
                agents=[Agent("helper", "Help.", tools=[ask_channel()])],
                model=ScriptedModel(script),
                store=store,
                dependency_provider=lambda session, run: {"chat": Chat(self.url), "team": TEAM},
            )
            async with listening(application(runtime)) as url:
                self.chat.webhook = f"{url}/chat/clicks"
                yield runtime


@pytest.fixture(params=["sqlite", "asyncpg"])
async def house(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[House]:
    chat, url = ChatService(), postgres_for(request.param, request)
    async with listening(chat.app()) as address:
        with trio.fail_after(PATIENCE):
            yield House(lambda: sql_store(request.param, tmp_path, url), chat, address)


async def log(runtime: Runtime, run_id: str) -> list[Event]:
    stream = runtime.stream_events(run_id, identity=OWNER, until="terminal")
    events = [event async for event in stream]
    check_log(events)
    return events


async def asking(runtime: Runtime) -> str:
    """Start a run and follow it to its question."""
    session = await runtime.create_session(identity=OWNER)
    stream = runtime.stream_run(session.id, "Ask them", identity=OWNER)
    events = [event async for event in stream]
    assert events[-1].type == "interaction.requested"
    return events[-1].run_id


async def test_a_restart_between_the_question_and_the_click(house: House) -> None:
    async with house.living(ASK) as runtime:
        run_id = await asking(runtime)
        assert house.chat.messages[-1]["history"] == ["Approve: Ship it?"]
    async with house.living("It is shipped.") as runtime:
        assert await house.chat.click("Approve", "mallory") == TEXTS["not_allowed"]
        forged = await house.chat.click("Approve", "bob", "x" * 22)
        assert forged == TEXTS["unknown"]
        token = house.chat.messages[-1]["buttons"]["Reject"]
        assert await house.chat.click("Approve", "bob") == TEXTS["accepted"]
        assert await house.chat.click("", "cleo", token) == TEXTS["already_answered"]
        events = await log(runtime, run_id)
        assert of(events, "message.completed")[0]["content"] == "It is shipped."
        assert house.chat.messages[-1]["history"][1:] == ["Ship it: approved by bob"]


async def test_two_people_click_at_once_and_one_of_them_twice(house: House) -> None:
    async with house.living(ASK, "Done.") as runtime:
        run_id = await asking(runtime)
        answers: list[str] = []
        tokens = dict(house.chat.messages[-1]["buttons"])

        async def click(button: str, user: str) -> None:
            answers.append(await house.chat.click("", user, tokens[button]))

        async with trio.open_nursery() as nursery:
            for button, user in (("Approve", "bob"), ("Approve", "bob"), ("Reject", "cleo")):
                nursery.start_soon(click, button, user)
        assert sorted(answers) == [TEXTS["already_answered"]] * 2 + [TEXTS["accepted"]]
        await log(runtime, run_id)
        assert len(house.chat.messages[-1]["history"]) == 2


async def test_a_cancel_reaches_the_message_and_kills_its_buttons(house: House) -> None:
    async with house.living(ASK) as runtime:
        run_id = await asking(runtime)
        token = house.chat.messages[-1]["buttons"]["Approve"]
        await runtime.cancel_run(run_id, identity=OWNER)
        await house.chat.changed.wait()
        assert house.chat.messages[-1]["history"][1:] == ["Closed: cancelled"]
        assert await house.chat.click("", "bob", token) == TEXTS["closed"]
