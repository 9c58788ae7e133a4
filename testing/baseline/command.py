"""`rungent baseline` and `rungent doctor`: what they print, and their exit codes.

Source: docs/cli.md.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import trio

from rungent.agent import Agent
from rungent.testing.baseline.cases import BaselineResult
from rungent.testing.baseline.report import BaselineReport
from rungent.testing.baseline.show import as_junit, as_table, progress_line
from rungent.testing.baseline.suite import BaselineSuite
from rungent.testing.loading import TargetError, load

__all__ = ["baseline", "doctor"]

FAILED = 1
USAGE_ERROR = 2


def baseline(
    target: str, *, names: Sequence[str], repeat: int, as_json: bool, junit: Path | None
) -> int:
    """Play a suite and print its report, as JSON unless it is read by a person.

    0 when every case passed; 1 when a case failed or a hook of the suite raised; 2 for a target
    that is no suite, an unknown case, or a file of `junit` that cannot be written.
    """
    try:
        suite = _suite(target, names)
    except TargetError as wrong:
        return _refused("baseline", wrong)
    progress = _Progress(len(suite.cases) * repeat)
    try:
        report = trio.run(lambda: suite.run(repeat=repeat, finished=progress.finished))
    except Exception as raised:  # noqa: BLE001 - a hook of the host
        progress.clear()
        print(f"rungent baseline: {type(raised).__name__}: {raised}", file=sys.stderr)
        return FAILED
    progress.clear()
    print(_json(report, repeat) if as_json or not sys.stdout.isatty() else as_table(report))
    if junit is not None:
        try:
            junit.write_text(as_junit(report, target), encoding="utf-8")
        except OSError as error:
            return _refused("baseline", error)
    return 0 if report.passed else FAILED


def doctor(target: str) -> int:
    """Print what an agent offers to a model; 2 for a target that is no agent."""
    try:
        agent = load(target)
        if not isinstance(agent, Agent):
            raise TargetError(f"{target} is no Agent")
    except TargetError as wrong:
        return _refused("doctor", wrong)
    tools = [
        {
            "name": tool.name,
            "effect": tool.effect.value,
            "approval": tool.approval.value,
            "schema": tool.schema,
        }
        for tool in agent.tools
    ]
    print(json.dumps({"agent": agent.name, "tools": tools}, indent=2, ensure_ascii=False))
    return 0


def _suite(target: str, names: Sequence[str]) -> BaselineSuite:
    suite = load(target)
    if not isinstance(suite, BaselineSuite):
        raise TargetError(f"{target} is no BaselineSuite")
    unknown = set(names) - {case.name for case in suite.cases}
    if unknown:
        raise TargetError(f"there is no case {min(unknown)!r} in {target}")
    if not names:
        return suite
    return replace(suite, cases=[case for case in suite.cases if case.name in names])


def _json(report: BaselineReport, repeat: int) -> str:
    shown = {**report.to_dict(), "metrics": report.metrics()}
    if repeat > 1:
        rates = {name: passed / played for name, (passed, played) in report.by_case().items()}
        shown["case_pass_rates"] = rates
    return json.dumps(shown, indent=2, ensure_ascii=False)


def _refused(command: str, wrong: Exception) -> int:
    print(f"rungent {command}: {wrong}", file=sys.stderr)
    return USAGE_ERROR


class _Progress:
    """A bar on standard error, if that is a terminal."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._shown = sys.stderr.isatty()

    def finished(self, result: BaselineResult) -> None:
        """One more."""
        self._done += 1
        if self._shown:
            line = progress_line(self._done, self._total, result.name)
            print(end=f"\r\033[K{line}", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the bar away."""
        if self._shown:
            print(end="\r\033[K", file=sys.stderr, flush=True)
