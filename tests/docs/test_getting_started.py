"""The first page can be followed to the letter."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.docs.pages import ROOT
from tests.docs.reader import follow, plain_environment


def test_a_reader_who_has_installed_gets_to_the_end(tmp_path: Path) -> None:
    environment = plain_environment(tmp_path, str(Path(sys.executable).parent))
    environment["PYTHONPATH"] = str(ROOT)
    shown = follow(tmp_path, environment, installed=True)
    pieces = re.findall(r'"data":\{"delta":"([^"]*)"\}', shown)
    assert pieces == ["Ueno Park ", "is on day 2 now.", "Ueno Park is gone."]
    assert shown.count('"type":"run.completed"') == 2
