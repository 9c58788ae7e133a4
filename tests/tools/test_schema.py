"""The JSON Schema of a tool is exact, untitled and the same every time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, cast

import jsonschema
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from rungent.tools import ToolContext
from tests.tools.samples import reading


class Size(Enum):
    SMALL = "small"
    BIG = "big"


class Place(BaseModel):
    """A place."""

    city: Annotated[str, Field(title="City name")]
    parent: Place | None = None


class Titled(BaseModel):
    model_config = ConfigDict(title="A written title")
    value: int


@dataclass
class Point:
    x: int


class Row(TypedDict):
    y: int


async def everything(
    ctx: ToolContext,
    city: Annotated[str, "Where to go."],
    nights: Annotated[int, Field(ge=1, le=30), "How long."],
    place: Place,
    titled: Titled,
    point: Point,
    row: Row,
    size: Size = Size.BIG,
    mode: Literal["a", "b"] = "a",
    when: date | None = None,
    tags: list[Annotated[str, "One tag."]] | None = None,
    from_: Annotated[str, Field(alias="from")] = "here",
) -> None: ...


def test_a_small_schema_is_exactly_this() -> None:
    async def search(ctx: ToolContext, city: Annotated[str, "Where."], limit: int = 5) -> None: ...

    assert reading(search).schema == {
        "type": "object",
        "properties": {
            "city": {"description": "Where.", "type": "string"},
            "limit": {"default": 5, "type": "integer"},
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_a_tool_without_parameters_takes_an_empty_object() -> None:
    async def ping(ctx: ToolContext) -> None: ...

    schema = reading(ping).schema
    assert schema == {"type": "object", "properties": {}, "additionalProperties": False}


def test_every_construct_has_its_schema() -> None:
    schema = reading(everything).schema
    jsonschema.Draft202012Validator.check_schema(schema)
    properties = schema["properties"]
    assert properties["nights"] == {
        "description": "How long.",
        "maximum": 30,
        "minimum": 1,
        "type": "integer",
    }
    assert properties["size"] == {"$ref": "#/$defs/Size", "default": "big"}
    assert properties["mode"]["enum"] == ["a", "b"]
    assert properties["tags"]["anyOf"][0]["items"]["description"] == "One tag."
    assert properties["when"]["default"] is None
    assert properties["from"]["default"] == "here"
    assert schema["required"] == ["city", "nights", "place", "titled", "point", "row"]
    assert schema["$defs"]["Place"]["description"] == "A place."


def test_only_written_titles_remain() -> None:
    found: list[str] = []

    def collect(node: Any) -> None:
        if isinstance(node, dict):
            entries = cast("dict[str, Any]", node)
            if isinstance(entries.get("title"), str):
                found.append(entries["title"])
            for item in entries.values():
                collect(item)

    collect(reading(everything).schema)
    assert sorted(found) == ["A written title", "City name"]


def test_the_schema_text_is_stable() -> None:
    first, second = (json.dumps(reading(everything).schema) for _ in range(2))
    assert first == second
    assert list(json.loads(first))[:2] == ["type", "properties"]


def test_a_description_of_several_lines_loses_its_indentation() -> None:
    async def search(
        ctx: ToolContext,
        city: Annotated[
            str,
            """Where.

            Near what.""",
        ],
    ) -> None: ...

    assert reading(search).schema["properties"]["city"]["description"] == "Where.\n\nNear what."
