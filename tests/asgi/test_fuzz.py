"""Requests that nobody thought of, made from the description and sent to a served application."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from functools import partial
from itertools import count, cycle
from pathlib import Path
from typing import Any, cast

import requests
import schemathesis
import trio
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import FlakyStrategyDefinition
from schemathesis import GenerationMode
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi import checks
from sqlalchemy import create_engine

from rungent.asgi import serve
from rungent.llm import ModelCompleted, ModelFailure, ModelRequest, ToolCall
from rungent.sqlalchemy import SQLAlchemyStore
from rungent.testing import ScriptedModel
from rungent.testing.scripted import Reply
from tests.asgi.apps import ADA, app_of, runtime_with

# The library's own types are partly unknown.
CONFIG: Any = SchemathesisConfig
ACCEPTANCE: Any = vars(checks)["positive_data_acceptance"]

EXAMPLES = 16
CHAINS, STEPS = 15, 20
SECONDS = 600

ASK = ModelCompleted(
    tool_calls=(ToolCall("request_input", {"kind": "text", "prompt": "Where?"}),),
)
REPLIES: dict[str, Reply] = {"end": "Hello!", "ask": ASK, "fail": ModelFailure("network")}
# What is sent is the same each time; a fault found here is found again.
SETTINGS = settings(
    database=None,
    deadline=None,
    derandomize=True,
    max_examples=EXAMPLES,
    phases=[Phase.generate],
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)


class Fuzzer:
    """Sends requests and holds every response against the description."""

    def __init__(self, url: str, session: Any) -> None:
        self.url = url
        self.statuses: Counter[tuple[str, int]] = Counter()
        self.broken: list[BaseException] = []
        self.links = 0
        self.session = session
        self.session.headers.update(ADA)
        document = self.session.get(url + "/openapi.json").json()
        config = CONFIG.from_dict({"base-url": url})
        load: Any = schemathesis.openapi.from_dict
        self.schema = load(document, config=config)

    def every_operation(self) -> None:
        """Valid and invalid requests to all of them, for things that are there and for others."""
        for found in self.schema.get_all_operations():
            operation = found.ok()
            modes = [GenerationMode.POSITIVE]
            if operation.body or operation.query or operation.headers:
                modes.append(GenerationMode.NEGATIVE)
            for mode in modes:
                self.one_operation(operation, mode)

    def one_operation(self, operation: Any, mode: GenerationMode) -> None:
        targets = cycle(self.targets(operation.path))

        def send(case: Any) -> None:
            case.path_parameters = next(targets) or case.path_parameters
            self.prepare(case)
            self.judge(case.call(session=self.session), case)

        SETTINGS(given(case=operation.as_strategy(generation_mode=mode))(send))()

    def chains(self) -> None:
        """Requests that follow from the answers of earlier ones, as the links say."""
        fuzzer, users = self, count()

        class Chains(self.schema.as_state_machine()):  # type: ignore[misc]
            def setup(self) -> None:
                fuzzer.links += 1
                # Nothing of an earlier chain may show.
                fuzzer.session.headers["x-user"] = f"user-{next(users)}"

            def get_call_kwargs(self, case: Any) -> dict[str, Any]:
                return {"session": fuzzer.session}

            def before_call(self, case: Any) -> None:
                fuzzer.prepare(case)

            def validate_response(self, response: Any, case: Any, *args: Any, **kw: Any) -> None:
                fuzzer.judge(response, case)

        budget = settings(SETTINGS, max_examples=CHAINS, stateful_step_count=STEPS)
        while self.links < CHAINS:
            # What a chain draws depends on answers, which depend on more than what was drawn
            # before; where the tool notices that, it gives up, and a new chain begins.
            with suppress(FlakyStrategyDefinition):
                Chains.run(settings=budget)

    def targets(self, path: str) -> list[dict[str, str] | None]:
        """Path parameters: of new things in different states, and None for those generated."""
        if "{run_id}" in path:
            return [*({"run_id": self.started(text)[1]} for text in REPLIES), None]
        return [{"session_id": self.started("end")[0]} if "{session_id}" in path else None, None]

    def started(self, text: str) -> tuple[str, str]:
        """A new session and its run, which has gone as far as it goes."""
        session_id = self.session.post(self.url + "/sessions").json()["id"]
        made = self.session.post(f"{self.url}/sessions/{session_id}/runs", json={"input": text})
        run_id = made.json()["run_id"]
        self.settle(run_id)
        return session_id, run_id

    def settle(self, run_id: str) -> None:
        self.session.get(f"{self.url}/runs/{run_id}/events/stream").raise_for_status()

    def prepare(self, case: Any) -> None:
        """Name the interaction that is pending, and wait for no end that cannot come."""
        run_id = mapping(case.path_parameters).get("run_id", "/")
        if "/" in run_id:
            return
        events = self.session.get(f"{self.url}/runs/{run_id}/events")
        if events.status_code != 200 or events.json()[-1]["type"] != "interaction.requested":
            return
        body, query = mapping(case.body), mapping(case.query)
        if isinstance(body.get("interaction_id"), str):
            body["interaction_id"] = events.json()[-1]["data"]["id"]
            if isinstance(body.get("value"), str):
                # Most texts are blank or nothing: this one is always an answer.
                body["value"] = "Rome" + body["value"]
        if query.get("until") == "terminal":
            del query["until"]

    def judge(self, response: Any, case: Any) -> None:
        self.statuses[case.operation.label, response.status_code] += 1
        excluded: list[Any] = [ACCEPTANCE] if undescribed(response) else []
        try:
            assert response.status_code < 500, response.content
            case.validate_response(response, excluded_checks=excluded)
        except (AssertionError, BaseExceptionGroup) as broken:
            self.broken.append(broken)
            raise
        if response.status_code == 202:
            # What comes next must not depend on how far the run is by then.
            self.settle(response.json()["run_id"])


def mapping(value: Any) -> dict[str, Any]:
    """The value itself, if it is a dictionary."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def undescribed(response: Any) -> bool:
    """Whether a refusal is for a rule that no schema can hold."""
    if response.status_code != 422:
        return False
    detail = response.json()["detail"]
    where = [error["loc"] for error in detail.get("errors", [])]
    return detail["code"] == "invalid_response" or ["query", "cursor"] in where


