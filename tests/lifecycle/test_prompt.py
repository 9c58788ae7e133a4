"""Cutting a transcript to the context budget."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from rungent._lifecycle.prompt import fit


@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 50)), min_size=1),
    st.integers(-10, 2_000),
)
def test_the_fewest_oldest_exchanges_are_left_out(
    entries: list[tuple[bool, int]], most: int
) -> None:
    sizes = [size for _, size in entries]
    cuts = [0, *(index for index, (asks, _) in enumerate(entries) if asks and index)]
    begin = fit(cuts, [0, *accumulate(sizes)], most)
    assert begin in cuts
    assert sum(sizes[begin:]) <= most or begin == cuts[-1]
    assert all(sum(sizes[cut:]) > most for cut in cuts if cut < begin)


def test_an_empty_transcript_is_sent_whole() -> None:
    assert fit([0], [0], -1) == 0
