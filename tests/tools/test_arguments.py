"""Arguments are validated, normalised and fingerprinted in one pass."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    Field,
    PlainSerializer,
    RootModel,
    SecretStr,
)

from rungent.text import canonical_json
from rungent.tools import AnyTool, ArgumentErrors, ToolContext, fingerprint
from rungent.tools.normal_form import same_value
from tests.tools.samples import reading


class Size(StrEnum):
    SMALL = "small"
    BIG = "big"


class Room(BaseModel):
    beds: int = 1
    tags: Sequence[str] = ()
    kind: Literal["a", "b"] = Field(default="a", alias="Kind")


@dataclass
class Guest:
    name: str
    ages: list[int] = field(default_factory=list[int])


async def book(
    ctx: ToolContext,
    city: str,
    nights: Annotated[int, Field(ge=1)] = 1,
    price: float = 9.5,
    size: Size = Size.BIG,
    when: date | None = None,
    room: Room = Room(),  # noqa: B008 - shared on purpose
    guests: Sequence[Guest] = (),
    labels: set[str] = set(),  # noqa: B006
    extra: Any = None,
    from_: Annotated[str, Field(alias="from")] = "here",
) -> None: ...


BOOK = reading(book)
DEFAULTS: dict[str, object] = {
    "nights": 1,
    "price": 9.5,
    "size": "big",
    "when": None,
    "room": {"Kind": "a", "beds": 1, "tags": []},
    "guests": [],
    "labels": [],
    "extra": None,
    "from": "here",
}


def details(tool: AnyTool, arguments: Any) -> list[dict[str, Any]]:
    with pytest.raises(ArgumentErrors) as caught:
        tool.arguments.check(arguments)
    return caught.value.details


def test_defaults_are_filled_and_keys_sorted() -> None:
    normalised = BOOK.arguments.normalise({"city": "Rome"})
    assert normalised == {**DEFAULTS, "city": "Rome"}
    assert list(normalised) == sorted(normalised)


def test_values_are_python_values_by_parameter_name() -> None:
    values = BOOK.arguments.validate(
        {
            "city": "Rome",
            "nights": "3",
            "size": "small",
            "when": "2026-01-02",
            "room": {"Kind": "b"},
            "guests": [{"name": "Ada"}],
            "labels": ["x"],
            "from": "there",
        }
    )
    assert values == {
        "city": "Rome",
        "nights": 3,
        "price": 9.5,
        "size": Size.SMALL,
        "when": date(2026, 1, 2),
        "room": Room(Kind="b", tags=[]),
        "guests": [Guest("Ada")],
        "labels": {"x"},
        "extra": None,
        "from_": "there",
    }


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({}, "city"),
        ({"city": 5}, "city"),
        ({"city": "x", "nights": 0}, "nights"),
        ({"city": "x", "other": 1}, "other"),
        ({"city": "x", "from_": "y"}, "from_"),
        ({"city": "x", "room": {"Kind": "c"}}, "room.Kind"),
        ({"city": "x", "guests": [{"name": 1}]}, "guests.0.name"),
        ({"city": "x", "price": "nan"}, "price"),
        ({"city": "x", "price": "inf"}, "price"),
        ({"city": "x", "price": float("inf")}, "price"),
        ({"city": "x", "when": "soon"}, "when"),
    ],
)
def test_an_error_names_the_place(arguments: dict[str, object], path: str) -> None:
    assert [detail["path"] for detail in details(BOOK, arguments)] == [path]


@pytest.mark.parametrize("arguments", [[], "text", None])
def test_arguments_that_are_no_object_are_an_error(arguments: object) -> None:
    assert details(BOOK, arguments)


SECRET = "hunter2"


def picky(value: str) -> str:
    raise ValueError(f"I dislike {value}")


def broken(value: str) -> str:
    raise KeyError(value)


def doubled(value: int) -> int:
    return value * 2


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


async def strict(
    ctx: ToolContext,
    number: int = 1,
    size: Size = Size.BIG,
    mode: Literal["a"] = "a",
    picked: Annotated[str, AfterValidator(picky)] | None = None,
    broke: Annotated[str, AfterValidator(broken)] | None = None,
    animal: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None,
    key: UUID | None = None,
    day: date | None = None,
    amount: Decimal | None = None,
    pause: timedelta | None = None,
) -> None: ...


@pytest.mark.parametrize(
    "name",
    ["number", "size", "mode", "picked", "broke", "key", "day", "amount", "pause"],
)
def test_an_error_text_never_quotes_the_input(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")
    found = details(reading(strict), {name: SECRET})
    assert all(SECRET not in str(detail["message"]) for detail in found)
    assert all(detail["message"] for detail in found)


def test_an_unknown_tag_is_not_quoted() -> None:
    (found,) = details(reading(strict), {"animal": {"kind": SECRET}})
    assert SECRET not in found["message"]


def test_a_character_of_a_broken_uuid_is_not_quoted() -> None:
    (found,) = details(reading(strict), {"key": "Ω"})
    assert "Ω" not in found["message"]


def test_many_errors_are_reported_in_part() -> None:
    async def many(ctx: ToolContext, numbers: list[int]) -> None: ...

    assert len(details(reading(many), {"numbers": ["x"] * 1000})) == 50


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("depth", [100, 5000, 200_000])
def test_deep_nesting_is_an_error(depth: int) -> None:
    (found,) = details(BOOK, {"city": "x", "extra": nested(depth)})
    assert "deeper" in found["message"]


def test_a_number_without_text_is_an_error() -> None:
    assert details(BOOK, {"city": "x", "nights": 10**5000})
    assert details(BOOK, {"city": "x", "price": 10**5000})
    assert details(BOOK, {"city": "x", "extra": 10**5000})
    assert BOOK.arguments.normalise({"city": "x", "nights": 10**400})["nights"] == 10**400


def test_unstorable_text_is_replaced_before_it_is_used() -> None:
    arguments = BOOK.arguments.check({"city": "a\x00\ud800", "extra": {"k\x00": "\udfff"}})
    assert arguments.values["city"] == arguments.normalised["city"] == "a��"
    assert arguments.values["extra"] == {"k�": "�"}
    assert BOOK.arguments.check({"city": "x", "extra": float("nan")}).values["extra"] is None


def test_values_are_never_shared_between_calls() -> None:
    first = BOOK.arguments.validate({"city": "x"})
    first["labels"].add("changed")
    first["room"].beds = 99
    second = BOOK.arguments.validate({"city": "x"})
    assert (second["labels"], second["room"].beds) == (set(), 1)


def test_a_type_that_cannot_be_read_back_is_an_error_not_another_value() -> None:
    async def login(ctx: ToolContext, password: SecretStr) -> None: ...

    assert [d["path"] for d in details(reading(login), {"password": SECRET})] == ["password"]

    async def grow(ctx: ToolContext, size: Annotated[int, AfterValidator(doubled)]) -> None: ...

    assert [d["path"] for d in details(reading(grow), {"size": 2})] == ["size"]


def test_a_serialiser_that_leads_elsewhere_is_an_error() -> None:
    async def odd(
        ctx: ToolContext, size: Annotated[int, PlainSerializer(lambda size: f"{size} cm")]
    ) -> None: ...

    assert [d["path"] for d in details(reading(odd), {"size": 2})] == ["size"]


class Nameless:
    def __str__(self) -> str:
        raise RuntimeError("no name")


class Incomparable:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no order")

    __hash__ = None  # type: ignore[assignment]


def test_objects_of_a_host_never_crash_the_check(caplog: pytest.LogCaptureFixture) -> None:
    assert details(BOOK, {"city": "x", "extra": Nameless()})
    caplog.set_level("CRITICAL")
    assert same_value(Incomparable(), 1) is False


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ((1, [2]), [1, (2,)], True),
        ({"a": (1,)}, {"a": [1]}, True),
        ({"a": (1,)}, {"b": [1]}, False),
        ([1], [1, 2], False),
        (Guest("a", [1]), Guest("a", [2]), False),
        (1, "1", False),
    ],
)
def test_a_list_equals_a_like_tuple(left: object, right: object, same: bool) -> None:
    assert same_value(left, right) is same


def test_an_alias_must_serve_both_directions() -> None:
    async def one(ctx: ToolContext, a: Annotated[int, Field(validation_alias="b")]) -> None: ...

    async def two(
        ctx: ToolContext, a: Annotated[int, Field(validation_alias=AliasChoices("a", "b"))]
    ) -> None: ...

    async def three(ctx: ToolContext, a: Annotated[int, Field(alias="b")], b: int) -> None: ...

    for function in (one, two, three):
        with pytest.raises(TypeError):
            reading(function)


def test_a_field_default_declares_default_and_rules() -> None:
    async def search(
        ctx: ToolContext, limit: int = Field(5, ge=1), must: int = Field(ge=1)
    ) -> None: ...

    made = reading(search)
    assert made.schema["required"] == ["must"]
    assert made.arguments.normalise({"must": 2}) == {"limit": 5, "must": 2}
    assert details(made, {"must": 0, "limit": 0})


def test_a_factory_fills_a_default_anew() -> None:
    async def search(
        ctx: ToolContext, seen: Annotated[list[int], Field(default_factory=list)]
    ) -> None: ...

    made = reading(search)
    made.arguments.validate({})["seen"].append(1)
    assert made.arguments.validate({}) == {"seen": []}


def test_by_parameter_replaces_aliases() -> None:
    normalised = BOOK.arguments.normalise({"city": "x", "from": "there"})
    assert BOOK.arguments.by_parameter(normalised)["from_"] == "there"


def test_equal_arguments_have_equal_fingerprints() -> None:
    check = BOOK.arguments.check
    one = check({"city": "x", "nights": "2", "labels": ["b", "a"], "extra": {"p": 1, "q": 2}})
    two = check({"extra": {"q": 2, "p": 1}, "labels": ["a", "b", "a"], "nights": 2, "city": "x"})
    other = check({"city": "x", "nights": 3})
    assert one.fingerprint == two.fingerprint == fingerprint(two.normalised)
    assert one.fingerprint != other.fingerprint
    assert one.normalised["labels"] == ["a", "b"]


@pytest.mark.parametrize("raw", [{"a": nested(5000)}, {"a": 10**5000}, {"a": float("nan")}, {}])
def test_any_raw_arguments_have_a_fingerprint(raw: Mapping[str, object]) -> None:
    assert len(fingerprint(raw)) == 64


SET_PROGRAM = """
import asyncio
from rungent.tools import ToolContext, tool
from pydantic import BaseModel
class Box(BaseModel):
    inner: dict[str, frozenset[str]]
