"""What the endpoint demands of a request before it looks into the body, and how it refuses."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from quart import Request, abort
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from rungent import Identity, Runtime
from rungent.asgi import create_app
from rungent.mcp import create_mcp_asgi, create_mcp_blueprint
from rungent.store import MemoryStore
from rungent.testing import ScriptedModel
from rungent.testing.asgi import AsgiApp, AsgiClient
from tests.mcp.calling import code_of, message, wire
from tests.mcp.desk import AGENT

PING = message("ping", {})
HERE = "https://app.example"


async def test_a_foreign_origin_is_refused_before_anything_else() -> None:
    async with wire() as w:
        answer = await w.post(PING, origin="https://evil.example", x_user="nobody")
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("allowed", [[HERE], ["*"]])
async def test_an_allowed_origin_gets_what_browsers_need(allowed: list[str]) -> None:
    async with wire(allowed_origins=allowed) as w:
        asked = await w.http.request("OPTIONS", "/", headers={"origin": HERE, "x-user": "nobody"})
        answer = await w.post(PING, origin=HERE)
        refused = await w.post(PING, origin=HERE, x_user="nobody")
    assert (asked.status, asked.body) == (204, b"")
    assert asked.headers["access-control-allow-methods"] == "POST, OPTIONS"
    assert "Mcp-Name" in asked.headers["access-control-allow-headers"]
    for response in (answer, refused):
        assert response.headers["access-control-allow-origin"] == HERE


@pytest.mark.parametrize("user", ["nobody", "forbidden"])
async def test_an_unknown_client_learns_where_to_sign_in(user: str) -> None:
    url = "https://app.example/.well-known/oauth-protected-resource"
    async with wire(resource_metadata_url=url, server_name='The\n"désk"') as w:
        answer = await w.post(PING, x_user=user)
    assert answer.status == 401
    assert answer.json() == {"error": "unauthorized"}
    shown = answer.headers["www-authenticate"]
    assert shown == f'Bearer realm="The?\\"d?sk\\"", resource_metadata="{url}"'


async def test_the_sign_in_may_depend_on_the_request_or_be_the_hosts_own() -> None:
    def located(request: Request) -> str:
        return f"https://{request.host}/meta"

    async with wire(resource_metadata_url=located) as w:
        found = await w.post(PING, x_user="nobody")
        own = await w.post(PING, x_user="refused")
    assert 'resource_metadata="https://testserver/meta"' in found.headers["www-authenticate"]
    assert own.headers["www-authenticate"] == 'Bearer realm="mine"'


async def test_whatever_breaks_in_the_host_is_a_fixed_text() -> None:
    def broken(request: Request) -> dict[str, Any]:
        raise RuntimeError("canary")

    async with wire(context_factory=broken) as w:
        answers = [
            await w.post(PING, x_user="broken"),
            await w.legacy("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}),
        ]
    for answer in answers:
        assert answer.status == 500
        assert code_of(answer) == -32603
        assert b"canary" not in answer.body


async def test_exceptions_of_the_framework_pass() -> None:
    def busy(request: Request) -> Identity:
        abort(503)

    async with wire(identity_resolver=busy) as w:
        assert (await w.post(PING)).status == 503


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD"])
async def test_only_posts_are_answered(method: str) -> None:
    async with wire() as w:
        answer = await w.http.request(method, "/")
    assert answer.status == 405
    assert answer.headers["allow"] == "POST, OPTIONS"


@pytest.mark.parametrize(
    ("headers", "content", "status"),
    [
        ({"content-type": "text/plain"}, b"{}", 415),
        ({}, b"{}", 415),
        ({"content-type": "application/json", "accept": "text/event-stream"}, b"{}", 406),
        ({"content-type": "application/json", "accept": "application/json;q=0"}, b"{}", 406),
        ({"content-type": "application/json"}, b" " * 2000, 413),
        ({"content-type": "application/json"}, b"{", 400),
        ({"content-type": "application/json"}, b"\xff", 400),
        ({"content-type": "application/json"}, b"[" * 500, 400),
    ],
)
async def test_bad_requests_are_refused(
    headers: dict[str, str], content: bytes, status: int
) -> None:
    async with wire(max_body_bytes=1000) as w:
        answer = await w.http.request("POST", "/", content=content, headers=headers)
    assert answer.status == status
    if status == 400:
        assert code_of(answer) == -32700


@pytest.mark.parametrize(
    "accept", ["application/json, text/event-stream", "*/*", "application/*;q=0.5"]
)
async def test_who_accepts_json_gets_json(accept: str) -> None:
    async with wire() as w:
        answer = await w.post(PING, accept=accept)
    assert answer.json() == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert "mcp-session-id" not in answer.headers


async def test_a_client_that_goes_away_cancels_its_call() -> None:
    async with wire() as w, trio.open_nursery() as nursery:
        nursery.start_soon(w.legacy, "tools/call", {"name": "wait"})
        await w.desk.waiting.wait()
        nursery.cancel_scope.cancel()
    assert w.desk.cancelled.is_set()


def ada(request: Request) -> Identity:
    return Identity("ada")


def nobody(request: Request) -> None:
    return None


def endpoint(**options: Any) -> AsgiApp:
    return create_mcp_asgi(AGENT, identity_resolver=ada, **options)


async def pings(client: AsgiClient, path: str) -> int:
    return (await client.request("POST", path, json=PING)).status


async def test_the_endpoint_is_the_root_of_the_application() -> None:
    async with AsgiClient(endpoint()) as client:
        assert [await pings(client, "/"), await pings(client, "/other")] == [200, 404]


async def test_a_router_may_name_it_as_the_endpoint_of_a_route_or_mount_it() -> None:
    app = Starlette(
        routes=[
            Route("/mcp", endpoint=endpoint()),
            Mount("/inner", routes=[Route("/mcp", endpoint=endpoint())]),
            Mount("/mounted", app=endpoint()),
        ]
    )
    async with AsgiClient(app) as client:
        for path in ("/mcp", "/inner/mcp", "/mounted/"):
            assert await pings(client, path) == 200


async def test_the_application_of_the_routes_mounts_it() -> None:
    runtime = Runtime(agents=[AGENT], model=ScriptedModel([]), store=MemoryStore())
    app = create_app(runtime, identity_resolver=nobody, mounts={"/mcp": endpoint()})
    async with AsgiClient(app) as client:
        for path in ("/mcp", "/mcp/"):
            assert await pings(client, path) == 200
        assert await pings(client, "/mcp/other") == 404
        assert (await client.request("GET", "/sessions")).status == 401


async def test_a_quart_host_registers_the_blueprint() -> None:
    from quart_trio import QuartTrio

    app = QuartTrio(__name__)
    resolver: dict[str, Any] = {"identity_resolver": ada}
    app.register_blueprint(create_mcp_blueprint(AGENT, **resolver), url_prefix="/mcp")
    other = create_mcp_blueprint(AGENT, name="other", **resolver)
    app.register_blueprint(other, url_prefix="/other")
    async with AsgiClient(app) as client:
        for path in ("/mcp", "/mcp/", "/other"):
            assert await pings(client, path) == 200
        assert (await client.request("GET", "/mcp")).status == 405


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"approval": "sometimes"}, "approval"),
        ({"max_body_bytes": 0}, "max_body_bytes"),
        ({"cache_ttl_ms": -1}, "cache_ttl_ms"),
        ({"state_keys": [b"short"]}, "state key"),
        ({"state_ttl_seconds": 0}, "state_ttl_seconds"),
        ({"tools": ["unknown"]}, "tools"),
        ({"tools": [AGENT]}, "tools"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        endpoint(**options)


def test_one_text_is_no_collection_of_origins() -> None:
    with pytest.raises(TypeError):
        endpoint(allowed_origins=HERE)
