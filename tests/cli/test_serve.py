"""`rungent serve`: HTTPS, log lines, the pace of streams, and what it refuses."""

from __future__ import annotations

import json
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
import trustme
from sqlalchemy import create_engine

from rungent.cli import main
from rungent.sqlalchemy import SQLAlchemyStore
from rungent.testing.sse import SseReader

APP = """
from sqlalchemy import create_engine

from rungent import Agent, Identity, Runtime, ToolContext, tool
from rungent.asgi import create_app
from rungent.llm import ModelCompleted, ToolCall
from rungent.sqlalchemy import SQLAlchemyStore
from rungent.testing import Delay, ScriptedModel


@tool(effect="write", approval="never")
async def raises(ctx: ToolContext, secret: str) -> None:
    "Raise."
    raise ValueError("canary-exception")


call = ToolCall("raises", {"secret": "canary-argument"})
asked = ModelCompleted(tool_calls=(call,))
model = ScriptedModel([asked, [Delay(0.3), ModelCompleted("canary-answer")]] * 9)
agent = Agent(name="helper", instructions="canary-instructions", tools=[raises])
store = SQLAlchemyStore(create_engine("sqlite:///runs.db"))
runtime = Runtime(agents=[agent], model=model, store=store)
app = create_app(runtime, identity_resolver=lambda request: Identity("canary-user"))
"""
DEADLINE_SECONDS = 300


@asynccontextmanager
async def served(folder: Path, *options: str) -> AsyncGenerator[tuple[str, list[dict[str, Any]]]]:
    """The URL of the command, and afterwards the JSON lines that it logged."""
    (folder / "host_app.py").write_text(APP)
    # Workers that made it themselves would get into each other's way.
    await SQLAlchemyStore(create_engine(f"sqlite:///{folder / 'runs.db'}")).create_schema()
    command = [sys.executable, "-m", "rungent", "serve", "host_app:app", "--port", "0", *options]
    logged: list[dict[str, Any]] = []
    with trio.fail_after(DEADLINE_SECONDS), (folder / "log").open("wb") as log:
        process = await trio.lowlevel.open_process(command, stdout=-1, stderr=log, cwd=folder)
        try:
            assert process.stdout is not None
            printed = (await process.stdout.receive_some()).decode()
            url = re.search(r"https?://[^\s/]+", printed)
            assert url is not None, (folder / "log").read_text()
            yield url[0], logged
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
        finally:
            process.kill()
            with trio.move_on_after(10, shield=True):
                await process.wait()
    if "json" in options:
        logged += [json.loads(line) for line in (folder / "log").read_text().splitlines()]


async def run_of(url: str, trust: ssl.SSLContext | bool = True) -> tuple[str, bytes]:
    """The id of a run, and its whole stream."""
    async with httpx.AsyncClient(
        base_url=url, verify=trust, trust_env=False, timeout=120
    ) as client:
        session = (await client.post("/sessions", json={})).json()
        made = await client.post(f"/sessions/{session['id']}/runs", json={"input": "canary-input"})
        run_id = str(made.json()["run_id"])
        return run_id, (await client.get(f"/runs/{run_id}/events/stream")).content


def parts(logged: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in logged if "steps" in line]


async def test_json_lines_say_what_became_of_runs_and_nothing_private(tmp_path: Path) -> None:
    async with served(tmp_path, "--log-format", "json") as (url, logged):
        run_id, _ = await run_of(url)
    [part] = parts(logged)
    assert (part["run_id"], part["status"], part["code"]) == (run_id, "completed", None)
    assert (part["agent"], part["steps"], part["level"]) == ("helper", 2, "info")
    for line in logged:
        assert {"time", "level", "logger", "message"} <= set(line)
        shown = str({**line, "exception": ""})
        assert "canary" not in shown
        if "canary" in line.get("exception", ""):
            assert (line["logger"], line["level"]) == ("rungent", "error")
    assert any("canary-exception" in line.get("exception", "") for line in logged)


async def test_workers_speak_https_and_log_and_pace_as_the_command_says(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(
        str(tmp_path / "both.pem")
    )
    trust = ssl.create_default_context()
    authority.configure_trust(trust)  # pyright: ignore[reportUnknownMemberType]
    options = ["--workers", "2", "--certfile", "both.pem", "--log-format", "json"]
    pace = ["--keepalive", "0.1", "--padding", "300"]
    async with served(tmp_path, *options, *pace) as (url, logged):
        assert url.startswith("https://")
        run_id, data = await run_of(url, trust)
        padding = b":" + b" " * 300 + b"\n\n"
        assert data.startswith(b"retry: 1000\n\n" + padding)
        assert b": keep-alive\n\n" + padding in data
        frames = SseReader().feed(data)
        assert [f.event["type"] for f in frames if f.event][-1] == "run.completed"
    assert [part["run_id"] for part in parts(logged)] == [run_id]


async def test_the_log_level_decides_what_is_logged(tmp_path: Path) -> None:
    async with served(tmp_path, "--log-level", "error") as (url, _):
        await run_of(url)
    text = (tmp_path / "log").read_text()
    assert "run part over" not in text
    assert "canary-exception" in text


@pytest.mark.parametrize(
    "options",
    [
        ["--certfile", "missing.pem"],
        ["--certfile", "empty.pem"],
        ["--certfile", "missing.pem", "--workers", "2"],
    ],
)
def test_a_certificate_that_cannot_be_used_is_said_in_one_line(
    tmp_path: Path, options: list[str]
) -> None:
    (tmp_path / "host_app.py").write_text(APP)
    (tmp_path / "empty.pem").write_text("")
    command = [sys.executable, "-m", "rungent", "serve", "host_app:app", "--port", "0", *options]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, check=False, text=True)
    assert done.returncode == 1
    assert "certificate" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "options",
    [["--keyfile", "key.pem"], ["--client-ca", "ca.pem"], ["--padding", "-1"]],
)
def test_options_that_make_no_sense_are_wrong_usage(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
) -> None:
    (tmp_path / "senseless_app.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["serve", "senseless_app:app", *options]) == 2
    assert capsys.readouterr().err.startswith("rungent serve: ")


@pytest.mark.parametrize("option", ["--keepalive", "--write-timeout", "--graceful-timeout"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "soon"])
def test_seconds_are_finite_and_above_zero(option: str, value: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["serve", "host_app:app", f"{option}={value}"])
    assert ended.value.code == 2
