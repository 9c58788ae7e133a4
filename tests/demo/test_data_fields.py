"""Questions for data in the terminal: flat schemas field by field, others as JSON."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, JsonValue

from rungent import InvalidResponse
from rungent.demo.asking import answer_until_accepted
from rungent.demo.data_fields import DataField, fields_of, read_field, read_json
from rungent.demo.questions import Choice, Data, Option, Text, Unreadable
from tests.demo.test_questions import Scripted


class Stay(BaseModel):
    hotel: str = Field(min_length=2, max_length=9, description="Its name")
    nights: int = Field(default=2, ge=1)
    price: float | None = None
    stars: Literal[3, 4]
    breakfast: bool = True
    arrival: date = Field(title="Day of arrival")


class Stops(BaseModel):
    stops: list[str]


STAY = Data("Where?", Stay.model_json_schema())


def fields() -> dict[str, DataField]:
    found = fields_of(STAY.schema)
    assert found is not None
    return {field.name: field for field in found}


def test_each_field_is_asked_with_what_helps_to_answer() -> None:
    assert {name: field.question for name, field in fields().items()} == {
        "hotel": Text("Hotel (Its name; at least 2 characters; at most 9 characters)"),
        "nights": Text("Nights (at least 1; blank: 2)", required=False),
        "price": Text("Price", required=False),
        "stars": Choice("Stars", (Option("0", "3"), Option("1", "4"))),
        "breakfast": Choice(
            "Breakfast", (Option("0", "Yes"), Option("1", "No")), skip="Keep Yes", required=False
        ),
        "arrival": Text("Day of arrival (YYYY-MM-DD)"),
    }


@pytest.mark.parametrize(
    ("name", "answer", "part"),
    [
        ("hotel", " Inn ", {"hotel": " Inn "}),
        ("hotel", "", {"hotel": ""}),
        ("nights", " 3 ", {"nights": 3}),
        ("nights", "-3", {"nights": -3}),
        ("nights", "", {}),
        ("price", "1.5e1", {"price": 15.0}),
        ("stars", {"selected": ["1"]}, {"stars": 4}),
        ("stars", None, {}),
        ("breakfast", {"selected": ["1"]}, {"breakfast": False}),
        ("breakfast", {"selected": [], "skipped": True}, {}),
    ],
)
def test_an_answer_becomes_a_typed_value(name: str, answer: JsonValue, part: Any) -> None:
    assert read_field(fields()[name], answer) == part


@pytest.mark.parametrize(
    ("name", "line"),
    [
        *(("nights", line) for line in ("three", "1.5", "1_000", "9" * 5000)),
        *(("price", line) for line in ("1,5", "nan", "1e999")),
    ],
)
def test_what_is_no_number_is_unreadable(name: str, line: str) -> None:
    with pytest.raises(Unreadable, match="number"):
        read_field(fields()[name], line)


@pytest.mark.parametrize("line", ["", "{", "NaN", "[" * 100_000, "9" * 5000])
def test_what_is_no_json_is_unreadable(line: str) -> None:
    with pytest.raises(Unreadable, match="no JSON"):
        read_json(line)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        Stops.model_json_schema(),
        {
            "type": "object",
            "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "number"}]}},
        },
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "^a"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/gone"}}},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": {}, "additionalProperties": {"type": "string"}},
    ],
)
def test_what_is_not_flat_has_no_fields(schema: dict[str, Any]) -> None:
    assert fields_of(schema) is None


async def test_only_the_refused_field_is_asked_again() -> None:
    asker = Scripted(["Inn", "", "", {"selected": ["0"]}, None, "2030-04-01", "three", "3"])
    submitted: list[JsonValue] = []

    async def submit(value: JsonValue) -> None:
        submitted.append(value)
        if len(submitted) == 1:
            raise InvalidResponse("invalid_value", "Not so many.", path=["nights"])

    await answer_until_accepted(asker, STAY, submit)
    first = {"hotel": "Inn", "stars": 3, "arrival": "2030-04-01"}
    assert submitted == [first, {**first, "nights": 3}]
    assert asker.told == ["Where?", "Not so many. (nights)", "Please type a whole number."]


async def test_an_answer_of_another_shape_is_typed_as_json() -> None:
    asker = Scripted(["[", '{"stops": []}', '{"stops": ["Ueno"]}'])
    submitted: list[JsonValue] = []

    async def submit(value: JsonValue) -> None:
        submitted.append(value)
        if len(submitted) == 1:
            raise InvalidResponse("invalid_value", "Too few.", path=["stops"])

    await answer_until_accepted(asker, Data("Which?", Stops.model_json_schema()), submit)
    assert submitted[1] == {"stops": ["Ueno"]}
    assert asker.asked == ["Which?"] * 3
    assert "That is no JSON." in asker.told
    assert "Too few. (stops)" in asker.told
