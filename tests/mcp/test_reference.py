"""The page about external agents says what the code says."""

from __future__ import annotations

import re

from rungent.asgi.mcp.messages import Code
from rungent.asgi.mcp.options import McpOptions, mcp_settings
from rungent.ids import system_now
from rungent.mcp import McpTasks
from tests.docs.pages import code, page, rows, section
from tests.docs.test_reference import signature_rows

PAGE = "docs/mcp.md"


def shown(default: object) -> str:
    return "system_now" if default is system_now else str(default)


def test_options_have_their_default() -> None:
    listed = {code(row[0]): code(row[1]) or row[1] for row in rows(section(PAGE, "Options"))}
    known = {
        name: shown(default)
        for name, default in signature_rows(mcp_settings).items()
        if name not in {"agent", "passing"}
    }
    assert listed == known
    assert set(McpOptions.__annotations__) == set(known)


def test_arguments_of_tasks_have_their_default() -> None:
    table = [row for row in rows(section(PAGE, "Tasks")) if len(row) == 3]
    listed = {code(row[0]): code(row[1]) for row in table}
    assert listed == {k: shown(v) for k, v in signature_rows(McpTasks).items()}


def test_methods_of_tasks_are_listed() -> None:
    table = section(PAGE, "Tasks")
    listed = set(re.findall(r"^\| `(\w+)\(", table, re.MULTILINE))
    inner = {"begin", "find", "cancel", "deferring_tools"}
    assert listed == {n for n in dir(McpTasks) if not n.startswith("_")} - inner


def test_json_rpc_codes_are_listed() -> None:
    table = rows(section("docs/codes.md", "JSON-RPC codes"))
    listed = {code(row[1]): int(row[0].replace("−", "-")) for row in table}
    assert listed == {kind.name: int(kind) for kind in Code}
    described = re.findall(r"^\| −(\d+) \|", page(PAGE), re.MULTILINE)
    assert {-int(number) for number in described} == set(Code)