@tool(effect="read", approval="never", description="x")
async def t(ctx: ToolContext, boxes: list[Box], pairs: set[tuple[str, int]]) -> None: ...
words = ["one", "two", "three", "four", "five"]
print(t.arguments.check(
    {"boxes": [{"inner": {"k": words}}], "pairs": [[w, 1] for w in words]}
).fingerprint)
"""


def test_sets_have_one_order_in_every_process() -> None:
    prints = {
        subprocess.run(
            [sys.executable, "-c", SET_PROGRAM],
            env={"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in (1, 2)
    }
    assert len(prints) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
FITTING = st.fixed_dictionaries(
    {"city": st.text()},
    optional={
        "nights": st.integers(1, 99) | st.just("7"),
        "price": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-5, 5),
        "size": st.sampled_from(["small", "big"]),
        "when": st.none() | st.dates().map(str),
        "room": st.fixed_dictionaries({}, optional={"beds": st.integers(), "Kind": st.just("b")}),
        "guests": st.lists(st.fixed_dictionaries({"name": st.text()}), max_size=2),
        "labels": st.lists(st.text(max_size=3), max_size=3),
        "extra": JSON,
        "from": st.text(max_size=3),
    },
)


@given(FITTING)
def test_a_normal_form_normalises_to_itself(arguments: dict[str, object]) -> None:
    first = BOOK.arguments.check(arguments)
    again = BOOK.arguments.check(first.normalised)
    assert again.values == first.values
    assert canonical_json(again.normalised) == canonical_json(first.normalised)
    assert again.fingerprint == first.fingerprint


@given(st.dictionaries(st.sampled_from([*DEFAULTS, "city", "from_"]) | st.text(), JSON))
def test_arbitrary_json_raises_nothing_but_argument_errors(arguments: dict[str, object]) -> None:
    with contextlib.suppress(ArgumentErrors):
        BOOK.arguments.check({"city": "x", **arguments})


class Colour(Enum):
    RED = 1


@pytest.mark.parametrize(
    ("annotation", "raw", "normal"),
    [
        (bytes, "abc", "abc"),
        (Colour, 1, 1),
        (timedelta, "PT1H", "PT1H"),
        (Decimal, "1.50", "1.50"),
        (UUID, "{12345678-1234-5678-1234-567812345678}", "12345678-1234-5678-1234-567812345678"),
        (dict[int, str], {"2": "b", "1": "a"}, {"1": "a", "2": "b"}),
        (tuple[int, str], [1, "a"], [1, "a"]),
        (frozenset[int], [2, 1, 2], [1, 2]),
        (Iterable[int], ["2", 1], [2, 1]),
        (RootModel[set[str]], ["d", "c", "b", "a"], ["a", "b", "c", "d"]),
        (int | str, "5", "5"),
        (bool, "yes", True),
    ],
)
def test_common_types_have_a_normal_form(annotation: Any, raw: object, normal: object) -> None:
    async def sample(ctx: ToolContext, value: int) -> None: ...

    sample.__annotations__["value"] = annotation
    check = reading(sample).arguments.check
    first = check({"value": raw})
    assert first.normalised == {"value": normal}
    assert check(first.normalised) == first
