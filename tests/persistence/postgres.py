"""A throw-away PostgreSQL server for one test session.

Starts an own cluster in a temporary directory, on a free port. Missing binaries are an error, not a
reason to skip: what was not tested on PostgreSQL is not known to work there.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["postgres_url"]

_BINARIES = Path("/usr/lib/postgresql")
_SETTINGS = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=100"


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The part of an URL behind the driver's name: `://postgres@127.0.0.1:…/postgres`."""
    programs = _programs()
    # Not below pytest's own directory, which the server's account may not enter.
    with tempfile.TemporaryDirectory(prefix="rungent-pg-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        as_server: list[str | Path] = []
        if os.geteuid() == 0:
            # The server refuses root.
            as_server = ["runuser", "-u", "postgres", "--"]
            shutil.chown(home, "postgres", "postgres")
        data, log, port = home / "data", home / "log", _free_port()
        create: list[str | Path] = [*as_server, programs / "initdb", "-D", data, "--no-sync"]
        _run(log, *create, "-U", "postgres", "-A", "trust")
        options = f"{_SETTINGS} -c port={port} -c listen_addresses=127.0.0.1 -k {home}"
        control: list[str | Path] = [*as_server, programs / "pg_ctl", "-D", data, "-w"]
        _run(log, *control, "-o", options, "start")
        try:
            yield f"://postgres@127.0.0.1:{port}/postgres"
        finally:
            _run(log, *control, "-m", "fast", "stop")


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


def _run(log: Path, *command: str | Path) -> None:
    # A pipe would stay open for as long as a started server lives; a file does not matter.
    with log.open("ab") as output:
        code = subprocess.run(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            check=False,
        ).returncode
    if code != 0:
        pytest.fail(f"{' '.join(map(str, command))}: exit {code}\n{log.read_text()[-2000:]}")
