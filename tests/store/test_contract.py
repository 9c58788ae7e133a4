"""The store contract over every store that ships."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rungent.store import Store
from rungent.testing.store_contract import StoreContract
from tests.persistence.stores import ALL_KINDS, open_store


@pytest.mark.parametrize("kind", ALL_KINDS)
class TestContract(StoreContract):
    """`MemoryStore`, and SQLAlchemy over each executor and driver."""

    @pytest.fixture
    async def store(
        self, kind: str, tmp_path: Path, request: pytest.FixtureRequest
    ) -> AsyncIterator[Store]:
        async with open_store(kind, tmp_path, request) as store:
            yield store
