"""Baseline cases against a real model server, through the same command as for any provider."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import trio

from tests.modelserver.fixture import KEY, ModelServer

ROOT = Path(__file__).resolve().parent.parent.parent
SUITE = """
import os

from rungent.demo.baseline import make_suite
from rungent.demo.matrix import on_day, unchanged
from rungent.llm import OpenAICompatibleModel
from rungent.testing import BaselineCase

model = OpenAICompatibleModel(
    api_key=os.environ["KEY"], base_url=os.environ["URL"], model="scripted", timeout_seconds=30
)
suite = make_suite(
    model,
    [
        BaselineCase(
            "moves",
            "Please do script:move now",
            followups=("Then do script:noargs now",),
            expected_tools=("move_place", "list_places"),
            assert_state=on_day("Tokyo Tower", 2),
        ),
        BaselineCase("talks", "Just say script:hello now", assert_state=unchanged),
    ],
)
"""


async def test_a_real_model_server_passes_its_cases(
    tmp_path: Path, roomy_server: ModelServer
) -> None:
    (tmp_path / "host.py").write_text(SUITE)
    environment = {**os.environ, "KEY": KEY, "URL": roomy_server.base_url, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "rungent", "baseline", "host:suite", "--repeat", "2"]
    with trio.fail_after(300):
        done = await trio.run_process(
            [*command, "--junit", "report.xml"],
            cwd=tmp_path,
            env=environment,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    report = json.loads(done.stdout)
    assert report["case_pass_rates"] == {"moves": 1.0, "talks": 1.0}
    assert report["metrics"]["tokens"] > 0
    assert report["results"][0]["final_text"] == "There are three places."
    assert 'tests="4"' in (tmp_path / "report.xml").read_text()
