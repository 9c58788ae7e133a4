"""`rungent db check`, `rungent db prune` and `rungent verify`: what they print and return.

Exit codes: 0 all is well, 1 something is wrong with what is stored, 2 wrong usage or a database
that cannot be used. Source: docs/cli.md.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import trio
from sqlalchemy.exc import SQLAlchemyError

from rungent.events import format_time
from rungent.persistence import audit
from rungent.persistence.connecting import (
    DatabaseRefused,
    opened_executor,
    parse_url,
    plain_reason,
)
from rungent.persistence.executors import Executor
from rungent.persistence.prune import Pruned, prune
from rungent.persistence.schema_check import schema_differences
from rungent.persistence.tables import RungentBase

__all__ = ["check_database", "parse_duration", "prune_database", "verify_database"]

FINE, WRONG, UNUSABLE = 0, 1, 2
PAGE = 500
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_duration(text: str) -> timedelta:
    """`30d`, `12h` and the like. ValueError for anything else."""
    form = re.fullmatch(r"([0-9]{1,9})([smhdw])", text)
    if form is None:
        raise ValueError("a whole number and one of s, m, h, d, w, for example 30d")
    try:
        return timedelta(**{_UNITS[form[2]]: int(form[1])})
    except OverflowError:
        raise ValueError("longer than time goes back") from None


def check_database(url: str) -> int:
    """Compare the database with the metadata and say what differs."""
    return _run("db check", url, _check)


def prune_database(url: str, *, older_than: timedelta, dry_run: bool, batch: int) -> int:
    """Delete the logs of runs that ended longer ago than that."""
    try:
        before = datetime.now(UTC) - older_than
    except OverflowError:
        return _refused("db prune", "longer than time goes back")
    return _run("db prune", url, partial(_prune, before, dry_run, batch))


def verify_database(url: str, run_ids: Sequence[str]) -> int:
    """Check what is stored of these runs, or of all; names the first violation of each."""
    return _run("verify", url, partial(_verify, tuple(dict.fromkeys(run_ids))))


def _run(command: str, url: str, work: Callable[[Executor], Awaitable[int]]) -> int:
    try:
        parsed = parse_url(url)
    except DatabaseRefused as refused:
        return _refused(command, str(refused))

    async def main() -> int:
        async with opened_executor(parsed) as executor:
            return await work(executor)

    try:
        return trio.run(main)
    except DatabaseRefused as refused:
        return _refused(command, str(refused))
    except (SQLAlchemyError, OSError) as error:
        return _refused(command, f"the database failed: {plain_reason(error, parsed)}")


def _refused(command: str, reason: str) -> int:
    print(f"rungent {command}: {reason}", file=sys.stderr)
    return UNUSABLE


async def _check(executor: Executor) -> int:
    differences = await executor.run(schema_differences)
    for line in differences:
        print(line)
    if differences:
        return WRONG
    print(f"The schema is complete: {len(RungentBase.metadata.tables)} tables.")
    return FINE


async def _prune(before: datetime, dry_run: bool, batch: int, executor: Executor) -> int:
    done = await prune(executor, before, batch=batch, dry_run=dry_run)
    verb = "Would delete" if dry_run else "Deleted"
    print(f"{verb} {_counts(done)} of {done.runs} runs that ended before {format_time(before)}.")
    return FINE


def _counts(done: Pruned) -> str:
    return (
        f"{done.events} events, {done.tool_calls} tool calls, "
        f"{done.interactions} interactions and {done.external_tasks} tasks"
    )


async def _verify(run_ids: Sequence[str], executor: Executor) -> int:
    if run_ids:
        missing = await executor.run(partial(audit.missing_runs, run_ids=run_ids))
        if missing:
            return _refused("verify", f"there is no run {', '.join(missing)}")
    total = len(run_ids) or await executor.run(audit.count_runs)
    progress = _Progress(total)
    checked = wrong = 0
    ids = list(run_ids) or await executor.run(partial(audit.list_run_ids, after="", limit=PAGE))
    while ids:
        for run_id in ids:
            violation = await executor.run(partial(audit.audit_run, run_id=run_id))
            checked += 1
            if violation is not None:
                wrong += 1
                progress.clear()
                print(f"{run_id} {violation}", flush=True)
            progress.show(checked)
        if run_ids:
            break
        ids = await executor.run(partial(audit.list_run_ids, after=ids[-1], limit=PAGE))
    progress.clear()
    print(f"{checked} runs checked, {wrong} with violations.")
    return WRONG if wrong else FINE


class _Progress:
    """One line that is written over, on a terminal only."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._shown = sys.stderr.isatty()

    def show(self, done: int) -> None:
        """Say how far the work is."""
        if self._shown:
            print(f"\r{done} of {self._total} runs", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Make room for a line of text."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
