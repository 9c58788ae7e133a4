"""Writes the generated pages: `python -m tests.docs`."""

from __future__ import annotations

from tests.docs.generated import PAGES
from tests.docs.pages import ROOT

for name, make in PAGES.items():
    (ROOT / name).parent.mkdir(exist_ok=True)
    (ROOT / name).write_text(make(), encoding="utf-8")
    print(name)
