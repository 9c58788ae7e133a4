"""The application form, the blueprint form, mounts, and a runtime that crashes."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from quart import Blueprint
from quart_trio import QuartTrio
from trio.testing import MockClock

from rungent import Identity, Runtime
from rungent.asgi import create_app, create_blueprint
from rungent.store import MemoryStore
from rungent.testing import ScriptedModel
from rungent.testing.asgi import AsgiApp, AsgiClient
from tests.asgi.apps import ADA, app_of, detail, identify, runtime_with, world


def echo(name: str) -> AsgiApp:
    """An application that answers with its name and the path it sees."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        text = f"{name} {scope['root_path']}|{scope['path']}".encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": text})

    return app


async def test_mounts_get_the_rest_of_the_path_and_the_longest_prefix_wins(
    autojump_clock: MockClock,
) -> None:
    mounts = {"/mcp": echo("mcp"), "/mcp/deep": echo("deep")}
    async with world(mounts=mounts) as w:
        for path, text in {
            "/mcp": "mcp |/",
            "/mcp/": "mcp |/",
            "/mcp/a/b": "mcp |/a/b",
            "/mcp/deeper": "mcp |/deeper",
            "/mcp/deep": "deep |/",
            "/mcp/deep/x": "deep |/x",
        }.items():
            assert (await w.client.request("POST", path)).body.decode() == text
        assert (await w.client.request("GET", "/mcpx")).status == 404
        assert (await w.client.request("GET", "/sessions")).status == 200


async def test_mounts_work_where_the_application_is_mounted_itself(
    autojump_clock: MockClock,
) -> None:
    runtime = runtime_with(ScriptedModel([]))
    app = app_of(runtime, mounts={"/mcp": echo("mcp")})
    async with runtime, AsgiClient(app, root_path="/host", headers=ADA, lifespan=False) as client:
        assert (await client.request("GET", "/mcp/x")).body == b"mcp |/x"
        assert (await client.request("GET", "/sessions")).status == 200


@pytest.mark.parametrize("prefix", ["", "/", "mcp", "/mcp/"])
async def test_a_mount_must_be_a_path_below_the_root(prefix: str) -> None:
    with pytest.raises(ValueError, match="slash"):
        app_of(runtime_with(ScriptedModel([])), mounts={prefix: echo("mcp")})


@pytest.mark.parametrize("bounds", [{"keepalive_seconds": 0}, {"max_body_bytes": 0}])
async def test_bounds_must_be_positive(bounds: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="above 0"):
        app_of(runtime_with(ScriptedModel([])), **bounds)
    with pytest.raises(ValueError, match="above 0"):
        create_blueprint(runtime_with(ScriptedModel([])), identity_resolver=identify, **bounds)


async def test_the_lifespan_serves_the_runtime_and_stops_it_in_order(
    autojump_clock: MockClock,
) -> None:
    runtime = runtime_with(ScriptedModel(["ok"]))
    states: list[bool] = []
    for _ in range(2):
        states.append(runtime.serving)
        async with AsgiClient(app_of(runtime), headers=ADA) as client:
            states.append(runtime.serving)
            assert (await client.request("GET", "/sessions")).status == 200
        states.append(runtime.serving)
    assert states == [False, True, False] * 2


async def test_a_runtime_that_is_served_already_is_left_alone(autojump_clock: MockClock) -> None:
    runtime = runtime_with(ScriptedModel([]))
    async with runtime:
        async with AsgiClient(app_of(runtime), headers=ADA) as client:
            assert (await client.request("POST", "/sessions")).status == 200
        assert runtime.serving


