"""What the SDK holds of the server is what the server says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sdk.generated import GENERATED


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_generated_files_of_the_sdk_are_up_to_date(path: Path) -> None:
    """`python -m tests.sdk` writes them anew."""
    assert path.read_text(encoding="utf-8") == GENERATED[path]()
