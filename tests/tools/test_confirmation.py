"""Confirmation texts show what is approved, whatever the arguments contain."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import Field

from rungent.tools import ToolContext, confirmation_text, render_confirmation, tool

DISGUISES = [
    *map(chr, range(0x20)),
    *"\x7f\x85\x9f\u061c\u200e\u200f\u2028\u2029",
    *map(chr, range(0x202A, 0x202F)),
    *map(chr, range(0x2066, 0x206A)),
]


@pytest.mark.parametrize("character", DISGUISES)
def test_a_disguising_character_becomes_a_space(character: str) -> None:
    assert render_confirmation("<{x}>", {"x": f"a{character}b"}) == "<a b>"
    nested: Any = {"x": [{f"k{character}": f"v{character}w"}]}
    assert render_confirmation("{x}", nested) == "[{'k ': 'v w'}]"


@pytest.mark.parametrize("number", [10, 0x202E, 0x2028])
def test_a_number_formatted_as_a_character_is_harmless_too(number: int) -> None:
    assert render_confirmation("a{x:c}b", {"x": number}) == "a b"


def test_letters_of_every_script_stay() -> None:
    assert render_confirmation("{x}", {"x": "Zürich 東京 עברית"}) == "Zürich 東京 עברית"


def test_braces_in_an_argument_are_text() -> None:
    assert render_confirmation("{x}", {"x": "{y} {0.__class__}", "y": "s"}) == "{y} {0.__class__}"


def test_line_breaks_of_the_template_stay() -> None:
    assert render_confirmation("  One\n{x:>4}\n ", {"x": 7}) == "One\n   7"


@pytest.mark.parametrize(
    ("template", "value"),
    [("{x:d}", "text"), ("{x:>5}", None), ("{x:>5}", [1]), ("{x}", " \n "), ("{x}", "x" * 4001)],
)
def test_a_text_that_cannot_be_made_is_a_value_error(template: str, value: Any) -> None:
    with pytest.raises(ValueError, match="confirmation"):
        render_confirmation(template, {"x": value})


@pytest.mark.parametrize("text", [None, 5, "", "  ", "x" * 4001])
def test_a_finished_confirmation_has_1_to_4000_characters(text: object) -> None:
    with pytest.raises(ValueError, match="1 to 4000"):
        confirmation_text(text)


def test_a_finished_confirmation_is_trimmed_and_storable() -> None:
    assert confirmation_text("  Sure?\x00 ") == "Sure?�"


def test_a_tool_renders_its_own_confirmation_by_parameter_name() -> None:
    @tool(effect="write", approval="always", confirmation="From {from_}, {nights} nights?")
    async def book(
        ctx: ToolContext, from_: Annotated[str, Field(alias="from")], nights: int = 2
    ) -> None:
        """Book."""

    normalised = book.arguments.normalise({"from": "Rome"})
    assert book.render_confirmation(normalised) == "From Rome, 2 nights?"
