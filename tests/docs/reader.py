"""A reader who follows the page "Getting started" to the letter, in an empty folder.

Every file is saved under the name that the page gives it, and every command is executed as it is
written, in one shell. Two things differ: the port, so that nothing else on the machine is in the
way, and that the server runs beside the shell instead of in a terminal of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import ROOT, page

__all__ = ["clone", "follow", "plain_environment", "script"]

PAGE = "docs/getting-started.md"
LEFT_OUT = shutil.ignore_patterns(
    ".git",
    ".venv",
    ".*_cache",
    ".hypothesis",
    ".coverage*",
    "__pycache__",
    "node_modules",
    "build",
    "dist",
    "*.egg-info",
    "*.db*",
)
_STEP = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"[Ss]ave this as `([\w.]+)`")


def clone(target: Path) -> None:
    """A copy of the checkout as a newcomer has it."""
    shutil.copytree(ROOT, target, symlinks=True, ignore=LEFT_OUT)


def follow(folder: Path, environment: dict[str, str], *, installed: bool) -> str:
    """Do what the page says in `folder`; returns what the terminal showed.

    `installed` leaves out the section that installs. Raises CalledProcessError with the output
    when a command failed.
    """
    done = subprocess.run(
        ["bash", "-c", script(folder, _free_port(), installed=installed)],
        cwd=folder,
        env=environment,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    if done.returncode != 0:
        raise AssertionError(f"a command of {PAGE} failed:\n{done.stdout}")
    return done.stdout


def script(folder: Path, port: int, *, installed: bool) -> str:
    """Save the page's files, and give its commands as one script for bash."""
    lines = ["set -eu", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"]
    for before, language, text in _steps(page(PAGE)):
        if language == "python":
            named = _NAMED.search(before)
            assert named is not None, f"a block of {PAGE} has no file name: {text[:40]}"
            (folder / named[1]).write_text(text, encoding="utf-8")
        elif text.startswith("rungent serve"):
            lines += [f"{text.strip()} --port {port} >served.log 2>&1 &", *_until_served(port)]
        elif not (installed and "pip install" in text):
            lines.append(text.replace(":8000", f":{port}"))
    return "\n".join(lines)


def _steps(text: str) -> Iterator[tuple[str, str, str]]:
    """Blocks with the paragraph before each, their language and their text."""
    for found in _STEP.finditer(text):
        before = text[: found.start()].rstrip().rpartition("\n\n")[2]
        yield before, found[1], found[2]


def _until_served(port: int) -> tuple[str, ...]:
    probe = f"curl -s -o /dev/null http://127.0.0.1:{port}/"
    return (f"for _ in $(seq 200); do {probe} && break; sleep 0.1; done",)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def plain_environment(home: Path, *paths: str) -> dict[str, str]:
    """What installing needs of this machine, nothing of its keys; `home` is the home folder."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("PIP_", "LANG", "SSL_", "REQUESTS_")) or name.lower().endswith("_proxy")
    }
    path = os.pathsep.join([*paths, os.environ.get("PATH", os.defpath)])
    return {**kept, "HOME": str(home), "PATH": path, "no_proxy": "127.0.0.1"}


def main() -> int:
    """Follow the page on a copy of the checkout, with an environment of its own; returns 0."""
    with tempfile.TemporaryDirectory() as folder:
        home, work = Path(folder) / "home", Path(folder) / "work"
        clone(home / "rungent")
        work.mkdir()
        shown = follow(work, plain_environment(home), installed=False)
    for expected in ('{"delta":"Ueno Park "}', '{"delta":"Ueno Park is gone."}'):
        if expected not in shown:
            print(f"{PAGE} does not lead to {expected}:\n{shown}")
            return 1
    print(f"{PAGE}: followed to the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
