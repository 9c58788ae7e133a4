"""The shape of the code: who may import whom, how large things are, what is public."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {
    "rungent": ROOT / "rungent",
    "rungent.asgi": ROOT / "asgi",
    "rungent.persistence": ROOT / "persistence",
    "rungent.testing": ROOT / "testing",
    "rungent.demo": ROOT / "docs" / "examples" / "trip_planner",
}
TOP_LEVEL = {"rungent", "asgi", "persistence", "testing", "sdk", "tests", "docs"}
TOP_FILES = {
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Makefile",
}

MODULE_LINES = 400
FUNCTION_LINES = 60

# Which of our packages each package may import besides itself.
VALUES = {
    "rungent.agent",
    "rungent.catalog",
    "rungent.errors",
    "rungent.events",
    "rungent.identity",
    "rungent.ids",
    "rungent.interactions",
    "rungent.options",
    "rungent.records",
    "rungent.skill",
    "rungent.text",
    "rungent.tools",
}
PUBLIC = VALUES | {
    "rungent",
    "rungent.llm",
    "rungent.logs",
    "rungent.store",
    "rungent.runtime",
    "rungent.access",
}
MAY_IMPORT = {
    "rungent.errors": set[str](),
    "rungent.ids": set[str](),
    "rungent.text": set[str](),
    "rungent.frozen": set[str](),
    "rungent.identity": {"rungent.text"},
    "rungent.catalog": {"rungent.text"},
    "rungent.events": {"rungent.frozen", "rungent.text"},
    "rungent.logs": {"rungent.text"},
    "rungent.interactions": {"rungent.errors", "rungent.text"},
    "rungent.records": {
        "rungent.events",
        "rungent.frozen",
        "rungent.identity",
        "rungent.interactions",
    },
    "rungent.tools": {
        "rungent.errors",
        "rungent.identity",
        "rungent.ids",
        "rungent.interactions",
        "rungent.text",
    },
    "rungent.agent": {
        "rungent.llm",
        "rungent.records",
        "rungent.skill",
        "rungent.text",
        "rungent.tools",
    },
    "rungent.skill": {"rungent.tools"},
    "rungent.llm": {"rungent.events", "rungent.ids", "rungent.records", "rungent.text"},
    "rungent.store": VALUES,
    "rungent._lifecycle": VALUES | {"rungent.llm"},
    "rungent._drive": VALUES
    | {"rungent._lifecycle", "rungent.creation", "rungent.llm", "rungent.store"},
    "rungent.asgi": PUBLIC,
    "rungent.persistence": PUBLIC | {"rungent.verify"},
    "rungent.testing": PUBLIC | {"rungent.asgi", "rungent.sqlalchemy", "rungent.verify"},
    "rungent.verify": {"rungent.events", "rungent.records"},
}
PURE = ("rungent._lifecycle", "rungent.interactions", "rungent.tools", "rungent.verify")
PURE_MODULES = {
    "rungent.asgi.mcp.catalog",
    "rungent.asgi.mcp.elicitation",
    "rungent.asgi.mcp.eras",
    "rungent.asgi.mcp.messages",
    "rungent.asgi.mcp.results",
    "rungent.records",
    "rungent.events",
    "rungent.text",
    "rungent.errors",
    "rungent.catalog",
    "rungent.llm.port",
    "rungent.llm.sse",
    "rungent.llm.assembly",
}
ONLY_IN = {
    "asyncio": (
        "rungent.asgi.border",
        "rungent.asgi.embed",
        "rungent.asgi.trio_run",
        "rungent.persistence.executors",
    ),
    "fastapi": ("rungent.asgi.fastapi_router", "rungent.asgi.mcp.fastapi_router"),
    "httpx": ("rungent.llm.openai", "rungent.demo"),
    "quart": ("rungent.asgi", "rungent.demo"),
    "quart_trio": ("rungent.asgi", "rungent.demo"),
    "hypercorn": ("rungent.asgi", "rungent.demo"),
    "sqlalchemy": ("rungent.persistence", "rungent.demo", "rungent.testing.stores"),
    "questionary": ("rungent.demo",),
    "rich": ("rungent.demo",),
    "pytest": ("rungent.testing",),
    "starlette": ("rungent.asgi.fastapi_router", "rungent.asgi.mcp.fastapi_router"),
}


def modules() -> Iterator[tuple[str, Path]]:
    for package, folder in FOLDERS.items():
        for path in sorted(folder.rglob("*.py")):
            relative = path.relative_to(folder)
            if package == "rungent" and (folder / relative.parts[0]).is_symlink():
                continue
            name = ".".join((package, *relative.with_suffix("").parts))
            yield name.removesuffix(".__init__"), path


MODULES = dict(modules())


def imports_of(name: str) -> set[str]:
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def package_of(name: str) -> str | None:
    known = [package for package in MAY_IMPORT if within(name, package)]
    return max(known, key=len, default=None)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_modules_import_only_what_the_table_allows(name: str) -> None:
    package = package_of(name)
    if package is None:
        return
    allowed = MAY_IMPORT[package] | {package}
    for imported in imports_of(name):
        if not within(imported, "rungent") or imported not in MODULES:
            continue
        exact = imported == "rungent" and "rungent" in allowed
        assert exact or any(within(imported, ok) for ok in allowed if ok != "rungent"), imported


@pytest.mark.parametrize("name", sorted(MODULES))
def test_pure_modules_know_no_io_library(name: str) -> None:
    if name in PURE_MODULES or any(within(name, package) for package in PURE):
        roots = {imported.split(".")[0] for imported in imports_of(name)}
        assert roots.isdisjoint({"trio", "httpx", "quart", "sqlalchemy", "asyncio", "time"})


@pytest.mark.parametrize("name", sorted(MODULES))
def test_each_foreign_library_has_one_home(name: str) -> None:
    for imported in imports_of(name):
        homes = ONLY_IN.get(imported.split(".")[0])
        assert homes is None or any(within(name, home) for home in homes), imported


@pytest.mark.parametrize("name", sorted(MODULES))
def test_modules_say_what_they_do_and_stay_small(name: str) -> None:
    text = MODULES[name].read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), "a module states its job in a docstring"
    assert len(text.splitlines()) <= MODULE_LINES


@pytest.mark.parametrize("name", sorted(MODULES))
def test_functions_stay_small(name: str) -> None:
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < FUNCTION_LINES, node.name


def test_nothing_sleeps_with_the_time_module() -> None:
    for name, path in MODULES.items():
        assert "time.sleep" not in imports_of(name)
        assert "time.sleep(" not in path.read_text(encoding="utf-8"), name


def test_every_package_is_listed_for_the_build() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = set(settings["tool"]["setuptools"]["packages"])
    packages = {name for name, path in MODULES.items() if path.name == "__init__.py"}
    # The pages travel beside the example, which serves them; they are no code.
    assert listed == packages | {"rungent.demo.docs"}


def test_top_level_holds_the_fixed_folders_and_project_files_only() -> None:
    visible = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    built = {name for name in visible if name.endswith(".egg-info") or name in {"build", "dist"}}
    assert visible - built <= TOP_LEVEL | TOP_FILES


@pytest.mark.parametrize(
    "module",
    [
        "rungent",
        "rungent.asgi",
        "rungent.fastapi",
        "rungent.llm",
        "rungent.mcp",
        "rungent.sqlalchemy",
        "rungent.store",
    ],
)
def test_public_modules_export_sorted_names_that_exist(module: str) -> None:
    exported = importlib.import_module(module)
    names: list[str] = exported.__all__
    assert names == sorted(names)
    assert all(hasattr(exported, name) for name in names)


def test_the_canonical_imports_work() -> None:
    from rungent import (
        Agent,
        DeferredRequest,
        Identity,
        InteractionRequest,
        RunActivity,
        Runtime,
        ToolContext,
        ToolContinuation,
        ToolResult,
        tool,
    )
    from rungent.asgi import create_app, create_blueprint
    from rungent.asgi.embed import Embedded
    from rungent.fastapi import create_router
    from rungent.llm import OpenAICompatibleModel
    from rungent.mcp import create_mcp_asgi, create_mcp_blueprint
    from rungent.sqlalchemy import RungentBase, SQLAlchemyStore
    from rungent.store import MemoryStore
    from rungent.testing import BaselineCase, BaselineSuite, ScriptedModel, run_baseline

    assert all(
        (
            Agent,
            BaselineCase,
            BaselineSuite,
            DeferredRequest,
            Embedded,
            Identity,
            InteractionRequest,
            MemoryStore,
            OpenAICompatibleModel,
            RunActivity,
            RungentBase,
            Runtime,
            SQLAlchemyStore,
            ScriptedModel,
            ToolContext,
            ToolContinuation,
            ToolResult,
            create_app,
            create_blueprint,
            create_mcp_asgi,
            create_mcp_blueprint,
            create_router,
            run_baseline,
            tool,
        )
    )


def test_the_public_names_come_from_where_type_checkers_find_them() -> None:
    tree = ast.parse(MODULES["rungent"].read_text(encoding="utf-8"))
    imported = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and within(node.module or "", "rungent")
        for alias in node.names
    }
    package = importlib.import_module("rungent")
    assert sorted(imported) == package.__all__
    for name, module in imported.items():
        assert getattr(package, name) is getattr(importlib.import_module(module or ""), name)
    with pytest.raises(AttributeError, match="nothing"):
        _ = package.nothing


def test_the_command_line_starts_without_the_runtime() -> None:
    code = "import sys, rungent.cli; print({'trio', 'pydantic', 'httpx'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
