"""The official inspector's command line: a list and a call."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from rungent import Identity
from rungent.mcp import create_mcp_asgi
from tests.mcp.desk import AGENT, Desk
from tests.mcp.node import INSPECTOR, run_node
from tests.mcp.serving import served


async def inspect(url: str, *arguments: str) -> Any:
    options = ("--cli", url, "--transport", "http")
    code, output = await run_node(INSPECTOR, *options, *arguments)
    assert code == 0, output
    return json.loads(output[output.index("{") :])


@pytest.mark.usefixtures("judges")
async def test_the_inspector_lists_and_calls_tools() -> None:
    desk = Desk()
    app = create_mcp_asgi(
        AGENT,
        identity_resolver=lambda request: Identity("ada"),
        context_factory=lambda request: {"desk": desk},
    )
    with trio.fail_after(300):
        async with served(app) as url:
            listed = await inspect(url, "--method", "tools/list")
            call = ("--method", "tools/call", "--tool-name", "add")
            result = await inspect(url, *call, "--tool-arg", "a=2", "--tool-arg", "b=3")
    assert [tool["name"] for tool in listed["tools"]][:2] == ["add", "fail"]
    assert json.loads(result["content"][0]["text"]) == {"tool_status": "success", "data": 5}
