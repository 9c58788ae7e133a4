"""Messages that nobody thought of: never a crash, and a notification never executes anything."""

from __future__ import annotations

from typing import Any, cast

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from rungent.mcp import McpTasks
from rungent.testing.asgi import AsgiResponse
from tests.mcp.calling import CAN_ASK, LEGACY, META, MODERN, wire

SETTINGS = settings(max_examples=250, deadline=None, database=None, derandomize=True)

Strategy = st.SearchStrategy[Any]

scalars: Strategy = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=6)
)
anything: Strategy = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)
METHODS = (
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "tools/call",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
)
METAS: Strategy = st.one_of(
    anything,
    st.fixed_dictionaries(
        {},
        optional={
            META + "protocolVersion": st.sampled_from([*LEGACY, MODERN]) | anything,
            META + "clientCapabilities": st.just(CAN_ASK) | anything,
        },
    ),
)
PARAMS: Strategy = st.one_of(
    anything,
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.sampled_from(["add", "book", "ask", "ship", "answered"]) | anything,
            "arguments": st.just({"city": "Rome"}) | anything,
            "taskId": anything,
            "cursor": anything,
            "requestState": anything,
            "inputResponses": anything,
            "_meta": METAS,
        },
    ),
)
MESSAGES: Strategy = st.one_of(
    anything,
    st.fixed_dictionaries(
        {},
        optional={
            "jsonrpc": st.just("2.0") | anything,
            "id": scalars | anything,
            "method": st.sampled_from(METHODS) | anything,
            "params": PARAMS,
            "result": anything,
            "error": anything,
        },
    ),
)
TEXTS = st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), max_size=8)
HEADERS: Strategy = st.fixed_dictionaries(
    {},
    optional={
        "mcp-protocol-version": st.sampled_from([*LEGACY, MODERN]) | TEXTS,
        "mcp-method": st.sampled_from(METHODS) | TEXTS,
        "mcp-name": st.sampled_from(["add", "book", "ask", "ship"]) | TEXTS,
    },
)
STATUSES = {200, 202, 400, 404}


def is_answer(value: Any) -> bool:
    """Whether this is a JSON-RPC answer."""
    assert isinstance(value, dict)
    message = cast("dict[str, Any]", value)
    one = ("result" in message) != ("error" in message)
    return message["jsonrpc"] == "2.0" and "id" in message and one


def check(answer: AsgiResponse) -> None:
    """Every answer is documented: its status, and a body of JSON-RPC or none."""
    assert answer.status in STATUSES, answer
    if answer.status == 202:
        assert answer.body == b""
        return
    value = answer.json()
    batch = isinstance(value, list)
    assert all(map(is_answer, cast("list[Any]", value) if batch else [value]))


@SETTINGS
@given(MESSAGES | st.lists(MESSAGES, max_size=3), HEADERS)
def test_any_message_is_answered_as_documented(body: Any, headers: dict[str, str]) -> None:
    async def main() -> None:
        async with wire(tasks=McpTasks()) as w:
            check(await w.http.request("POST", "/", json=body, headers=headers))

    trio.run(main, clock=MockClock(autojump_threshold=0))


@SETTINGS
@given(st.binary(max_size=60), HEADERS)
def test_any_bytes_are_answered_as_documented(body: bytes, headers: dict[str, str]) -> None:
    async def main() -> None:
        async with wire() as w:
            sent = {"content-type": "application/json", **headers}
            check(await w.http.request("POST", "/", content=body, headers=sent))

    trio.run(main, clock=MockClock(autojump_threshold=0))


@SETTINGS
@given(PARAMS, HEADERS, st.integers(0, 2))
def test_no_notification_executes_anything(
    params: Any, headers: dict[str, str], batched: int
) -> None:
    """Whatever its parameters are, alone or in a batch."""
    one = {"jsonrpc": "2.0", "method": "tools/call", "params": params}
    body = [one] * batched if batched else one

    async def main() -> None:
        async with wire() as w:
            answer = await w.http.request("POST", "/", json=body, headers=headers)
            assert answer.status in {202, 400}
            assert w.desk.contexts == []
            assert w.desk.booked == []

    trio.run(main, clock=MockClock(autojump_threshold=0))
