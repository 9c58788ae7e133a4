"""The stores over which questions of tools are tested, all in virtual time."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from trio.testing import MockClock

from rungent.store import MemoryStore, Store
from rungent.testing.clock import HoldAutojump
from tests.asking.channel import Channel
from tests.persistence.stores import opened, postgres_for, sql_store

KINDS = ["memory", "sqlite", "asyncpg"]


@pytest.fixture(params=KINDS)
async def store(
    request: pytest.FixtureRequest, tmp_path: Path, autojump_clock: MockClock
) -> AsyncGenerator[Store]:
    """An empty store; virtual time stands still while a database works."""
    if request.param == "memory":
        yield MemoryStore()
        return
    kind, url = request.param, postgres_for(request.param, request)
    made = sql_store(kind, tmp_path, url, hold=HoldAutojump(autojump_clock))
    async with opened(made):
        yield made


@pytest.fixture
def channel() -> Channel:
    """A chat channel without messages."""
    return Channel()
