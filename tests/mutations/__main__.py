"""`python -m tests.mutations [WORD …]`: plant each bug in a copy, and see the simulation find it.

Words choose the mutations whose names hold them. Ends with 1 when a bug was not found, or when
the unchanged package fails.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.mutations.catalog import MUTATIONS, AnchorLost, Mutation
from tests.mutations.copies import mutated

__all__ = ["found", "main"]

HUNT_SECONDS = 300


def found(mutation: Mutation) -> dict[str, Any]:
    """What a hunt in a copy with this mutation finds. Raises AnchorLost."""
    with mutated(mutation) as root:
        command = [sys.executable, "-m", "tests.mutations.hunt", mutation.scenario]
        command += [mutation.store, str(mutation.seeds), mutation.faults]
        environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONHASHSEED": "0"}
        done = subprocess.run(
            command,
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
            timeout=HUNT_SECONDS,
            check=False,
        )
    if done.returncode:
        # A bug that does not even start is found as well, but tells nothing.
        raise RuntimeError(done.stderr[-2000:])
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _row(mutation: Mutation) -> tuple[bool, str]:
    try:
        result = found(mutation)
    except AnchorLost as lost:
        return False, f"ANCHOR LOST  {lost}"
    schedule = "; ".join(result["chances"]) or "no chance needed"
    verdict = f"{result['plays']:>4}" if result["violation"] else "MISSED"
    lines = [f"{verdict:>6}  {mutation.name}"]
    if result["violation"]:
        lines += [f"        by     {result['violation']}", f"        needs  {schedule}"]
    return bool(result["violation"]), "\n".join(lines)


def main(words: Sequence[str]) -> int:
    """Hunt the chosen mutations, two at a time, and print the table."""
    chosen = [m for m in MUTATIONS if not words or any(word in m.name for word in words)]
    print(" seeds  mutation", flush=True)
    with ThreadPoolExecutor(2) as threads:
        rows = [threads.submit(_row, mutation) for mutation in chosen]
        verdicts: list[bool] = []
        for row in rows:
            passed, line = row.result()
            verdicts.append(passed)
            print(line, flush=True)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = spent.ru_utime + spent.ru_stime
    print(f"{sum(verdicts)} of {len(verdicts)} found, {cpu:.0f} s of CPU")
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