def reply(request: ModelRequest) -> Reply:
    """What the user's text asks for; other texts have their length decide."""
    last = request.messages[-1]
    if last["role"] == "tool":
        return "Done."
    text = str(last["content"])
    return REPLIES.get(text) or list(REPLIES.values())[len(text) % len(REPLIES)]


def fuzz(url: str) -> Counter[tuple[str, int]]:
    with requests.Session() as session:
        fuzzer = Fuzzer(url, session)
        fuzzer.every_operation()
        fuzzer.chains()
        assert fuzzer.broken == []
    return fuzzer.statuses


async def test_no_request_made_from_the_description_breaks_it(tmp_path: Path) -> None:
    store = SQLAlchemyStore(create_engine(f"sqlite:///{tmp_path / 'runs.db'}"))
    await store.create_schema()
    runtime = runtime_with(ScriptedModel([reply] * 10_000, max_retries=0), store=store)
    stop = trio.Event()
    with trio.fail_after(SECONDS):
        async with trio.open_nursery() as nursery:
            url = await nursery.start(
                partial(serve, app_of(runtime), runtime=runtime, port=0, shutdown=stop)
            )
            statuses = await trio.to_thread.run_sync(fuzz, url)
            stop.set()
    assert statuses.total() >= 400
    succeeded = {operation for operation, status in statuses if status < 300}
    assert succeeded == {operation for operation, _ in statuses}
    assert len(succeeded) == 12
