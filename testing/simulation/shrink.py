"""Shrinking what fails: the fewest parts that still do. Pure.

Source: docs/simulation.md#shrinking.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

__all__ = ["ddmin"]

T = TypeVar("T")


def ddmin(parts: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> tuple[T, ...]:
    """A subsequence of `parts` that fails and no longer fails when any one part is left out.

    `fails(parts)` must be true; the order of parts is kept. Delta debugging: halves first, then
    finer, so that few of the `fails` are asked when little matters.
    """
    kept = tuple(parts)
    if not kept or fails(()):
        return ()
    pieces = 2
    while len(kept) > 1:
        reduced = _without_a_piece(kept, pieces, fails)
        if reduced is not None:
            kept, pieces = reduced, max(pieces - 1, 2)
        elif pieces >= len(kept):
            break
        else:
            pieces = min(pieces * 2, len(kept))
    return kept


def _without_a_piece(
    kept: tuple[T, ...], pieces: int, fails: Callable[[Sequence[T]], bool]
) -> tuple[T, ...] | None:
    bounds = [len(kept) * i // pieces for i in range(pieces + 1)]
    for begin, end in pairwise(bounds):
        rest = kept[:begin] + kept[end:]
        if rest and fails(rest):
            return rest
    return None
