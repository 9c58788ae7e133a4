"""The reference pages say what the code says."""

from __future__ import annotations

import dataclasses
import inspect
import re
import tomllib
from pathlib import Path
from typing import get_args

import pytest

import rungent
from rungent import errors
from rungent.asgi.blueprint import ROUTES
from rungent.asgi.embed import Embedded
from rungent.asgi.problems import PROBLEMS
from rungent.catalog import OTHER_TEXTS, RUN_FAILURES, TOOL_FAILURES
from rungent.cli import main
from rungent.events import PAYLOADS, event_adapter
from rungent.fastapi import create_router
from rungent.interactions import answers, has_numbered_alternatives, requests
from rungent.llm import OpenAICompatibleModel
from rungent.llm.port import RetryReason
from rungent.options import Options
from rungent.persistence import RungentBase
from rungent.records import RunStatus
from rungent.tools import answers as typed
from rungent.tools import confirmation, messages, results
from tests.docs.pages import ROOT, anchors, code, links, page, page_names, prose, rows, section

SOURCES = ("rungent", "asgi", "persistence", "testing", "docs/examples")


@pytest.mark.parametrize("name", page_names())
def test_links_lead_to_pages_and_headings_that_exist(name: str) -> None:
    folder = (ROOT / name).parent
    for target in links(name):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        goal = (folder / path).resolve() if path else ROOT / name
        assert goal.exists(), f"{name} links to {target}"
        if anchor:
            assert anchor in anchors(str(goal.relative_to(ROOT))), f"{name} links to {target}"


def test_every_page_is_listed_in_the_index() -> None:
    listed = {target.partition("#")[0] for target in links("docs/index.md")}
    pages = {name.removeprefix("docs/") for name in page_names() if name.startswith("docs/")}
    assert pages - {"index.md", "examples/trip_planner/instructions.md"} <= listed


def test_docstrings_name_pages_and_headings_that_exist() -> None:
    named = 0
    for source in SOURCES:
        for path in (ROOT / source).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            for target, anchor in re.findall(r"\b(docs/[\w/-]+\.md)#?([\w-]*)", text):
                named += 1
                assert (ROOT / target).is_file(), f"{path.name}: {target}"
                assert not anchor or anchor in anchors(target), f"{path.name}: {target}#{anchor}"
    assert named > 50


@pytest.mark.parametrize("name", rungent.__all__)
def test_every_public_name_is_described(name: str) -> None:
    pattern = re.compile(rf"\b{name}\b")
    described = [page for page in page_names() if page.startswith("docs/")]
    assert any(pattern.search(prose(page)) for page in described)


def catalog_rows(title: str) -> dict[str, tuple[str, bool]]:
    table = rows(section("docs/codes.md", title))
    return {code(row[0]): (row[1], {"yes": True, "no": False}[row[2]]) for row in table}


def test_run_failures_have_their_text_and_retryable_flag() -> None:
    assert catalog_rows("Run failures") == dict(RUN_FAILURES)


def test_tool_failures_have_their_text_and_retryable_flag() -> None:
    assert catalog_rows("Tool failures") == dict(TOOL_FAILURES)


def test_other_texts_are_listed() -> None:
    table = rows(section("docs/codes.md", "Other texts"))
    assert {code(row[0]): row[1] for row in table} == dict(OTHER_TEXTS)


def codes_of(title: str) -> set[str]:
    return {code(row[0]) for row in rows(section("docs/codes.md", title))}


def test_retry_reasons_are_listed() -> None:
    assert codes_of("Retry reasons") == set(get_args(RetryReason))


def test_error_codes_are_listed() -> None:
    classes = [getattr(errors, name) for name in errors.__all__]
    assert {kind.code for kind in classes} <= codes_of("Error codes")


def reasons_in(source: object) -> list[str]:
    """The reason codes that a part of the module raises, in the order of its text."""
    assert inspect.ismodule(source) or inspect.isfunction(source)
    return re.findall(r'InvalidResponse\(\s*"(\w+)"', inspect.getsource(source))


def test_answer_reasons_are_listed() -> None:
    raised = set(reasons_in(answers)) | set(typed.REASONS)
    assert raised == codes_of("Answer reasons")
    table = rows(section("docs/interactions.md", "Answers"))
    assert raised <= {code(row[0]) for row in table if len(row) == 3}


