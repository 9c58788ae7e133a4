"""Servers in processes of their own, and a client that follows runs through them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from rungent.testing.sse import SseFrame, SseReader

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples" / "hosts"
PATIENCE = 30
ADA = {"Authorization": "Bearer secret-of-ada"}
API = "/api/assistant"


@dataclass(frozen=True, slots=True)
class Server:
    """A process that serves `url`."""

    url: str
    process: subprocess.Popen[str]

    def end(self) -> tuple[int, str]:
        """Ask it to stop; its exit code and what it wrote."""
        self.process.send_signal(signal.SIGTERM)
        output, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, output


@contextmanager
def served(
    server: str, target: str, *options: str, folder: Path = ROOT, environment: Any = None
) -> Generator[Server]:
    """An application in uvicorn or hypercorn. Requests wait until it has started."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number = listener.fileno()
        bind = {
            "uvicorn": ["--fd", f"{number}", "--no-access-log"],
            "hypercorn": ["-k", "trio", "--bind", f"fd://{number}"],
        }[server]
        process = subprocess.Popen(
            [sys.executable, "-m", server, target, *bind, *options],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
            pass_fds=[number],
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        yield Server(url, process)
    finally:
        with suppress(ProcessLookupError):
            # Also what the server itself has started.
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@contextmanager
def client(server: Server, headers: dict[str, str] | None = None) -> Generator[httpx.Client]:
    """A client of a server; Ada's, unless told otherwise."""
    with httpx.Client(
        base_url=server.url,
        headers=ADA if headers is None else headers,
        timeout=PATIENCE,
        trust_env=False,
    ) as http:
        yield http


def start_run(http: httpx.Client, text: str = "Hello there", api: str = API) -> str:
    """A new run in a new session; its path."""
    session = http.post(f"{api}/sessions").raise_for_status().json()
    path = f"{api}/sessions/{session['id']}/runs"
    answer = http.post(path, json={"input": text})
    assert answer.status_code == 202, answer.text
    return f"{api}/runs/{answer.json()['run_id']}"


def frames(response: httpx.Response) -> Iterator[SseFrame]:
    """The frames of an event stream, as they come."""
    reader = SseReader()
    for chunk in response.iter_raw():
        yield from reader.feed(chunk)
