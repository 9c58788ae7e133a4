"""The two eras of the protocol: who speaks which, and what each demands."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.mcp.calling import LEGACY, META, MODERN, code_of, envelope, message, wire

INFO = {"name": "desk", "version": "1.0.0"}
ALL = [*LEGACY, MODERN]


@pytest.mark.parametrize("wanted", [*LEGACY, MODERN, "1999-01-01", None])
async def test_initialize_agrees_on_an_older_version(wanted: str | None) -> None:
    async with wire(instructions="Be kind.") as w:
        answer = await w.legacy("initialize", {"protocolVersion": wanted})
    assert answer.json()["result"] == {
        "protocolVersion": wanted if wanted in LEGACY else "2025-11-25",
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": INFO,
        "instructions": "Be kind.",
    }


async def test_discover_describes_the_server() -> None:
    async with wire(cache_ttl_ms=5000) as w:
        answer = await w.modern("server/discover")
    assert answer.json()["result"] == {
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": {"tools": {"listChanged": False}},
        "ttlMs": 5000,
        "cacheScope": "private",
        "_meta": {META + "serverInfo": INFO},
    }


async def test_lists_say_how_long_they_are_good_in_the_newer_era_only() -> None:
    async with wire() as w:
        old = (await w.legacy("tools/list")).json()["result"]
        new = (await w.modern("tools/list")).json()["result"]
    assert set(old) == {"tools"}
    assert (new["ttlMs"], new["cacheScope"]) == (0, "private")
    assert old["tools"] == new["tools"]


async def test_a_call_is_the_same_in_both_eras_but_for_the_marks() -> None:
    params = {"name": "add", "arguments": {"a": 1, "b": 2}}
    async with wire() as w:
        old = (await w.legacy("tools/call", params)).json()["result"]
        new = (await w.modern("tools/call", params)).json()["result"]
    assert envelope(old) == envelope(new) == {"tool_status": "success", "data": 3}
    assert set(old) == {"content", "isError"}
    assert set(new) == {*old, "resultType", "_meta"}


@pytest.mark.parametrize("header", [None, *LEGACY])
async def test_unknown_methods_and_bad_parameters_of_older_clients(header: str | None) -> None:
    headers = {} if header is None else {"mcp_protocol_version": header}
    async with wire() as w:
        unknown = await w.legacy("server/discover", **headers)
        no_tool = await w.legacy("tools/call", {"name": "none"}, **headers)
        cursor = await w.legacy("tools/list", {"cursor": "x"}, **headers)
        bad = await w.post(message("tools/list", [1]), **headers)
    assert [code_of(a) for a in (unknown, no_tool, cursor, bad)] == [-32601, *[-32602] * 3]
    assert {a.status for a in (unknown, no_tool, cursor, bad)} == {200}


@pytest.mark.parametrize("method", ["initialize", "ping", "resources/list", "tasks/get"])
async def test_methods_that_the_newer_era_does_not_have(method: str) -> None:
    async with wire() as w:
        answer = await w.modern(method, {"taskId": "x"} if method == "tasks/get" else {})
    assert (answer.status, code_of(answer)) == (404, -32601)


async def test_bad_parameters_of_newer_clients() -> None:
    async with wire() as w:
        answers = [
            await w.modern("tools/call", {"name": "none"}),
            await w.modern("tools/call", {"name": "add", "arguments": [1]}),
            await w.modern("tools/call"),
            await w.modern("tools/list", {"cursor": "x"}),
        ]
    assert {(a.status, code_of(a)) for a in answers} == {(400, -32602)}


@pytest.mark.parametrize(
    "meta",
    [
        None,
        [],
        {},
        {META + "protocolVersion": MODERN},
        {META + "clientCapabilities": {}},
        {META + "protocolVersion": 1, META + "clientCapabilities": {}},
        {META + "protocolVersion": MODERN, META + "clientCapabilities": []},
    ],
)
async def test_newer_requests_describe_themselves(meta: Any) -> None:
    headers = {"mcp_protocol_version": MODERN, "mcp_method": "tools/list"}
    async with wire() as w:
        answer = await w.post(message("tools/list", {"_meta": meta}), **headers)
    assert (answer.status, code_of(answer)) == (400, -32602)
    assert answer.json()["id"] == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"mcp_protocol_version": "2025-11-25"},
        {"mcp_method": "tools/list"},
        {"mcp_name": "fail"},
        {"mcp_name": ""},
        {"mcp_name": "=?base64?!!?="},
    ],
)
async def test_headers_repeat_the_body(headers: dict[str, Any]) -> None:
    async with wire() as w:
        params = {"name": "add", "arguments": {"a": 1, "b": 2}}
        answer = await w.modern("tools/call", params, **headers)
    assert (answer.status, code_of(answer)) == (400, -32020)
    assert w.desk.contexts == []


async def test_a_name_may_be_encoded() -> None:
    packed = base64.b64encode(b"add").decode()
    async with wire() as w:
        params = {"name": "add", "arguments": {"a": 1, "b": 2}}
        answer = await w.modern("tools/call", params, mcp_name=f"=?base64?{packed}?=")
    assert answer.status == 200


@pytest.mark.parametrize("version", ["2099-01-01", "x", ""])
async def test_an_unknown_version_is_told_the_known_ones(version: str) -> None:
    async with wire() as w:
        answer = await w.legacy("ping", mcp_protocol_version=version)
    assert (answer.status, code_of(answer)) == (400, -32022)
    assert answer.json()["error"]["data"] == {"supported": ALL, "requested": version}
    assert answer.json()["id"] == 1


async def test_an_unknown_version_of_the_newer_era_is_told_what_it_could_switch_to() -> None:
    meta: dict[str, Any] = {META + "protocolVersion": "2099-01-01", META + "clientCapabilities": {}}
    headers = {"mcp_protocol_version": "2099-01-01", "mcp_method": "tools/list"}
    async with wire() as w:
        answer = await w.post(message("tools/list", {"_meta": meta}), **headers)
    data = answer.json()["error"]["data"]
    assert data == {"supported": [MODERN], "requested": "2099-01-01"}


@pytest.mark.parametrize("message_id", [None, True, [], {}])
async def test_a_bad_id_is_answered_without_one(message_id: Any) -> None:
    async with wire() as w:
        body = message("tools/call", {"name": "add"}, message_id)
        old = await w.post(body)
        new = await w.post(body, mcp_protocol_version=MODERN)
    assert (old.status, new.status) == (200, 400)
    for answer in (old, new):
        assert (code_of(answer), answer.json()["id"]) == (-32600, None)
    assert w.desk.contexts == []


@pytest.mark.parametrize("message_id", [0, -1, 1.5, "", "é"])
async def test_a_good_id_comes_back(message_id: Any) -> None:
    async with wire() as w:
        answer = await w.post(message("ping", {}, message_id))
        await w.post(message("tools/call", {"name": "add", "arguments": {"a": 1, "b": 1}}, "é"))
    assert answer.json()["id"] == message_id
    assert w.desk.contexts[0].call_id == "é"


@pytest.mark.parametrize("version", ALL)
async def test_a_notification_executes_nothing(version: str) -> None:
    async with wire() as w:
        body = {
            "jsonrpc": "2.0",
            "method": "tools/call",
            "params": {"name": "book", "arguments": {"city": "Rome"}},
        }
        answer = await w.post(body, mcp_protocol_version=version)
    assert (answer.status, answer.body) == (202, b"")
    assert w.desk.booked == []


async def test_a_response_is_accepted_from_older_clients_only() -> None:
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "result": {}}
    async with wire() as w:
        old, new = await w.post(body), await w.post(body, mcp_protocol_version=MODERN)
    assert old.status == 202
    assert (new.status, code_of(new)) == (400, -32600)


async def test_the_oldest_version_has_batches() -> None:
    items = [
        message("ping", {}, 1),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        message("none", {}, 2),
        5,
    ]
    async with wire() as w:
        answer = await w.post(items)
        quiet = await w.post([items[1]], mcp_protocol_version="2025-03-26")
        empty = await w.post([])
    assert answer.status == 200
    assert [(a["id"], "error" in a) for a in answer.json()] == [(1, False), (2, True), (None, True)]
    assert (quiet.status, quiet.body) == (202, b"")
    assert (empty.status, code_of(empty)) == (400, -32600)


async def test_a_batch_is_bounded() -> None:
    async with wire() as w:
        full = await w.post([message("tools/list", {}, number) for number in range(100)])
        over = await w.post([message("tools/list", {}, number) for number in range(101)])
    assert len(full.json()) == 100
    assert (over.status, code_of(over)) == (400, -32600)


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", MODERN])
async def test_later_versions_have_no_batches(version: str) -> None:
    async with wire() as w:
        answer = await w.post([message("ping", {})], mcp_protocol_version=version)
    assert (answer.status, code_of(answer)) == (400, -32600)