@pytest.mark.parametrize(
    ("kind", "function"),
    [("text", "_text"), ("choice", "_choice"), ("form", "_form"), ("approval", "_decision")],
)
def test_answers_are_checked_in_the_listed_order(kind: str, function: str) -> None:
    table = (row for row in rows(section("docs/interactions.md", "Answers")) if len(row) == 2)
    listed = next(re.findall(r"`(\w+)`", row[1]) for row in table if row[0] == kind)
    raised = reasons_in(getattr(answers, function))
    # The shape is looked at first, by helpers that several kinds share.
    assert [reason for reason in listed if reason != "type_mismatch"] == [
        reason for reason in raised if reason != "type_mismatch"
    ]
    assert kind == "approval" or listed[0] == "type_mismatch"


def test_interaction_limits_are_listed() -> None:
    table = section("docs/interactions.md", "Questions")
    listed = {
        row[0]: int(found[1])
        for row in rows(table)
        if len(row) == 2 and (found := re.match(r"[01]–(\d+)", row[1]))
    }
    assert listed == {
        "prompt": requests.PROMPT_LIMIT,
        "confirmation of an approval": confirmation.TEXT_LIMIT,
        "options": requests.OPTIONS_LIMIT,
        "questions of a form": requests.QUESTIONS_LIMIT,
        "id of an option or question": requests.ID_LIMIT,
        "label of an option": requests.LABEL_LIMIT,
        "description of an option": requests.DESCRIPTION_LIMIT,
        "label for skipping": requests.SKIP_LABEL_LIMIT,
        "text answer": answers.TEXT_LIMIT,
        "own answer to a choice": answers.CUSTOM_LIMIT,
    }


def test_limits_of_deferred_work_are_listed() -> None:
    text = section("docs/deferred.md", "The request")
    assert f"`task_id` is a text of 1–{results.TASK_ID_LIMIT} characters" in text
    assert f"`message` has 1–{messages.MESSAGE_LIMIT} characters" in text


def test_marker_lines_are_what_the_page_says() -> None:
    table = rows(section("docs/interactions.md", "Questions"))
    verdicts = [
        (row[0], row[1].partition(":")[0]) for row in table if row[1].startswith(("yes:", "no:"))
    ]
    assert len(verdicts) > 3
    for lines, verdict in verdicts:
        for line in re.findall(r"`([^`]+)`", lines):
            as_first, as_second = f"{line}\n2) x\nB) x", f"1) x\nA) x\n{line}"
            found = has_numbered_alternatives(as_first) or has_numbered_alternatives(as_second)
            assert found == (verdict == "yes"), line


def test_routes_are_listed() -> None:
    listed = {
        tuple(code(row[0]).split(" "))
        for title in ("Sessions", "Runs")
        for row in rows(section("docs/http.md", title))
    }
    known = {
        (method, re.sub(r"<\w+>", "{id}", path))
        for path, views in ROUTES.values()
        for method in views
    }
    assert listed == known


def test_http_errors_have_their_status_and_fields() -> None:
    listed = {
        code(row[1]): (int(row[0]), set(re.findall(r"`([a-z_]+)`", row[2].partition(";")[0])))
        for row in rows(section("docs/http.md", "Errors"))
    }
    known = {kind.code: (shape.status, set(shape.fields)) for kind, shape in PROBLEMS.items()}
    assert listed == {**known, "internal_error": (500, set[str]())}


def test_error_codes_have_their_http_status() -> None:
    listed = {code(row[0]): row[1] for row in rows(section("docs/codes.md", "Error codes"))}
    for kind, shape in PROBLEMS.items():
        assert listed[kind.code] == str(shape.status)


def test_the_error_tree_shows_every_public_error() -> None:
    tree = page("docs/errors.md")
    public = {name for name in rungent.__all__ if hasattr(getattr(rungent, name), "code")}
    assert all(re.search(rf"[─^] ?{name}\b", tree) or name == "RungentError" for name in public)


def default_of(option: dataclasses.Field[object]) -> str:
    if option.name == "now":
        return "system clock"
    if option.default is not dataclasses.MISSING:
        return str(option.default)
    assert option.default_factory is not dataclasses.MISSING
    return str(option.default_factory())


def test_runtime_options_have_their_default() -> None:
    listed = {
        code(row[0]): code(row[1]) or row[1] for row in rows(section("docs/runtime.md", "Options"))
    }
    assert listed == {option.name: default_of(option) for option in dataclasses.fields(Options)}


