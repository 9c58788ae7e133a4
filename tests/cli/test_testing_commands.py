"""`rungent sim`, `baseline` and `doctor` from a shell: output and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rungent.cli import main

ROOT = Path(__file__).resolve().parent.parent.parent
HOST = """
from rungent import Agent, Runtime, ToolContext, tool
from rungent.llm import ModelCompleted, ToolCall
from rungent.store import MemoryStore
from rungent.testing import BaselineCase, BaselineSuite, ScriptedModel
from rungent.testing.simulation import SimScenario, TranscriptModel


@tool(effect="write", approval="never")
async def note(ctx: ToolContext, text: str) -> str:
    \"\"\"Note something.\"\"\"
    return text


agent = Agent(name="helper", instructions="Help.", tools=[note])
runtime = Runtime(agents=[agent], model=ScriptedModel(["Hi."] * 9), store=MemoryStore())
good = BaselineCase("greets", "Hello")
bad = BaselineCase("notes", "Note it", expected_tools=("note",))
suite = BaselineSuite(runtime, [good, bad])


def broken():
    raise ZeroDivisionError("of the host")


hooked = BaselineSuite(runtime, [good], before_all=broken)


class Noting(SimScenario):
    def agents(self):
        return [agent]

    def model(self):
        call = ToolCall("note", {"text": "x"})
        return TranscriptModel([ModelCompleted(tool_calls=(call,)), "Done."])


class Proud(Noting):
    def check_end(self, seen):
        for log in seen.logs.values():
            assert all(e.type != "run.cancelled" for e in log), "it was cancelled"
"""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "host_tests.py").write_text(HOST)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "host_tests", raising=False)
    # The command would start itself again otherwise.
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    return tmp_path


def test_a_baseline_prints_its_report_as_json(
    host: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["baseline", "host_tests:suite"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["pass_rate"] == 0.5
    assert [result["passed"] for result in report["results"]] == [True, False]
    assert report["results"][1]["error"] == "tools: expected exactly note, got none"
    assert report["metrics"]["unexpected_tool_rate"] == 0.0


def test_cases_can_be_chosen_and_repeated(host: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["baseline", "host_tests:suite", "--case", "greets", "--repeat", "3", "--json"]
    assert main([*arguments, "--junit", "out.xml"]) == 0
    assert json.loads(capsys.readouterr().out)["case_pass_rates"] == {"greets": 1.0}
    assert (host / "out.xml").read_text().count("<testcase") == 3


def test_a_report_that_cannot_be_written_is_shown_and_refused(
    host: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["baseline", "host_tests:suite", "--case", "greets", "--json"]
    assert main([*arguments, "--junit", "nowhere/out.xml"]) == 2
    shown = capsys.readouterr()
    assert json.loads(shown.out)["passed"] is True
    assert "nowhere/out.xml" in shown.err


def test_a_hook_that_raises_is_a_failure(host: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["baseline", "host_tests:hooked"]) == 1
    assert "ZeroDivisionError: of the host" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["baseline", "host_tests"], "module:attribute"),
        (["baseline", "no_such_module:suite"], "no module"),
        (["baseline", "host_tests:none"], "no attribute"),
        (["baseline", "host_tests:agent"], "no BaselineSuite"),
        (["baseline", "host_tests:suite", "--case", "x"], "no case 'x'"),
        (["doctor", "host_tests:suite"], "no Agent"),
        (["sim", "host_tests:suite"], "no scenario"),
        (["sim", "host_tests:Noting", "--seeds", "9..1"], "empty"),
        (["sim", "host_tests:Noting", "--faults", "fire"], "no kind of fault"),
    ],
)
def test_a_target_that_cannot_be_used_is_wrong_usage(
    host: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert reason in shown.err
    assert shown.out == ""


def test_the_doctor_shows_what_a_model_is_offered(
    host: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "host_tests:agent"]) == 0
    shown = json.loads(capsys.readouterr().out)
    (tool,) = shown["tools"]
    assert (shown["agent"], tool["name"], tool["effect"]) == ("helper", "note", "write")
    assert (tool["approval"], tool["schema"]["required"]) == ("never", ["text"])


def test_a_simulation_that_passes_says_what_was_played(
    host: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", "host_tests:Noting", "--seeds", "1..20"]) == 0
    assert capsys.readouterr().out.startswith("20 plays passed")


def test_a_simulation_that_fails_says_how_to_play_it_again(
    host: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", "host_tests:Proud", "--seeds", "1..200", "--faults", "cancel,crash"]) == 1
    shown = capsys.readouterr().out
    assert "it was cancelled" in shown
    assert "the user cancels after event" in shown
    again = shown.splitlines()[-1].removeprefix("play it again: rungent ").split()
    assert main(again) == 1
    assert "it was cancelled" in capsys.readouterr().out


def test_the_same_simulation_prints_the_same_in_every_process(host: Path) -> None:
    command = [sys.executable, "-m", "rungent", "sim", "host_tests:Proud", "--seeds", "1..200"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONHASHSEED", None)
    shown = [
        subprocess.run(command, cwd=host, env=environment, capture_output=True, check=False).stdout
        for _ in range(2)
    ]
    assert shown[0] == shown[1]
    assert b"play it again" in shown[0]
