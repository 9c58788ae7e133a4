"""The programs that judge the adapter are installed once for all tests."""

from __future__ import annotations

import pytest

from tests.mcp.node import install


@pytest.fixture(scope="session")
def judges() -> None:
    """Node programs, installed."""
    install()
