"""The FastAPI router on trio: dependencies, errors, streams, and what the host's document says."""

from __future__ import annotations

import contextvars
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any, cast

import httpx
import pytest
import trio
from fastapi import Depends, FastAPI, Header, HTTPException, Request
from openapi_spec_validator import validate
from starlette.responses import JSONResponse
from trio.testing import MockClock

from rungent import Agent, Identity, Runtime, ToolContext, ToolResult, Unauthenticated, tool
from rungent.asgi import create_app, serve
from rungent.asgi.fastapi_router import ForwardingRouter
from rungent.asgi.handover import below, handed_identity
from rungent.fastapi import create_router
from rungent.llm import ModelCompleted, ToolCall
from rungent.testing import ScriptedModel
from rungent.testing.asgi import AsgiClient
from rungent.testing.scripted import Response
from rungent.testing.sse import SseReader
from tests.asgi.apps import ADA, GatedModel, identify, runtime_with
from tests.hosts.endless import Endless

API = "/api/assistant"


def header_identity(
    request: Request, x_user: Annotated[str | None, Header()] = None
) -> Identity | None:
    """Knows and refuses the same users as `identify`, as a dependency."""
    assert request.headers.get("x-user") == x_user
    return identify(cast("Any", request))


@asynccontextmanager
async def hosted(
    runtime: Runtime,
    resolver: Callable[..., Any] = header_identity,
    host: FastAPI | None = None,
    **options: Any,
) -> AsyncGenerator[AsgiClient]:
    """Ada's client of a FastAPI application with the router."""
    app = FastAPI() if host is None else host
    app.include_router(create_router(runtime, identity_resolver=resolver, **options), prefix=API)
    async with runtime, AsgiClient(app, headers=ADA) as client:
        yield client


async def started(client: AsgiClient) -> str:
    session = (await client.request("POST", f"{API}/sessions")).json()
    path = f"{API}/sessions/{session['id']}/runs"
    made = await client.request("POST", path, json={"input": "Hi"})
    assert made.status == 202, made.body
    return f"{API}/runs/{made.json()['run_id']}"


async def followed(client: AsgiClient, run: str) -> list[Any]:
    """The events of a run, from its first to its last."""
    async with client.stream("GET", f"{run}/events/stream") as stream:
        return [frame.event for frame in await SseReader().frames(stream) if frame.event]


REFUSED: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/sessions", {"headers": {"x-user": "refused"}}),
    ("GET", "/sessions", {"headers": {"x-user": "forbidden"}}),
    ("GET", "/sessions", {"headers": {"x-user": "refused", "x-else": "1"}}),
    ("GET", "/sessions/ses_x", {}),
    ("GET", "/sessions?limit=0", {}),
    ("PUT", "/sessions", {}),
    ("HEAD", "/sessions", {}),
    ("STRANGE", "/runs/run_x/cancel", {}),
    ("POST", "/openapi.json", {}),
    ("POST", "/sessions", {"json": []}),
    ("POST", "/sessions", {"content": b"x"}),
    ("POST", "/sessions", {"content": [b" " * 600_000] * 2}),
    ("POST", "/runs/run_x/responses", {"json": {"interaction_id": "int_x", "value": 1}}),
    ("GET", "/runs/run_x/events/stream?until=x", {}),
    ("POST", "/sessions/ses_x/runs", {"json": {"input": "x"}, "headers": {"x-user": "forbidden"}}),
]


async def test_errors_are_answered_as_the_application_answers_them(
    autojump_clock: MockClock,
) -> None:
    runtime = runtime_with(ScriptedModel([]))
    alone = create_app(runtime, identity_resolver=identify)
    async with hosted(runtime) as client, AsgiClient(alone, headers=ADA, lifespan=False) as app:
        for method, path, request in REFUSED:
            expected = await app.request(method, path, **request)
            answer = await client.request(method, f"{API}{path}", **request)
            assert expected.status >= 400
            assert (answer.status, answer.body, answer.headers) == (
                expected.status,
                expected.body,
                expected.headers,
            ), path


