"""Plans and shrinking are plain functions: the same in, the same out."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from rungent.testing.simulation import EVERY_KIND, Kind, ddmin, plan_of
from rungent.testing.simulation.plan import parse_kinds, parse_seeds


def test_a_seed_always_brings_the_same_plan() -> None:
    assert [plan_of(seed) for seed in range(50)] == [plan_of(seed) for seed in range(50)]


def test_only_the_wanted_kinds_are_planned() -> None:
    for seed in range(50):
        assert {c.kind for c in plan_of(seed, [Kind.CRASH, Kind.DB]).chances} <= {
            Kind.CRASH,
            Kind.DB,
        }
    assert plan_of(1, []).chances == ()


def test_among_the_plans_is_every_kind_and_some_have_nothing() -> None:
    plans = [plan_of(seed) for seed in range(200)]
    assert {c.kind for plan in plans for c in plan.chances} == set(EVERY_KIND)
    assert any(not plan.chances for plan in plans)
    assert all(str(c) for plan in plans for c in plan.chances)


def test_a_plan_can_be_cut_down_by_places() -> None:
    plan = next(p for p in map(plan_of, range(99)) if len(p.chances) == 4)
    assert plan.only([2, 4]).chances == (plan.chances[1], plan.chances[3])
    assert plan.only([]).chances == ()


@pytest.mark.parametrize("guilty", [(3,), (1, 7), (0, 4, 9), tuple(range(10))])
def test_shrinking_finds_exactly_what_is_needed(guilty: tuple[int, ...]) -> None:
    kept = ddmin(range(10), lambda parts: set(guilty) <= set(parts))
    assert kept == guilty


def test_what_fails_by_itself_needs_nothing() -> None:
    assert ddmin([1, 2, 3], lambda parts: True) == ()


def test_nothing_can_be_left_out_of_what_was_shrunk() -> None:
    for seed in range(100):
        choice = random.Random(seed)
        sets = [set(choice.sample(range(12), choice.randint(1, 3))) for _ in range(3)]

        def fails(parts: Sequence[int], sets: list[set[int]] = sets) -> bool:
            return any(one <= set(parts) for one in sets)

        kept = ddmin(tuple(range(12)), fails)
        assert fails(kept)
        assert not any(fails([p for p in kept if p != left]) for left in kept)


def test_seeds_are_one_or_a_range() -> None:
    assert parse_seeds("7") == range(7, 8)
    assert parse_seeds("1..2000") == range(1, 2001)
    for wrong in ("", "x", "5..1", "1-2", "1.."):
        with pytest.raises(ValueError, match=r"seed|range"):
            parse_seeds(wrong)


def test_kinds_are_named_with_commas() -> None:
    assert parse_kinds("crash,slow-reader") == (Kind.CRASH, Kind.SLOW_READER)
    assert parse_kinds("none") == ()
    with pytest.raises(ValueError, match="there are crash"):
        parse_kinds("crash,fire")
