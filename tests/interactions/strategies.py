"""Random JSON, and random requests that resemble real ones."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Strategy = st.SearchStrategy[Any]

SCALARS: Strategy = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(),
    st.sampled_from(["", " ", "a", "b", "text", "choice", "approve", "reject", "1. x\n2. y"]),
    st.text(max_size=5),
)
KEYS = st.sampled_from(
    [
        "kind",
        "prompt",
        "options",
        "questions",
        "id",
        "label",
        "selected",
        "custom",
        "skipped",
        "answers",
        "a",
        "b",
        "multiple",
        "allow_custom",
        "allow_skip",
        "skip_label",
        "required",
    ]
)
JSON: Strategy = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5)
)


def _id(entry: dict[str, Any]) -> str:
    return str(entry["id"])


_IDS = st.sampled_from(["a", "b", "c"])
OPTIONS: Strategy = st.lists(
    st.fixed_dictionaries(
        {"id": _IDS, "label": st.just("L")},
        optional={"description": st.none() | st.just("D"), "recommended": st.booleans()},
    ),
    min_size=1,
    max_size=3,
    unique_by=_id,
)
FLAGS: dict[str, Strategy] = {"multiple": st.booleans(), "allow_custom": st.booleans()}
TEXT: dict[str, Strategy] = {"kind": st.just("text"), "prompt": st.just("Why?")}
CHOICE: dict[str, Strategy] = {
    "kind": st.just("choice"),
    "prompt": st.just("Which?"),
    "options": OPTIONS,
    **FLAGS,
}
QUESTIONS: Strategy = st.lists(
    st.fixed_dictionaries({**TEXT, "id": _IDS, "required": st.booleans()})
    | st.fixed_dictionaries({**CHOICE, "id": _IDS, "required": st.booleans()}),
    min_size=1,
    max_size=3,
    unique_by=_id,
)
REQUESTS: Strategy = st.one_of(
    st.fixed_dictionaries(TEXT),
    st.fixed_dictionaries({**CHOICE, "allow_skip": st.booleans()}),
    st.fixed_dictionaries(
        {"kind": st.just("form"), "prompt": st.just("Tell me"), "questions": QUESTIONS}
    ),
)

CHOICE_ANSWERS: Strategy = st.fixed_dictionaries(
    {},
    optional={
        "selected": st.none() | st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=3),
        "custom": st.none() | st.sampled_from(["", " own ", "x" * 1001]),
        "skipped": st.booleans(),
    },
)
SINGLE_ANSWERS: Strategy = st.sampled_from(["", " hello ", "x" * 4001, "a\x00"]) | CHOICE_ANSWERS
ANSWERS: Strategy = st.one_of(
    SINGLE_ANSWERS,
    st.fixed_dictionaries({"answers": st.dictionaries(_IDS, SINGLE_ANSWERS | st.none())}),
    JSON,
)
