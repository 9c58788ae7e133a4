"""The stores over which pauses are tested, all in virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest
from trio.testing import MockClock

from rungent.store import MemoryStore, Store
from rungent.testing.clock import HoldAutojump
from tests.persistence.stores import FILE_KINDS, sql_store


@pytest.fixture(params=["memory", *FILE_KINDS])
async def store(request: pytest.FixtureRequest, tmp_path: Path, autojump_clock: MockClock) -> Store:
    """An empty store; virtual time stands still while a database works."""
    if request.param == "memory":
        return MemoryStore()
    made = sql_store(request.param, tmp_path, hold=HoldAutojump(autojump_clock))
    await made.create_schema()
    return made