class CrashingStore(MemoryStore):
    """Takes the runtime down when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.crash = trio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[MemoryStore, None]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._fail)
            yield self
            nursery.cancel_scope.cancel()

    async def _fail(self) -> None:
        await self.crash.wait()
        raise OSError("the disk is gone")


async def test_a_crash_of_the_runtime_is_logged_and_every_request_refused(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    store = CrashingStore()
    async with world(runtime_options={"store": store}) as w:
        session_id = await w.session()
        with caplog.at_level(logging.ERROR, logger="rungent"):
            store.crash.set()
            await trio.testing.wait_all_tasks_blocked()
        assert "the runtime crashed" in caplog.text
        assert "OSError: the disk is gone" in caplog.text
        for path in ("/sessions", f"/sessions/{session_id}"):
            answer = await w.client.request("GET", path)
            assert (answer.status, detail(answer)["code"]) == (503, "shutting_down")
            assert int(answer.headers["retry-after"]) >= 1


async def test_a_runtime_that_cannot_start_prevents_the_application(
    autojump_clock: MockClock,
) -> None:
    class Closed(MemoryStore):
        exists = False

        @asynccontextmanager
        async def open(self) -> AsyncGenerator[MemoryStore, None]:
            await trio.lowlevel.checkpoint()
            if not self.exists:
                raise OSError("no such file")
            yield self

    app = app_of(runtime_with(ScriptedModel([]), store=Closed()))
    with pytest.RaisesGroup(
        pytest.RaisesExc(RuntimeError, match=r"lifespan\.startup\.failed"),
        flatten_subgroups=True,
    ):
        await AsgiClient(app).__aenter__()


def blueprint_app(runtime: Runtime, blueprint: Blueprint) -> QuartTrio:
    app = QuartTrio(__name__)
    app.url_map.strict_slashes = False
    app.register_blueprint(blueprint, url_prefix="/api/assistant")

    async def begin() -> None:
        await app.nursery.start(runtime.serve)

    app.before_serving(begin)
    app.after_serving(runtime.stop)
    return app


async def test_a_blueprint_works_in_a_host_of_its_own_and_twice(autojump_clock: MockClock) -> None:
    runtime = runtime_with(ScriptedModel(["Rome."]))
    app = blueprint_app(runtime, create_blueprint(runtime, identity_resolver=identify))
    second = create_blueprint(
        runtime, identity_resolver=lambda request: Identity("ada"), name="second"
    )
    app.register_blueprint(second, url_prefix="/second")
    async with AsgiClient(app) as client:
        path = "/api/assistant/sessions"
        assert (await client.request("POST", path)).status == 401
        session_id = (await client.request("POST", path, headers=ADA)).json()["id"]
        run = await client.request(
            "POST", f"{path}/{session_id}/runs", json={"input": "Where?"}, headers=ADA
        )
        stream = f"/api/assistant/runs/{run.json()['run_id']}/events/stream"
        assert b"Rome." in (await client.request("GET", stream, headers=ADA)).body
        for method in ("PUT", "HEAD", "OPTIONS"):
            assert (await client.request(method, path)).headers["allow"] == "GET, POST"
        assert (await client.request("GET", path + "/", headers=ADA)).status == 404
        assert (await client.request("GET", "/api/assistant//sessions", headers=ADA)).status == 404
        unknown = await client.request("GET", "/api/assistant/nothing")
        assert (unknown.status, unknown.headers["content-type"][:9]) == (404, "text/html")
        assert len((await client.request("GET", "/second/sessions")).json()) == 1


async def test_a_hosts_own_routes_and_errors_stay_its_own(autojump_clock: MockClock) -> None:
    runtime = runtime_with(ScriptedModel([]))
    app = create_app(runtime, identity_resolver=identify, url_prefix="/api")

    async def trip() -> tuple[str, int]:
        await trio.lowlevel.checkpoint()
        return "no trip", 404

    app.add_url_rule("/trip", view_func=trip)
    app.add_url_rule("/trip/new", endpoint="new", view_func=trip, methods=["POST"])
    async with AsgiClient(app) as client:
        assert (await client.request("GET", "/trip")).body == b"no trip"
        refused = await client.request("POST", "/trip")
        assert (refused.status, detail(refused)["code"]) == (405, "method_not_allowed")
        assert "GET" in refused.headers["allow"]
        assert (await client.request("GET", "/trip/new")).headers["allow"] == "OPTIONS, POST"
        odd = await client.request("BREW", "/api/sessions")
        assert (odd.status, odd.headers["allow"]) == (405, "GET, POST")


async def test_an_application_without_its_lifespan_refuses_runs(autojump_clock: MockClock) -> None:
    runtime = runtime_with(ScriptedModel([]))
    async with AsgiClient(app_of(runtime), headers=ADA, lifespan=False) as client:
        session_id = (await client.request("POST", "/sessions")).json()["id"]
        answer = await client.request("POST", f"/sessions/{session_id}/runs", json={"input": "Hi"})
        assert (answer.status, detail(answer)["code"]) == (503, "shutting_down")