def test_runtime_methods_are_listed() -> None:
    table = section("docs/runtime.md", "Methods")
    methods = [
        name
        for name, _ in inspect.getmembers(rungent.Runtime, inspect.isfunction)
        if not name.startswith("_")
    ]
    listed = {name for name in methods if f"`{name}(" in table}
    assert set(methods) == listed
    for name in methods:
        signature = re.search(rf"^\| `{name}\(([^`]*)\)`", table, re.MULTILINE)
        assert signature is not None
        if "**" not in signature[1]:
            given = re.findall(r"(\w+)(?:=([^,]+))?", signature[1].replace("*, ", ""))
            assert dict(given) == listed_parameters(getattr(rungent.Runtime, name)), name


def listed_parameters(function: object) -> dict[str, str]:
    """Names and defaults as a page writes them; required ones have no default."""
    shown = {"required": ""}
    return {
        name: shown.get(str(default), f'"{default}"' if isinstance(default, str) else str(default))
        for name, default in signature_rows(function).items()
        if name != "task_status"
    }


def signature_rows(function: object) -> dict[str, object]:
    assert callable(function)
    parameters = inspect.signature(function).parameters.values()
    return {
        p.name: "required" if p.default is p.empty else p.default
        for p in parameters
        if p.name != "self"
    }


def listed_defaults(name: str, title: str) -> dict[str, str]:
    return {code(row[0]): (code(row[1]) or row[1]).strip('"') for row in rows(section(name, title))}


@pytest.mark.parametrize("adapter", [create_router, Embedded])
def test_host_adapters_have_their_arguments(adapter: type[Embedded]) -> None:
    signature = re.search(rf"`{adapter.__name__}\(([^`]*)\)`", page("docs/hosts.md"))
    assert signature is not None
    given = re.findall(r"(\w+)(?:=([^,]+))?", signature[1].replace("*, ", ""))
    assert dict(given) == listed_parameters(adapter)


def test_tool_options_have_their_default() -> None:
    listed = listed_defaults("docs/tools.md", "The decorator")
    for name, default in signature_rows(rungent.tool).items():
        assert name in listed
        if name not in {"name", "description", "title"}:
            assert listed[name] == str(default)


def test_model_arguments_have_their_default() -> None:
    listed = listed_defaults("docs/model-adapter.md", "OpenAICompatibleModel")
    expected = {k: str(v) for k, v in signature_rows(OpenAICompatibleModel).items()}
    assert listed == expected


def test_event_payloads_have_their_keys() -> None:
    listed: dict[str, dict[str, str]] = {}
    kind = ""
    for row in rows(section("docs/events.md", "Payloads")):
        kind = code(row[0]) or kind
        fields = listed.setdefault(kind, {})
        if code(row[1]):
            fields[code(row[1])] = row[3]
    assert listed == {name: presence(name) for name in PAYLOADS}


def presence(name: str) -> dict[str, str]:
    schema = event_adapter(name).json_schema()
    required = set(schema.get("required", ()))
    return {
        key: "always" if key in required else "optional" for key in schema.get("properties", ())
    }


def test_run_states_are_listed() -> None:
    states = {code(row[0]) for row in rows(section("docs/runs.md", "States")) if len(row) == 3}
    assert states == set(RunStatus)


def test_tables_are_listed() -> None:
    listed = {code(row[0]) for row in rows(section("docs/persistence.md", "Tables"))}
    assert listed == set(RungentBase.metadata.tables)


@pytest.mark.parametrize(
    "command", ["demo", "serve", "verify", "db check", "db prune", "sim", "baseline"]
)
def test_command_line_options_are_listed(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help"}
    listed = {code(row[0]) for row in rows(section("docs/cli.md", f"rungent {command}"))}
    assert {option for option in listed if option.startswith("--")} == known


def test_every_dependency_is_justified() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    wanted = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        wanted.extend(extra)
    names = {re.split(r"[\[<>=]", requirement)[0] for requirement in wanted} - {"rungent-trio"}
    assert {code(row[0]) for row in rows(page("docs/decisions/dependencies.md"))} == names


def test_records_of_decisions_are_short_and_have_their_three_parts() -> None:
    for path in sorted(Path(ROOT / "docs/decisions").glob("0*.md")):
        text = path.read_text(encoding="utf-8")
        titles = re.findall(r"^## (\w+)$", text, re.MULTILINE)
        assert titles == ["Context", "Decision", "Consequence"], path.name
        assert len(text.splitlines()) <= 20, path.name
