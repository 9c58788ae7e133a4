"""The OpenAPI description: it is valid, complete, and real responses keep to it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate
from quart_trio import QuartTrio
from trio.testing import MockClock

from rungent import Agent
from rungent.asgi import create_blueprint
from rungent.asgi.blueprint import METHODS, blueprint_for
from rungent.asgi.host import Host
from rungent.asgi.problems import PROBLEMS
from rungent.events import PAYLOADS, event_schema
from rungent.llm import ModelCompleted, ModelFailure, ToolCall
from rungent.testing import ScriptedModel
from rungent.testing.asgi import AsgiClient, AsgiResponse
from rungent.testing.scripted import Delay
from tests.asgi.apps import ADA, World, app_of, identify, runtime_with, world
from tests.asgi.description import Description, Seen
from tests.asking.channel import ASK as CHANNEL
from tests.asking.channel import Channel, ask_channel, provider
from tests.docs.pages import ROOT, code, rows, section

PATH = "/openapi.json"
JSON = {"content-type": "application/json"}


async def fetch(client: AsgiClient, path: str = PATH) -> Description:
    answer = await client.request("GET", path)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    return Description(answer.json())


async def served(**options: Any) -> Description:
    async with AsgiClient(app_of(runtime_with(ScriptedModel([]), **options))) as client:
        return await fetch(client)


async def test_the_description_is_a_valid_one() -> None:
    document = (await served()).document
    assert document["openapi"].startswith("3.1")
    validate(document)
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


async def test_every_route_and_method_is_described_and_nothing_else() -> None:
    app = app_of(runtime_with(ScriptedModel([])))
    async with AsgiClient(app) as client:
        described = {(path, method) for path, method, _ in (await fetch(client)).operations()}
        real: set[tuple[str, str]] = set()
        assert isinstance(app, QuartTrio)
        for rule in app.url_map.iter_rules():
            path = rule.rule.replace("<", "{").replace(">", "}")
            for method in METHODS:
                if (await client.request(method, path)).status != 405:
                    real.add((path, method))
    assert described == real


async def test_operations_have_ids_summaries_and_tags_of_their_own() -> None:
    description = await served()
    operations = [operation for _, _, operation in description.operations()]
    ids = [operation["operationId"] for operation in operations]
    assert len(set(ids)) == len(ids)
    for operation in operations:
        assert operation["summary"]
        assert len(operation["tags"]) == 1
        for response in operation["responses"].values():
            for name, link in response.get("links", {}).items():
                assert name == link["operationId"]
                assert name in ids


async def test_every_component_is_used() -> None:
    document = (await served()).document
    text = json.dumps(document)
    unused = {
        f"#/components/{kind}/{name}"
        for kind, parts in document["components"].items()
        for name in parts
        if f'"#/components/{kind}/{name}"' not in text
    }
    # No operation of a path answers with it, but everything else at that path does.
    assert unused == {"#/components/responses/MethodNotAllowed"}


async def test_every_example_keeps_to_its_schema() -> None:
    description = await served()
    checked = 0
    bodies = [
        part
        for _, _, operation in description.operations()
        for part in (operation.get("requestBody"), *operation["responses"].values())
        if part is not None
    ]
    for part in (*bodies, *description.document["components"]["responses"].values()):
        for kind, media in part["content"].items():
            values = [example["value"] for example in media.get("examples", {}).values()]
            values += [media["example"]] if "example" in media else []
            checked += len(values)
            for value in values:
                description.check(media["schema"], value)
                if kind == "text/event-stream":
                    description.check_frame(media["schema"], value)
    assert checked > 60


async def test_every_operation_but_the_description_has_an_example_of_all_it_takes_and_gives() -> (
    None
):
    for _, _, operation in (await served()).operations():
        if operation["operationId"] == "getDescription":
            continue
        for part in (operation.get("requestBody"), *operation["responses"].values()):
            described: dict[str, Any] = {} if part is None else part["content"]
            for media in described.values():
                assert "example" in media or "examples" in media


async def test_every_error_of_the_table_is_described_with_its_status_and_fields() -> None:
    schemas = (await served()).document["components"]["schemas"]
    for kind, problem in PROBLEMS.items():
        detail = schemas[kind.__name__]["properties"]["detail"]
        assert detail["properties"]["code"]["const"] == kind.code
        assert detail["required"] == ["code", "message", *problem.fields]


async def test_events_are_described_as_they_are_published() -> None:
    description = await served()
    event = description.document["components"]["schemas"]["Event"]
    assert set(event["discriminator"]["mapping"]) == set(PAYLOADS)
    published = {
        variant["properties"]["type"]["const"]: variant["required"]
        for variant in event_schema()["oneOf"]
    }
    for name, target in event["discriminator"]["mapping"].items():
        assert description.resolved({"$ref": target})["required"] == published[name]


async def test_bounds_are_those_of_the_runtime_and_of_the_page() -> None:
    document = (await served(max_input_chars=7)).document
    assert document["components"]["schemas"]["NewRun"]["properties"]["input"]["maxLength"] == 7
    parameters = document["components"]["parameters"]
    limit = parameters["Limit"]["schema"]
    assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 500, 100)
    assert parameters["IdempotencyKey"]["schema"]["maxLength"] == 200


async def test_the_description_can_be_switched_off() -> None:
    runtime = runtime_with(ScriptedModel([]))
    async with AsgiClient(app_of(runtime, openapi=False), headers=ADA) as client:
        answer = await client.request("GET", PATH)
        assert (answer.status, answer.json()["detail"]["code"]) == (404, "not_found")
    app = QuartTrio(__name__)
    app.register_blueprint(create_blueprint(runtime, identity_resolver=identify, openapi=False))
    async with AsgiClient(app, lifespan=False) as client:
        assert (await client.request("GET", PATH)).status == 404


@pytest.mark.parametrize("method", ["POST", "HEAD", "OPTIONS", "BREW"])
async def test_the_description_has_one_method(method: str) -> None:
    async with AsgiClient(app_of(runtime_with(ScriptedModel([])))) as client:
        answer = await client.request(method, PATH)
        assert (answer.status, answer.headers["allow"]) == (405, "GET")
        assert (await client.request("GET", "/" + PATH)).status == 404


async def test_the_server_is_where_the_routes_are_mounted() -> None:
    runtime = runtime_with(ScriptedModel([]))
    host = QuartTrio(__name__)
    host.register_blueprint(
        create_blueprint(runtime, identity_resolver=identify), url_prefix="/in host"
    )
    cases: list[tuple[Any, str, str, str]] = [
        (app_of(runtime), "", "", "/"),
        (app_of(runtime, url_prefix="/api"), "", "/api", "/api"),
        (app_of(runtime, url_prefix="/api"), "/outer", "/api", "/outer/api"),
        (host, "", "/in host", "/in%20host"),
    ]
    for app, root_path, below, url in cases:
        async with AsgiClient(app, root_path=root_path, lifespan=False) as client:
            document = (await fetch(client, below.replace(" ", "%20") + PATH)).document
            assert document["servers"] == [{"url": url}]
            assert "/sessions" in document["paths"]
            validate(document)


@asynccontextmanager
async def watched(
    description: Description, script: list[Any], **options: Any
) -> AsyncIterator[World]:
    """A world whose responses are all held against the description."""
    async with world(script, **options) as w:
        yield World(Watched(w.client, description), w.runtime)


class Watched(AsgiClient):
    """Another client's requests, checked."""

    def __init__(self, inner: AsgiClient, description: Description) -> None:
        self._inner = inner
        self._description = description

    async def request(self, method: str, path: str, **options: Any) -> AsgiResponse:
        answer = await self._inner.request(method, path, **options)
        self._description.check_response(method, path, answer)
        return answer


