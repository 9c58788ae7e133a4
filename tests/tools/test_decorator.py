"""Declarations are complete and frozen, or refused where they are written."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import AsyncIterator, Callable
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, assert_type

import pytest

from rungent.tools import ApprovalPolicy, Tool, ToolContext, ToolEffect, ToolResult, tool
from tests.tools.samples import context

if TYPE_CHECKING:
    from decimal import Decimal as Missing


async def plain(ctx: ToolContext, count: int = 1) -> int:
    """Counts.

    And nothing else.
    """
    return count + 1


def declared(function: Callable[..., Any] = plain, **options: Any) -> Tool[..., Any]:
    declare: Any = tool
    made: Tool[..., Any] = declare(**{"effect": "read", "approval": "never", **options})(function)
    return made


def approved(function: Callable[..., Any] = plain, **options: Any) -> Tool[..., Any]:
    return declared(function, **{"effect": "write", "approval": "always", **options})


def test_a_declaration_needs_only_effect_and_approval() -> None:
    made = declared()
    assert (made.name, made.title, made.description) == (
        "plain",
        "Plain",
        "Counts.\n\nAnd nothing else.",
    )
    assert (made.effect, made.approval) == (ToolEffect.READ, ApprovalPolicy.NEVER)
    assert (made.timeout_seconds, made.parallel, made.deduplicate) == (60, False, True)
    assert (made.requires_interaction_response, made.idempotent) == (False, False)
    assert (made.confirmation, made.reconcile) == (None, None)


async def test_calling_a_tool_calls_the_plain_function() -> None:
    assert await declared()(context(), count=4) == 5


async def test_parameters_may_be_called_like_anything() -> None:
    @tool(effect="read", approval="never", description="Odd names.")
    async def odd(context: ToolContext, ctx: str, self: str, copy: str, model_dump: str) -> str:
        return ctx + self + copy + model_dump

    values = odd.arguments.validate({"ctx": "a", "self": "b", "copy": "c", "model_dump": "d"})
    assert await odd(context(), **values) == "abcd"


def test_a_tool_is_frozen_and_its_schema_is_a_copy() -> None:
    made = declared()
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.name = "other"  # type: ignore[misc]
    made.schema["properties"].clear()
    assert made.schema["properties"] == {"count": {"type": "integer", "default": 1}}


@pytest.mark.parametrize(
    ("name", "title"),
    [("find_hotel", "Find Hotel"), ("x-y", "X-Y"), ("__", "__"), ("a" * 64, "A" + "a" * 63)],
)
def test_the_title_comes_from_the_name(name: str, title: str) -> None:
    assert declared(name=name).title == title


def test_given_texts_win_over_derived_ones() -> None:
    made = declared(name="n", title=" T ", description="  D\n    E ")
    assert (made.name, made.title, made.description) == ("n", "T", "D\nE")
    assert declared(description="  ").description.startswith("Counts.")


async def undescribed(ctx: ToolContext) -> None: ...


async def unannotated(ctx: ToolContext, city) -> None:  # type: ignore[no-untyped-def]
    """X."""


async def without_context(city: str) -> None:
    """X."""


async def with_optional_context(ctx: ToolContext | None) -> None:
    """X."""


async def with_annotated_context(ctx: Annotated[ToolContext, "x"]) -> None:
    """X."""


async def nothing() -> None:
    """X."""


async def keyword_context(*, ctx: ToolContext) -> None:
    """X."""


async def positional(ctx: ToolContext, city: str, /) -> None:
    """X."""


async def var_positional(ctx: ToolContext, *cities: str) -> None:
    """X."""


async def var_keyword(ctx: ToolContext, **cities: str) -> None:
    """X."""


async def callback(ctx: ToolContext, call: Callable[[], int]) -> None:
    """X."""


async def opaque(ctx: ToolContext, thing: Tool[..., Any]) -> None:
    """X."""


async def unresolved(ctx: ToolContext, amount: Missing) -> None:
    """X."""


async def odd_default(ctx: ToolContext, amount: int = "many") -> None:  # type: ignore[assignment]
    """X."""


async def no_json_default(ctx: ToolContext, amount: Any = object()) -> None:  # noqa: B008
    """X."""


async def nan_default(ctx: ToolContext, amount: float = float("nan")) -> None:
    """X."""


async def generator(ctx: ToolContext) -> AsyncIterator[int]:
    """X."""
    yield 1


def synchronous(ctx: ToolContext) -> None:
    """X."""


UNUSABLE: list[Callable[..., Any]] = [
    undescribed,
    unannotated,
    without_context,
    with_optional_context,
    with_annotated_context,
    nothing,
    keyword_context,
    positional,
    var_positional,
    var_keyword,
    callback,
    opaque,
    unresolved,
    odd_default,
    no_json_default,
    nan_default,
    generator,
    synchronous,
    functools.partial(synchronous),
]


@pytest.mark.parametrize("function", UNUSABLE)
def test_a_function_that_cannot_be_a_tool_is_a_type_error(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError):
        declared(function)


@pytest.mark.parametrize("missing", ["effect", "approval"])
def test_effect_and_approval_must_be_said(missing: str) -> None:
    options: dict[str, Any] = {"effect": "read", "approval": "never"}
    del options[missing]
    with pytest.raises(TypeError):
        tool(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"effect": "sing"},
        {"approval": "sometimes"},
        {"name": ""},
        {"name": "has space"},
        {"name": "ümlaut"},
        {"name": "a" * 65},
        {"name": "line\n"},
        {"title": "  "},
        {"timeout_seconds": 0},
        {"timeout_seconds": -1},
        {"timeout_seconds": float("inf")},
        {"timeout_seconds": float("nan")},
        {"timeout_seconds": None},
        {"timeout_seconds": True},
    ],
)
def test_a_bad_value_is_a_value_error(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        declared(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"confirmation": "Sure?"},
        {"effect": "write", "approval": "always"},
        {"effect": "write", "approval": "always", "confirmation": "  "},
        {"effect": "write", "approval": "always", "confirmation": 5},
        {"effect": "write", "parallel": True},
        {"approval": "always", "confirmation": "Sure?", "parallel": True},
        {"parallel": "yes"},
        {"idempotent": 1},
        {"description": 5},
        {"reconcile": "later"},
        {"reconcile": synchronous},
        {"reconcile": undescribed},
    ],
)
def test_options_that_do_not_fit_together_are_a_type_error(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        declared(**options)


@pytest.mark.parametrize(
    "template",
    [
        "{other}",
        "{}",
        "{0}",
        "{count.real}",
        "{count[0]}",
        "{count:{other}}",
        "{count:{count}}",
        "{count",
        "count}",
        "{ctx}",
    ],
)
def test_a_confirmation_names_parameters_only(template: str) -> None:
    with pytest.raises(TypeError):
        approved(confirmation=template)


@pytest.mark.parametrize(
    "template", ["Sure?", "{count}", "{count:>5}", "{count!r}", "{{x}} {count}"]
)
def test_formats_and_conversions_are_allowed_in_a_confirmation(template: str) -> None:
    assert approved(confirmation=template).confirmation == template


def test_a_confirmation_may_be_a_callable() -> None:
    def ask(ctx: ToolContext, count: int) -> str:
        return f"Count {count}?"

    assert approved(confirmation=ask).confirmation is ask


def test_reconcile_is_async_with_the_same_parameters() -> None:
    async def look(ctx: ToolContext, count: int) -> ToolResult | None:
        return None

    assert declared(effect="write", reconcile=look).reconcile is look


def test_types_of_the_defining_function_are_found() -> None:
    class Size(Enum):
        BIG = "big"

    @tool(effect="read", approval="never", description="Local types.")
    async def local(ctx: ToolContext, size: Size) -> None: ...

    assert local.arguments.validate({"size": "big"}) == {"size": Size.BIG}


def test_a_helper_in_between_keeps_the_function_s_own_names() -> None:
    """`declared` has a local called `options`; the annotations here know nothing of it."""
    assert declared(plain).arguments.parameters == ("count",)


async def test_a_method_can_be_a_tool() -> None:
    class Hotel:
        rooms = 3

        async def free(self, ctx: ToolContext, minus: int) -> int:
            """Free rooms."""
            return self.rooms - minus

    made = tool(effect="read", approval="never")(Hotel().free)
    assert made.arguments.parameters == ("minus",)
    assert await made(context(), minus=1) == 2


async def test_type_checkers_see_the_parameters_and_the_result() -> None:
    @tool(effect="read", approval="never")
    async def add(ctx: ToolContext, left: int, right: int = 1) -> str:
        """Add."""
        return str(left + right)

    assert_type(await add(context(), left=1), str)
    with pytest.raises(TypeError):
        await add(context(), wrong=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def test_types_of_an_enclosing_function_are_found_through_the_closure() -> None:
    class Unit(Enum):
        CM = "cm"

    async def measure(ctx: ToolContext, unit: Unit) -> str:
        """Measure."""
        return f"{later} {Unit.CM.value}"

    made = declared(measure)
    later = "then"
    assert made.arguments.validate({"unit": "cm"}) == {"unit": Unit.CM}
    assert later


def test_only_a_format_string_can_be_rendered() -> None:
    with pytest.raises(TypeError):
        approved(confirmation=synchronous).render_confirmation({"count": 1})