async def test_a_runtime_that_is_not_served_refuses_as_in_the_application(
    autojump_clock: MockClock,
) -> None:
    host = FastAPI()
    router = create_router(runtime_with(ScriptedModel([])), identity_resolver=header_identity)
    host.include_router(router, prefix=API)
    async with AsgiClient(host, headers=ADA) as client:
        session = (await client.request("POST", f"{API}/sessions")).json()
        path = f"{API}/sessions/{session['id']}/runs"
        answer = await client.request("POST", path, json={"input": "Hi"})
        assert (answer.status, answer.json()["detail"]["code"]) == (503, "shutting_down")


async def test_dependencies_of_the_resolver_are_those_of_the_host(
    autojump_clock: MockClock,
) -> None:
    host = FastAPI()

    async def user(x_user: Annotated[str, Header()]) -> str:
        return x_user

    def resolver(user: str = Depends(user)) -> Identity:
        return Identity(user)

    async with hosted(runtime_with(ScriptedModel([])), resolver, host) as client:
        mine = await client.request("POST", f"{API}/sessions")
        assert mine.json()["subject_id"] == "ada"
        host.dependency_overrides[user] = lambda: "eve"
        assert (await client.request("GET", f"{API}/sessions")).json() == []


async def test_what_a_resolver_yields_is_closed_before_the_answer_begins(
    autojump_clock: MockClock,
) -> None:
    events: list[str] = []

    async def resolver() -> AsyncGenerator[Identity]:
        events.append("opened")
        yield Identity("ada")
        events.append("closed")

    async with hosted(runtime_with(GatedModel()), resolver) as client:
        run = await started(client)
        events.clear()
        async with client.stream("GET", f"{run}/events/stream"):
            assert events == ["opened", "closed"]


