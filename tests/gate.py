"""The gate: style, types, tests with coverage, the wheel, the documentation, the SDK, the demo's page.

`python -m tests.gate` runs everything; `python -m tests.gate types` runs one part.
"""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
FOLDERS = ("rungent", "asgi", "persistence", "testing", "docs/examples/trip_planner")
SOURCES = [str(path) for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
# Left out: 114 and 128 do not see a `task_status` that is passed on, 127 prefers another library.
FLAKE8_ASYNC = ["--enable", "ASYNC1,ASYNC2,ASYNC3", "--disable", "ASYNC114,ASYNC127,ASYNC128"]

DATABASE_TESTS = [
    "tests/test_benchmarks.py",
    *(f"tests/{name}" for name in ("kills", "migrations", "persistence", "recovery", "store")),
]
PAGE_TESTS = ["tests/page"]
TEST = [PYTHON, "-m", "coverage", "run", "-m", "pytest"]

PARTS: dict[str, list[list[str]]] = {
    "databases": [[*TEST, *DATABASE_TESTS]],
    "tests": [[*TEST, *(f"--ignore={folder}" for folder in DATABASE_TESTS + PAGE_TESTS)]],
    "style": [
        [PYTHON, "-m", "ruff", "check", "."],
        [PYTHON, "-m", "ruff", "format", "--check", "."],
        [str(Path(PYTHON).parent / "flake8-async"), *FLAKE8_ASYNC, *SOURCES],
    ],
    "types": [
        [PYTHON, "-m", "mypy"],
        [PYTHON, "-m", "pyright"],
    ],
    "mutations": [[PYTHON, "-m", "tests.mutations"]],
    "wheel": [
        [PYTHON, "-m", "tests.packaging"],
    ],
    "docs": [
        [PYTHON, "-m", "tests.docs.site"],
        [PYTHON, "-m", "tests.docs.reader"],
    ],
    "sdk": [
        [PYTHON, "-m", "tests.sdk.check"],
    ],
    "page": [
        [PYTHON, "-m", "tests.page.check"],
        [PYTHON, "-m", "pytest", *PAGE_TESTS],
    ],
    "coverage": [
        [PYTHON, "-m", "coverage", "combine", "--quiet"],
        [PYTHON, "-m", "coverage", "report", "--fail-under", "90", "--format", "total"],
    ],
}
# Two cores, two lanes of about the same length; coverage is counted when both are through.
SHOWN = ("databases", "wheel", "docs", "sdk", "page")
BESIDE = ("tests", "style", "types", "mutations")


def main(names: list[str]) -> int:
    """Run the named parts, or all; returns 1 if any failed, after running every one."""
    wanted = names or list(PARTS)
    with ThreadPoolExecutor() as threads:
        beside = threads.submit(_captured, [name for name in BESIDE if name in wanted])
        failed = _shown([name for name in SHOWN if name in wanted])
        output, failed_beside = beside.result()
    print(output, flush=True)
    failed += failed_beside
    failed += _shown([name for name in wanted if name == "coverage"])
    if failed:
        print(f"failed: {', '.join(failed)}", flush=True)
    return 1 if failed else 0


def _shown(names: list[str]) -> list[str]:
    """Run parts with their output as it comes; returns those that failed."""
    failed: list[str] = []
    for name in names:
        begun = time.monotonic()
        for command in PARTS[name]:
            print(_title(command), flush=True)
            if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
                failed.append(name)
                break
        print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)
    return failed


def _captured(names: list[str]) -> tuple[str, list[str]]:
    """Run parts and collect their output; returns it and those that failed."""
    lines: list[str] = []
    failed: list[str] = []
    for name in names:
        begun = time.monotonic()
        for command in PARTS[name]:
            done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
            lines += [_title(command), (done.stdout + done.stderr).rstrip()]
            if done.returncode != 0:
                failed.append(name)
                break
        lines.append(f"{name}: {time.monotonic() - begun:.0f} s")
    return "\n".join(line for line in lines if line), failed


def _title(command: list[str]) -> str:
    """The command, without the interpreter's path and long lists of files."""
    return "$ " + " ".join([Path(command[0]).name, *command[1:6]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
