"""Throw-away PostgreSQL servers.

Each has an own cluster in a temporary directory, on a free port. Missing binaries are an error, not
a reason to skip: what was not tested on PostgreSQL is not known to work there.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["DURABLE", "FAST", "Server", "postgres_url", "run_server"]

_BINARIES = Path("/usr/lib/postgresql")
FAST = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off"
DURABLE = "-c fsync=on -c synchronous_commit=on"
"""What was acknowledged survives, also a crash."""


class Server:
    """A server that can be stopped and started again."""

    def __init__(self, home: Path, settings: str) -> None:
        self._log = home / "log"
        self._programs = _programs()
        self._as_server: list[str | Path] = []
        if os.geteuid() == 0:
            # The server refuses root.
            self._as_server = ["runuser", "-u", "postgres", "--"]
            shutil.chown(home, "postgres", "postgres")
        self._data, port = home / "data", _free_port()
        self.url = f"://postgres@127.0.0.1:{port}/postgres"
        """The part of an URL behind the driver's name."""
        self._options = (
            f"{settings} -c max_connections=100 -c port={port} -c listen_addresses=127.0.0.1"
            f" -k {home}"
        )
        self._run("initdb", "--no-sync", "-U", "postgres", "-A", "trust")

    def start(self) -> None:
        """Returns when connections are accepted."""
        self._run("pg_ctl", "-w", "-o", self._options, "start")

    def stop(self, mode: str) -> None:
        """`fast` ends in order, `immediate` is a crash."""
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._as_server, self._programs / program, "-D", self._data, *arguments]
        # A pipe would stay open for as long as a started server lives; a file does not matter.
        with self._log.open("ab") as output:
            code = subprocess.run(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd="/",
                check=False,
            ).returncode
        if code != 0:
            pytest.fail(f"{' '.join(map(str, command))}: {code}\n{self._log.read_text()[-2000:]}")


@contextmanager
def run_server(settings: str) -> Iterator[Server]:
    """A server that runs; whoever stopped it starts it again before leaving."""
    # Not below pytest's own directory, which the server's account may not enter.
    with tempfile.TemporaryDirectory(prefix="rungent-pg-", ignore_cleanup_errors=True) as folder:
        server = Server(Path(folder), settings)
        server.start()
        try:
            yield server
        finally:
            server.stop("fast")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL ending of a server that all tests share."""
    with run_server(FAST) as server:
        yield server.url


def _programs() -> Path:
    found = sorted(_BINARIES.glob("*/bin/initdb"))
    if not found:
        pytest.fail(f"these tests need PostgreSQL: no */bin/initdb under {_BINARIES}")
    return found[-1].parent


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
