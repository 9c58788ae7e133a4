"""Arguments are read where they have one meaning and refused where they have two."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungent.llm.arguments import is_complete, parse_arguments


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", {}),
        (" \n", {}),
        ("null", {}),
        (" null ", {}),
        ("{}", {}),
        ('{"a": 1}', {"a": 1}),
        (' \n{"a": [1.5, null, true]}\t', {"a": [1.5, None, True]}),
        ('{"a": "x\ny\t"}', {"a": "x\ny\t"}),
        ('{}{"a": 1}', {"a": 1}),
        ('{} {} {"a": 1}', {"a": 1}),
        ("{}{}", {}),
        ('{"a": 1}{"a": 1}', {"a": 1}),
        ('{"a": 1, "b": 2}\n{"b": 2, "a": 1}', {"a": 1, "b": 2}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"a": "\ud83d\uddfc"}', {"a": "🗼"}),
        ('{"a": "\\ud83d\\uddfc"}', {"a": "🗼"}),
        ('{"a\\u0000": "\\ud83d\\u0000"}', {"a\ufffd": "\ufffd\ufffd"}),
        ('{"a": 123456789012345678901234567890}', {"a": 123456789012345678901234567890}),
    ],
)
def test_an_object_with_one_reading_is_read(text: str, arguments: object) -> None:
    assert parse_arguments(text) == arguments


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"a": 1',
        '{"a": 1} tail',
        '{"a": 1}}',
        '{"a": 1}{"a": 2}',
        '{"a": 1}{"a": true}',
        '{"a": 1}{}',
        '{}{"a": 1}{"a": 2}',
        "null{}",
        "[]",
        "1",
        "true",
        '"text"',
        '""',
        '"null"',
        '"\\"{}\\""',
        '"[]"',
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '"{\\"a\\": 1e999}"',
        '{"a": "\\x"}',
        "{'a': 1}",
        '{"a": 1,}',
        '{"a": ' + "1" * 5000 + "}",
        '{"a": ' + "[" * 100_000,
        "```json\n{}\n```",
    ],
)
def test_everything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        parse_arguments(text)


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", False),
        ("null", False),
        ("{", False),
        ('{"a": 1}', True),
        ("{} ", True),
        ('{"a": {}', False),
        ('"{}"', True),
        ('"{}', False),
    ],
)
def test_only_a_written_object_is_complete(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


@given(st.text() | st.lists(st.sampled_from('{}[]":, \n1aeE-+.\\ud800NIn')).map("".join))
def test_any_text_is_an_object_or_a_value_error(text: str) -> None:
    try:
        arguments = parse_arguments(text)
    except ValueError:
        return
    assert isinstance(arguments, dict)
