"""The files of the SDK that Python writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.sdk.answers import answer_table
from tests.sdk.types import type_declarations

__all__ = ["GENERATED", "SDK"]

SDK = Path(__file__).resolve().parents[2] / "sdk"


def _answers() -> str:
    # ASCII only: the cases hold lone surrogates, which no UTF-8 file can.
    table = answer_table()
    parts = [
        f'"{name}": [\n' + ",\n".join(json.dumps(line) for line in lines) + "\n]"
        for name, lines in table.items()
    ]
    return "{" + ", ".join(parts) + "}\n"


GENERATED: dict[Path, Callable[[], str]] = {
    SDK / "src" / "types.ts": type_declarations,
    SDK / "tests" / "answers.json": _answers,
}
"""Each file and what it should hold."""
