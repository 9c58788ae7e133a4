"""`rungent` from a shell: help, wrong usage, serving an application, stopping it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import trio

from rungent.cli import main

APP = """
from rungent import Agent, Identity, Runtime
from rungent.asgi import create_app
from rungent.store import MemoryStore
from rungent.testing import ScriptedModel

agent = Agent(name="helper", instructions="Help.")
runtime = Runtime(agents=[agent], model=ScriptedModel(["Hello"]), store=MemoryStore())
app = create_app(runtime, identity_resolver=lambda request: Identity("somebody"))
"""
DEADLINE_SECONDS = 300


def test_help_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert all(command in shown for command in ("demo", "serve", "verify", "db"))


def test_help_loads_no_database_and_no_web_framework() -> None:
    code = "import sys; from rungent.cli import main; main(['--help'])"
    heavy = "print({'sqlalchemy', 'quart', 'hypercorn'} & set(sys.modules))"
    program = f"try:\n    {code}\nexcept SystemExit:\n    {heavy}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.decode().splitlines()[-1] == "set()"


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve", "app:app", "--host", "a\udcffb"],
        ["demo", "--db", "/tmp/\udcff/x", "--once", "hi"],
        ["verify", "--url", "sqlite:////tmp/\udcff.db"],
    ],
)
def test_arguments_that_are_no_text_are_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == "rungent: an argument is not valid UTF-8\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["serve"],
        ["demo", "--port", "many"],
        ["demo", "--port", "-1"],
        ["serve", "app:app", "--port", "65536"],
        ["verify"],
        ["db"],
        ["db", "check"],
        ["db", "fly"],
        ["db", "prune", "--url", "sqlite:///x.db"],
    ],
)
def test_wrong_usage_ends_with_code_two(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("nothing", "module:attribute"),
        ("no_such_module:app", "no module"),
        ("json:app", "no attribute"),
        ("json:dumps", "create_app"),
    ],
)
def test_serve_says_what_is_wrong_with_its_target(
    target: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", target]) == 2
    assert reason in capsys.readouterr().err


async def test_serve_serves_an_application_until_it_is_told_to_stop(tmp_path: Path) -> None:
    (tmp_path / "host_app.py").write_text(APP)
    command = [sys.executable, "-m", "rungent", "serve", "host_app:app", "--port", "0"]
    process = await trio.lowlevel.open_process(command, stdout=-1, cwd=tmp_path)
    assert process.stdout is not None
    with trio.fail_after(DEADLINE_SECONDS):
        printed = (await process.stdout.receive_some()).decode()
        url = re.search(r"http://\S+", printed)
        assert url is not None, printed
        async with httpx.AsyncClient(base_url=url[0], trust_env=False) as client:
            assert (await client.post("/sessions", json={})).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0


async def test_a_port_that_is_taken_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "host_app.py").write_text(APP)
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = str(listeners[0].socket.getsockname()[1])
    command = [sys.executable, "-m", "rungent", "serve", "host_app:app", "--port", port]
    with trio.fail_after(DEADLINE_SECONDS):
        done = await trio.run_process(
            command, capture_stderr=True, capture_stdout=True, check=False, cwd=tmp_path
        )
    for listener in listeners:
        await listener.aclose()
    assert done.returncode == 1
    assert "cannot serve on" in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()
