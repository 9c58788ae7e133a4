"""The mutations still fit the code they change, and the working tree is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutations.catalog import MUTATIONS, AnchorLost, Mutation, apply
from tests.mutations.copies import ROOT, mutated
from tests.simulation import scenarios


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.name)
def test_a_mutation_changes_one_place_of_a_copy(mutation: Mutation, tmp_path: Path) -> None:
    source = (ROOT / mutation.path).read_text(encoding="utf-8")
    target = tmp_path / mutation.path
    target.parent.mkdir(parents=True)
    target.write_text(source, encoding="utf-8")
    apply(mutation, tmp_path)
    changed = target.read_text(encoding="utf-8")
    assert changed != source
    compile(changed, mutation.path, "exec")
    assert (ROOT / mutation.path).read_text(encoding="utf-8") == source
    assert hasattr(scenarios, mutation.scenario)


def test_there_are_enough_of_them() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS) >= 10


def test_an_anchor_that_is_gone_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\nx = 1\n", encoding="utf-8")
    for before in ("x = 1", "y = 1"):
        with pytest.raises(AnchorLost, match=r"expected once; give the mutation another anchor"):
            apply(Mutation("it", "a.py", before, ""), tmp_path)


def test_a_copy_is_whole_and_gone_afterwards() -> None:
    with mutated(None) as root:
        assert root != ROOT
        assert (root / "rungent" / "testing" / "__init__.py").is_file()
    assert not root.exists()
