"""Fixtures that run the scripted model server as a process of its own."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

KEY = "sk-scripted"
START_SECONDS = 60.0


class ModelServer:
    """A running server. `base_url` is what a client needs besides `KEY`."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self._process = process
        self.base_url = f"http://127.0.0.1:{port}/v1"

    def kill(self) -> None:
        """End the process as a crash does."""
        self._process.kill()
        self._process.wait()


@contextmanager
def model_server(path: Path, **environment: str) -> Iterator[ModelServer]:
    """Serve the model at `path` on a free port; `environment` as `serve.py` says."""
    port = _free_port()
    command = [sys.executable, str(Path(__file__).with_name("serve.py")), str(path), str(port)]
    environment = {**os.environ, "API_KEY": KEY, **environment}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            _wait_until_ready(process, port)
            yield ModelServer(process, port)
        finally:
            process.kill()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def _wait_until_ready(process: subprocess.Popen[bytes], port: int) -> None:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
    line = process.stdout.readline() if ready else b""
    if not line.startswith(b"READY"):
        raise RuntimeError(f"the model server did not start: {line!r}")
    socket.create_connection(("127.0.0.1", port), START_SECONDS).close()


@pytest.fixture(scope="session")
def scripted_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the scripted model."""
    from .make_scripted_gguf import build

    path = tmp_path_factory.mktemp("model") / "scripted.gguf"
    build(path)
    return path


@pytest.fixture(scope="session")
def scripted_server(scripted_gguf: Path) -> Iterator[ModelServer]:
    """One server for the whole session, with 4096 tokens of context per request."""
    with model_server(scripted_gguf, N_CTX="8192") as server:
        yield server


@pytest.fixture
def own_server(scripted_gguf: Path) -> Iterator[Callable[..., ModelServer]]:
    """A way to start a server that this test alone uses, and may kill."""
    with ExitStack() as stack:

        def start(**environment: str) -> ModelServer:
            return stack.enter_context(model_server(scripted_gguf, **environment))

        yield start