@pytest.mark.parametrize("place", ["resolver", "dependency", "context factory"])
async def test_an_exception_of_the_framework_passes_to_the_host(
    place: str, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    host = FastAPI()

    class Payment(HTTPException):
        pass

    def refuse(*_: object) -> Any:
        raise Payment(402, "pay first", {"x-price": "5"})

    def dependency() -> None:
        if place == "dependency":
            refuse()

    def resolver(request: Request, _: None = Depends(dependency)) -> Identity:
        if place == "resolver":
            refuse()
        return Identity("ada")

    @host.exception_handler(Payment)
    async def answer(request: Request, error: Payment) -> JSONResponse:
        return JSONResponse({"mine": error.detail}, error.status_code, error.headers)

    runtime = runtime_with(ScriptedModel([]))
    session = await runtime.create_session(identity=Identity("ada"))
    async with hosted(runtime, resolver, host, context_factory=refuse) as client:
        path = f"{API}/sessions/{session.id}/runs"
        got = await client.request("POST", path, json={"input": "Hi"})
        assert (got.status, got.json()) == (402, {"mine": "pay first"})
        assert got.headers["x-price"] == "5"
        assert (await client.request("GET", f"{API}/sessions/{session.id}/runs")).status == (
            200 if place == "context factory" else 402
        )
    assert not caplog.records


async def test_a_dependency_that_refuses_is_answered_like_the_resolver(
    autojump_clock: MockClock,
) -> None:
    def user() -> str:
        raise Unauthenticated("canary", www_authenticate="Bearer")

    def resolver(user: str = Depends(user)) -> Identity:
        return Identity(user)

    async with hosted(runtime_with(ScriptedModel([])), resolver) as client:
        answer = await client.request("GET", f"{API}/sessions")
        assert answer.json()["detail"]["code"] == "unauthenticated"
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert b"canary" not in answer.body


async def test_a_resolver_may_read_the_body_first(autojump_clock: MockClock) -> None:
    async def resolver(request: Request) -> Identity:
        signed = await request.body()
        return Identity(json.loads(signed)["title"])

    async with hosted(runtime_with(ScriptedModel([])), resolver) as client:
        body = [b'{"title": ', b'"ada"', b"}"]
        answer = await client.request(
            "POST", f"{API}/sessions", content=body, headers={"content-type": "application/json"}
        )
        assert (answer.json()["title"], answer.json()["subject_id"]) == ("ada", "ada")


async def test_the_context_factory_gets_the_request_of_the_host(
    autojump_clock: MockClock,
) -> None:
    seen: list[Any] = []

    @tool(effect="read", approval="never")
    async def look(ctx: ToolContext) -> ToolResult:
        """Look."""
        seen.append(ctx.deps["service"])
        return ToolResult()

    host = FastAPI()
    host.state.service = object()
    script: list[Response] = [ModelCompleted(tool_calls=(ToolCall("look", {}),)), "Done."]
    agent = Agent(name="planner", instructions="-", tools=[look])
    runtime = runtime_with(ScriptedModel(script), agents=[agent])

    async def deps(request: Request, session: object, run: object) -> dict[str, Any]:
        return {"service": request.app.state.service}

    async with hosted(runtime, host=host, context_factory=deps) as client:
        await followed(client, await started(client))
    assert seen == [host.state.service]


async def test_context_variables_of_a_request_do_not_reach_its_run(
    autojump_clock: MockClock,
) -> None:
    variable = contextvars.ContextVar("variable", default="of nobody")
    seen: list[str] = []

    @tool(effect="read", approval="never")
    async def look(ctx: ToolContext) -> ToolResult:
        """Look."""
        seen.append(variable.get())
        return ToolResult()

    async def resolver() -> Identity:
        variable.set("of the request")
        return Identity("ada")

    def deps(*_: object) -> dict[str, Any]:
        seen.append(variable.get())
        return {}

    script: list[Response] = [ModelCompleted(tool_calls=(ToolCall("look", {}),)), "Done."]
    agent = Agent(name="planner", instructions="-", tools=[look])
    runtime = runtime_with(ScriptedModel(script), agents=[agent])
    async with hosted(runtime, resolver, context_factory=deps) as client:
        await followed(client, await started(client))
    assert seen == ["of the request", "of nobody"]


async def test_a_stream_hands_out_events_as_they_come_and_learns_that_its_client_left(
    autojump_clock: MockClock,
) -> None:
    model = GatedModel()
    runtime = runtime_with(model)
    async with hosted(runtime) as client:
        run = await started(client)
        async with client.stream("GET", f"{run}/events/stream") as stream:
            early = await SseReader().frames(stream, limit=4)
            assert early[-1].event is not None
        # Leaving waits until the application has ended; the run goes on.
        model.gate.set()
        events = await followed(client, run)
        assert events[-1]["type"] == "run.completed"


async def test_an_application_behind_the_router_waits_for_a_slow_reader(
    autojump_clock: MockClock,
) -> None:
    endless = Endless()
    router = ForwardingRouter(endless, identity_resolver=header_identity)
    router.forward("/endless", "GET")
    host = FastAPI()
    host.include_router(router)
    async with AsgiClient(host, headers=ADA) as client:
        async with client.stream("GET", "/endless") as stream:
            await anext(aiter(stream))
            await trio.testing.wait_all_tasks_blocked()
            assert endless.sent <= 3
        assert endless.left


def test_the_hosts_document_lists_the_routes_and_is_valid() -> None:
    host = FastAPI()
    router = create_router(runtime_with(ScriptedModel([])), identity_resolver=header_identity)
    host.include_router(router, prefix=API)
    document = host.openapi()
    validate(document)
    own = {path.removeprefix(API): set(methods) for path, methods in document["paths"].items()}
    assert own["/sessions/{session_id}/runs"] == {"get", "post"}
    assert own["/runs/{run_id}/events/stream"] == {"get"}
    create = document["paths"][f"{API}/sessions/{{session_id}}/runs"]["post"]
    names = {parameter["name"] for parameter in create["parameters"]}
    assert names == {"session_id", "Idempotency-Key", "x-user"}
    assert {"202", "401", "409", "413", "415", "422", "429", "503", "500"} <= set(
        create["responses"]
    )
    body = create["requestBody"]["content"]["application/json"]["schema"]
    assert set(body["properties"]) == {"input", "if_active"}
    assert "200" not in create["responses"]


def test_every_route_of_the_application_is_a_route_of_the_router() -> None:
    runtime = runtime_with(ScriptedModel([]))
    host = FastAPI()
    host.include_router(create_router(runtime, identity_resolver=header_identity))
    described = {
        (path, method) for path, methods in host.openapi()["paths"].items() for method in methods
    }
    app = create_app(runtime, identity_resolver=identify)
    rules = {rule.rule for rule in app.url_map.iter_rules()} - {"/openapi.json"}
    assert {path for path, _ in described} == {
        rule.replace("<", "{").replace(">", "}") for rule in rules
    }


@pytest.mark.parametrize("prefix", ["", "/a", "/tenants/{tenant}/assistant"])
async def test_links_lead_back_below_any_prefix(prefix: str, autojump_clock: MockClock) -> None:
    runtime = runtime_with(ScriptedModel([]))
    host = FastAPI()
    router = create_router(runtime, identity_resolver=header_identity)
    host.include_router(router, prefix=prefix)
    here = prefix.replace("{tenant}", "blue")
    async with runtime, AsgiClient(host, headers=ADA, root_path="/proxy") as client:
        for _ in range(2):
            await client.request("POST", f"{here}/sessions")
        page = await client.request("GET", f"{here}/sessions?limit=1")
        assert page.headers["link"].startswith(f"</proxy{here}/sessions?limit=1&")
        description = (await client.request("GET", f"{here}/openapi.json")).json()
        assert description["servers"] == [{"url": f"/proxy{here}"}]


def test_a_mount_point_is_found_from_the_end_of_the_path() -> None:
    def seen(path: str, root: str, depth: int) -> tuple[str, str]:
        scope = below({"path": path, "root_path": root}, depth)
        return scope["root_path"], scope["path"]

    assert seen("/api/sessions", "", 1) == ("/api", "/api/sessions")
    assert seen("/sessions/ses_1/runs", "", 3) == ("", "/sessions/ses_1/runs")
    assert seen("/proxy/api/sessions", "/proxy", 1) == ("/proxy/api", "/proxy/api/sessions")
    # The proxy removed its part of the path, and the host says which.
    assert seen("/api/sessions", "/proxy", 1) == ("/proxy/api", "/proxy/api/sessions")
    assert seen("/mcp", "", 0) == ("/mcp", "/mcp/")


async def test_another_application_is_forwarded_in_a_few_lines(autojump_clock: MockClock) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = (await receive())["body"].decode()
        where = f"{scope['root_path']}|{scope['path']}|{identity_of(scope)}|{body}"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": where.encode()})

    router = ForwardingRouter(app, identity_resolver=header_identity)
    router.forward("", "POST", summary="Something else")
    router.forward_rest("")
    host = FastAPI()
    host.include_router(router, prefix="/mcp")
    async with AsgiClient(host, headers=ADA) as client:
        answer = await client.request("POST", "/mcp", content=b"x")
        assert answer.body == b"/mcp|/mcp/|ada|x"
        assert (await client.request("GET", "/mcp")).body == b"/mcp|/mcp/|None|"


def identity_of(scope: Any) -> str | None:
    class Carrier:
        def __init__(self) -> None:
            self.scope = scope

    found = handed_identity(Carrier())  # type: ignore[arg-type]
    return None if found is None else found.subject_id


def test_bounds_are_checked_when_the_router_is_made() -> None:
    with pytest.raises(ValueError, match="above 0"):
        create_router(
            runtime_with(ScriptedModel([])), identity_resolver=header_identity, max_body_bytes=0
        )


async def test_a_host_served_by_our_server_ends_its_streams_when_it_stops() -> None:
    model, shutdown = GatedModel(), trio.Event()
    runtime = runtime_with(model, shutdown_grace_seconds=0.05)
    host = FastAPI()
    host.include_router(create_router(runtime, identity_resolver=header_identity), prefix=API)
    with trio.fail_after(300):
        async with trio.open_nursery() as nursery:
            run = partial(serve, host, runtime=runtime, port=0, shutdown=shutdown)
            url = await nursery.start(run)
            async with httpx.AsyncClient(base_url=url, headers=ADA, trust_env=False) as http:
                session = (await http.post(f"{API}/sessions")).json()
                path = f"{API}/sessions/{session['id']}/runs"
                made = (await http.post(path, json={"input": "Hi"})).json()
                stream_path = f"{API}/runs/{made['run_id']}/events/stream"
                async with http.stream("GET", stream_path) as stream:
                    await model.asked.wait()
                    shutdown.set()
                    frames = await SseReader().frames(stream.aiter_raw())
    assert frames[-1].comment == "reconnect"
