"""Runs the peers' scripts and ours in turn and keeps their lines: `python -m … FOLDER OUT`.

Environments are made in the temporary folder, one for each peer; `--only` names scripts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Each script and the environment it runs in.
SCRIPTS = {
    "bench_floor": "rungent_upstream",
    "bench_pydantic_ai": "pydantic_ai",
    "bench_openai_agents": "openai_agents",
    "bench_langgraph": "langgraph",
    "bench_rungent_upstream": "rungent_upstream",
    "bench_rungent": "rungent",
}


def main() -> None:
    """Make what is missing, then measure, round after round."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.peers.run")
    parser.add_argument("folder", type=Path, help="with harness.py, workload.py, setup.sh")
    parser.add_argument("out", type=Path, help="file for the lines of JSON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=SCRIPTS, default=list(SCRIPTS))
    parser.add_argument("--venvs", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args()
    folder = given.folder.resolve()
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PEERS": str(folder)}
    environment |= {"VENVS": str(given.venvs.resolve()), "PYTHON": sys.executable}
    environment.pop("PYTHONPATH", None)
    subprocess.run([folder / "setup.sh"], env=environment, check=True)
    _own_environment(given.venvs)
    given.out.write_text("", encoding="utf-8")
    for number in range(given.rounds):
        for script in given.only:
            print(f"round {number + 1}: {script}", file=sys.stderr)
            path = (HERE if script == "bench_rungent" else folder) / f"{script}.py"
            python = given.venvs / f"venv-peers-{SCRIPTS[script]}" / "bin" / "python"
            passes: list[tuple[str, list[str]]]
            passes = [("tuned", [])] if script == "bench_floor" else _BOTH
            for sqlite, options in passes:
                with given.out.open("a", encoding="utf-8") as out:
                    subprocess.run(
                        [python, path, *options],
                        env=environment | {"BENCH_SQLITE": sqlite},
                        stdout=out,
                        check=True,
                    )


_BOTH: list[tuple[str, list[str]]] = [("tuned", []), ("shipped", ["--durable"])]


def _own_environment(venvs: Path) -> None:
    made = venvs / "venv-peers-rungent"
    if (made / "bin" / "python").exists():
        return
    subprocess.run([sys.executable, "-m", "venv", made], check=True)
    pip: list[str | Path] = [made / "bin" / "pip", "install", "--quiet", "-r", "rungent.txt"]
    subprocess.run(pip, cwd=HERE, check=True)


if __name__ == "__main__":
    main()
