"""Private thoughts are cut from the text and half characters wait for their other half."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungent.llm.visible import VisibleText, join_surrogates


def shown(*fragments: str, strip_think: bool = True) -> str:
    text = VisibleText(strip_think=strip_think)
    pieces = [text.feed(fragment) for fragment in fragments]
    pieces.append(text.flush())
    assert text.total() == "".join(pieces)
    return text.total()


@pytest.mark.parametrize(
    ("text", "public"),
    [
        ("<think>secret</think>Hello", "Hello"),
        ("<think>secret</think>\n\n  Hello ", "Hello "),
        ("\n <think>secret</think>Hello", "Hello"),
        ("<think></think>Hello", "Hello"),
        ("<think>secret", ""),
        ("<think>secret</thin", ""),
        ("<think>a</think", ""),
        ("<think>a<think>b</think>Hello", "Hello"),
        ("<think>a</think>Hello<think>b</think>", "Hello<think>b</think>"),
        ("<think>a</think></think>Hello", "</think>Hello"),
        ("thought</think>Hello", "thought</think>Hello"),
        ("Hello <think>text</think>", "Hello <think>text</think>"),
        ("<thinking>Hello", "<thinking>Hello"),
        ("<thi", "<thi"),
        (" <thi", " <thi"),
        ("<", "<"),
        ("  ", "  "),
        ("  Hello", "  Hello"),
        ("", ""),
    ],
)
def test_one_think_block_at_the_start_is_private(text: str, public: str) -> None:
    assert shown(text) == public
    assert shown(*text) == public
    for at in range(len(text)):
        assert shown(text[:at], text[at:]) == public


def test_without_stripping_the_text_stays_as_it_is() -> None:
    assert shown(" <think>a</think> b", strip_think=False) == " <think>a</think> b"


def test_text_is_not_held_back_longer_than_needed() -> None:
    text = VisibleText(strip_think=True)
    assert text.feed("<t") == ""
    assert text.feed("able>") == "<table>"
    assert text.feed("<thi") == "<thi"


@pytest.mark.parametrize(
    ("fragments", "public"),
    [
        (["\ud83d", "\uddfc"], "🗼"),
        (["a\ud83d", "", "\uddfcb"], "a🗼b"),
        (["\ud83d\uddfc"], "🗼"),
        (["\ud83d"], "\ufffd"),
        (["\ud83d", "x"], "\ufffdx"),
        (["\uddfc\ud83d", "\uddfc"], "\ufffd🗼"),
        (["a\x00b"], "a\ufffdb"),
    ],
)
def test_halves_are_joined_before_the_rest_is_made_storable(
    fragments: list[str], public: str
) -> None:
    assert shown(*fragments) == public


@given(st.text(st.characters(exclude_categories=[]), max_size=30))
def test_joining_leaves_no_pair_apart(text: str) -> None:
    joined = join_surrogates(text)
    assert joined.encode("utf-16-le", "surrogatepass") == text.encode("utf-16-le", "surrogatepass")
    joined.encode("utf-8", "surrogatepass")


@given(
    st.lists(
        st.sampled_from(
            ["<think>", "</think>", "<", "think>", "</", " ", "\n", "a", "\ud83d", "\uddfc"]
        )
    ).map("".join),
    st.lists(st.integers(0, 60), max_size=5),
    st.booleans(),
)
def test_any_cut_shows_the_same_text(text: str, marks: list[int], strip_think: bool) -> None:
    edges = [0, *sorted(mark % (len(text) + 1) for mark in marks), len(text)]
    pieces = [text[start:end] for start, end in pairwise(edges)]
    assert shown(*pieces, strip_think=strip_think) == shown(text, strip_think=strip_think)
