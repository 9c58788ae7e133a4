"""Fixtures of the tests from outside: a real model server with room for real prompts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.modelserver.fixture import ModelServer, model_server
from tests.modelserver.fixture import scripted_gguf as scripted_gguf


@pytest.fixture(scope="session")
def roomy_server(scripted_gguf: Path) -> Iterator[ModelServer]:
    """The scripted model counts a token a byte, and the demo's tools take thousands."""
    with model_server(scripted_gguf, N_CTX="65536") as server:
        yield server
