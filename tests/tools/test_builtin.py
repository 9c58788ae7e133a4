"""The built-in tools are described by valid schemas that mirror the rules of the runtime."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from rungent.interactions import InvalidInteraction, parse_request
from rungent.tools import ToolContext, builtin_specs, function_spec, parse_progress
from tests.interactions.test_requests import A, choice, form, question, text
from tests.tools.samples import reading


def schema_of(name: str) -> dict[str, Any]:
    specs = {spec["function"]["name"]: spec["function"] for spec in builtin_specs()}
    parameters: dict[str, Any] = specs[name]["parameters"]
    return parameters


def test_both_built_in_tools_are_offered_in_order() -> None:
    specs = builtin_specs()
    assert [spec["function"]["name"] for spec in specs] == ["report_progress", "request_input"]
    for spec in specs:
        assert spec["type"] == "function"
        assert spec["function"]["description"]
        jsonschema.Draft202012Validator.check_schema(spec["function"]["parameters"])


def test_a_changed_spec_changes_nobody_else_s() -> None:
    builtin_specs()[1]["function"]["parameters"]["properties"].clear()
    assert schema_of("request_input")["properties"]


def test_a_tool_is_shown_with_name_description_and_schema() -> None:
    async def find(ctx: ToolContext, city: str) -> None: ...

    made = reading(find)
    assert function_spec(made) == {
        "type": "function",
        "function": {"name": "find", "description": "A sample.", "parameters": made.schema},
    }


@pytest.mark.parametrize(
    "request_",
    [
        text(),
        choice(allow_skip=True, skip_label="later", multiple=True, allow_custom=True),
        form(question(), question(id="r", kind="choice", options=[A], required=False)),
    ],
)
def test_what_the_schema_shows_the_runtime_accepts(request_: dict[str, object]) -> None:
    jsonschema.validate(request_, schema_of("request_input"))
    parse_request(request_)


def test_the_schema_refuses_what_the_runtime_refuses() -> None:
    for request_ in ({"kind": "approval", "prompt": "x"}, text(prompt=""), {"prompt": "x"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(request_, schema_of("request_input"))
        with pytest.raises(InvalidInteraction):
            parse_request(request_)


@pytest.mark.parametrize(
    "arguments", [{}, {"message": " "}, {"message": 5}, {"message": "x" * 281}]
)
def test_a_bad_progress_message_is_a_value_error(arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="1 to 280"):
        parse_progress(arguments)


def test_a_progress_message_is_trimmed() -> None:
    assert parse_progress({"message": "  On it. ", "other": 1}) == "On it."