ASK = ModelCompleted(
    tool_calls=(ToolCall("request_input", {"kind": "text", "prompt": "Where?"}),),
)
DOWN: list[Any] = [ModelFailure("network")] * 4


async def events(w: World, run_id: str) -> list[Any]:
    answer = await w.client.request("GET", f"/runs/{run_id}/events")
    return list(answer.json())


async def answer_question(w: World) -> None:
    """Everything that an answer can be answered with."""
    session_id = await w.session()
    run_id = (await w.run(session_id)).json()["run_id"]
    await w.ended(run_id)
    path = f"/runs/{run_id}/responses"
    asked = (await events(w, run_id))[-1]["data"]
    assert (await w.run(session_id)).status == 409
    for body in (
        {"interaction_id": "another", "value": "Rome"},
        {"interaction_id": asked["id"], "value": " "},
        {"interaction_id": asked["id"], "value": "Rome"},
        {"interaction_id": asked["id"], "value": "Rome"},
        {"interaction_id": asked["id"], "value": "Oslo"},
    ):
        await w.client.request("POST", path, json=body)
    await w.ended(run_id)
    await w.client.request("GET", f"/runs/{run_id}/events/stream")
    await w.client.request("GET", f"/sessions/{session_id}")
    other = await w.started()
    await w.ended(other)
    await w.client.request(
        "POST", f"/runs/{other}/responses", json={"interaction_id": "x", "value": 1}
    )
    await w.client.request("POST", f"/runs/{other}/retry")
    await w.client.request("POST", f"/runs/{other}/cancel")


async def ask_others(description: Description) -> None:
    """A question that the owner may not answer."""
    agent = Agent(name="planner", instructions="Plan.", tools=[ask_channel()])
    options: dict[str, Any] = {"agents": [agent], "dependency_provider": provider(Channel())}
    async with watched(description, [CHANNEL], runtime_options=options) as w:
        run_id = await w.started()
        await w.ended(run_id)
        asked = (await events(w, run_id))[-1]["data"]
        body = {"interaction_id": asked["id"], "value": {"approved": True}}
        await w.client.request("POST", f"/runs/{run_id}/responses", json=body)


