"""Copies of the package and of what the hunt needs, never the working tree itself."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.mutations.catalog import Mutation, apply

__all__ = ["mutated"]

ROOT = Path(__file__).resolve().parent.parent.parent
PARTS = ("rungent", "asgi", "persistence", "testing", "tests/simulation", "tests/mutations")


@contextmanager
def mutated(mutation: Mutation | None) -> Generator[Path]:
    """A folder with a copy, changed by the mutation. Raises AnchorLost."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for part in PARTS:
            skipped = shutil.ignore_patterns("__pycache__", "test_*")
            shutil.copytree(ROOT / part, root / part, symlinks=True, ignore=skipped)
        (root / "tests" / "__init__.py").touch()
        (root / "docs" / "examples").mkdir(parents=True)
        if mutation is not None:
            apply(mutation, root)
        yield root
