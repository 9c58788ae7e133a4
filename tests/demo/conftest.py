"""What the tests of the example run on."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(params=["memory", "sqlite"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """No file, for a MemoryStore and tables in memory, or one SQLite file for everything."""
    return tmp_path / "demo.sqlite3" if request.param == "sqlite" else None