async def retry_and_repeat(w: World) -> None:
    """Retries, keys and pages."""
    session_id = await w.session(title="Trip", resource={"a": [1.5, None]})
    first = (await w.run(session_id, headers={"Idempotency-Key": "k"})).json()["run_id"]
    await w.run(session_id, headers={"Idempotency-Key": "k"})
    await w.run(session_id, "Other", headers={"Idempotency-Key": "k"})
    await w.ended(first)
    await w.client.request("POST", f"/runs/{first}/retry", headers={"Idempotency-Key": "k"})
    await w.client.request("POST", f"/runs/{first}/retry", headers={"Idempotency-Key": " "})
    again = await w.client.request("POST", f"/runs/{first}/retry", headers={"Idempotency-Key": "r"})
    await w.client.request("POST", f"/runs/{first}/retry", headers={"Idempotency-Key": "r"})
    await w.ended(again.json()["run_id"])
    for path in (
        "/sessions",
        "/sessions?limit=1",
        f"/sessions/{session_id}/runs",
        f"/sessions/{session_id}/runs?limit=1",
        f"/runs/{first}/events?limit=1",
        "/sessions?limit=0",
        f"/sessions/{session_id}/runs?cursor=x",
        f"/runs/{first}/events?after_seq=-1",
        f"/runs/{first}/events/stream?until=never",
    ):
        await w.client.request("GET", path)
    await w.client.request("PATCH", f"/sessions/{session_id}", json={"title": "New"})


async def refuse_everything(w: World, description: Description) -> None:
    """Bodies and ids that no route takes, and strangers."""
    for template, method, operation in description.operations():
        path = template.replace("{session_id}", "none").replace("{run_id}", "none")
        takes = "requestBody" in operation
        fits = b'{"input": "Hi", "interaction_id": "x", "value": 1, "agent": "nobody"}'
        await w.client.request(method, path, content=fits if takes else b"", headers=JSON)
        if operation["operationId"] == "getDescription":
            continue
        await w.client.request(method, path, headers={"x-user": "refused"})
        if takes:
            await w.client.request(method, path, content=b"[]", headers=JSON)
            await w.client.request(method, path, content=b"{}", headers={"content-type": "text/x"})
            await w.client.request(method, path, content=b"x" * 1_048_577, headers=JSON)


async def fill_the_queue(description: Description) -> None:
    """All that is refused because too much is to do."""
    options = {"max_concurrent_runs": 1, "max_queued_runs": 1}
    slow = [Delay(100), ModelCompleted("Done.")]
    script = [ASK, *DOWN, slow, slow]
    async with watched(description, script, runtime_options=options) as w:
        waiting = await w.started()
        await w.ended(waiting)
        failed = await w.started()
        await w.ended(failed)
        asked = (await events(w, waiting))[-1]["data"]
        for _ in range(3):
            await w.run(await w.session())
        body = {"interaction_id": asked["id"], "value": "Rome"}
        await w.client.request("POST", f"/runs/{waiting}/responses", json=body)
        await w.client.request("POST", f"/runs/{failed}/retry")


async def break_everything(description: Description) -> None:
    """Every route of an application that is broken, and of one whose runtime crashed."""
    runtime = runtime_with(ScriptedModel([]))

    def broken(request: object) -> None:
        raise RuntimeError("canary")

    crashed, faulty = QuartTrio("crashed"), QuartTrio("faulty")
    host = Host(runtime=runtime, identity_resolver=identify, crashed=lambda: True)
    crashed.register_blueprint(blueprint_for(host, "rungent"))
    faulty.register_blueprint(create_blueprint(runtime, identity_resolver=broken))
    for app in (crashed, faulty):
        async with AsgiClient(app, lifespan=False) as client:
            for path, method, _ in description.operations():
                await Watched(client, description).request(method, path)


async def test_real_responses_of_every_kind_keep_to_the_description(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    description = await served()
    async with watched(description, [ASK, "Done.", "Hello!"]) as w:
        await answer_question(w)
        await refuse_everything(w, description)
    async with watched(description, [*DOWN, "Done.", "Other."]) as w:
        await w.client.request("POST", "/sessions")
        await retry_and_repeat(w)
    await ask_others(description)
    await fill_the_queue(description)
    await break_everything(description)
    # The description is made without anything that can fail, and answers are taken whatever is
    # queued; clients are told of it all the same.
    never = {Seen("getDescription", 500, "internal_error"), Seen("answerRun", 429, "runtime_busy")}
    assert description.documented() - description.seen == never
    assert description.seen <= description.documented()


def test_the_published_event_schema_is_current() -> None:
    published = ROOT / "docs" / "events.schema.json"
    current = json.dumps(event_schema(), indent=2, ensure_ascii=False) + "\n"
    told = "write json.dumps(event_schema(), indent=2, ensure_ascii=False) and a newline to it"
    assert published.read_text(encoding="utf-8") == current, told
    Draft202012Validator.check_schema(event_schema())


def test_the_page_says_where_the_description_is() -> None:
    listed = [code(row[0]) for row in rows(section("docs/http.md", "Description")) if row[2:]]
    assert listed == [f"GET {PATH}"]
