"""The commands of the testing kit: `rungent sim`, `baseline` and `doctor`. Source: docs/cli.md."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["add_testing_commands"]


def add_testing_commands(commands: Any) -> None:
    """Add the commands to the parser's `commands`; nothing is loaded before one is used."""
    _add_sim(
        commands.add_parser(
            "sim",
            help="play a scenario in virtual time, with faults",
            description="Play MODULE:SCENARIO once for each seed, with faults and chances that the "
            "seed brings, until a promise is broken; then print the fewest of them that break it.",
        )
    )
    _add_baseline(
        commands.add_parser(
            "baseline",
            help="play the cases of a BaselineSuite",
            description="Play the cases of MODULE:ATTRIBUTE, a BaselineSuite, and print the "
            "report: a table in a terminal, else JSON.",
        )
    )
    doctor = commands.add_parser(
        "doctor",
        help="show what an agent offers to a model",
        description="Print the tools of MODULE:AGENT with their schemas, as JSON.",
    )
    doctor.set_defaults(run=_doctor)
    doctor.add_argument("target", metavar="MODULE:AGENT")


def _add_sim(sim: argparse.ArgumentParser) -> None:
    sim.set_defaults(run=_sim)
    sim.add_argument("target", metavar="MODULE:SCENARIO")
    sim.add_argument("--seeds", default="1..200", metavar="A..B", help="(default: 1..200)")
    sim.add_argument(
        "--faults",
        metavar="KIND,…",
        help="crash, db, provider, slow-reader, cancel, rivals, or none (default: all)",
    )
    sim.add_argument(
        "--workers", type=_at_least_one, default=2, metavar="N", help="workers (default: 2)"
    )
    sim.add_argument(
        "--store", choices=["memory", "sqlite"], default="memory", help="(default: memory)"
    )
    sim.add_argument(
        "--keep", metavar="N,…", help="of each seed's chances only these, from 1, or none"
    )


def _add_baseline(baseline: argparse.ArgumentParser) -> None:
    baseline.set_defaults(run=_baseline)
    baseline.add_argument("target", metavar="MODULE:ATTRIBUTE")
    baseline.add_argument(
        "--case", action="append", default=[], metavar="NAME", help="only this one; repeatable"
    )
    baseline.add_argument(
        "--repeat",
        type=_at_least_one,
        default=1,
        metavar="N",
        help="play each case N times, for models that vary (default: 1)",
    )
    baseline.add_argument("--json", action="store_true", help="JSON in a terminal, too")
    baseline.add_argument("--junit", type=Path, metavar="FILE", help="also write JUnit XML")


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _sim(arguments: argparse.Namespace) -> int:
    import sys

    from rungent.testing.simulation import command, plan

    try:
        seeds = plan.parse_seeds(arguments.seeds)
        every = arguments.faults is None
        kinds = plan.EVERY_KIND if every else plan.parse_kinds(arguments.faults)
        keep = _numbers(arguments.keep)
    except ValueError as wrong:
        print(f"rungent sim: {wrong}", file=sys.stderr)
        return 2
    command.repeatable_process()
    play: Callable[..., int] = command.run_simulation
    return play(
        arguments.target,
        seeds=seeds,
        kinds=kinds,
        workers=arguments.workers,
        store=arguments.store,
        keep=keep,
    )


def _numbers(text: str | None) -> list[int] | None:
    if text is None:
        return None
    return [] if text == "none" else [int(part) for part in text.split(",")]


def _baseline(arguments: argparse.Namespace) -> int:
    from rungent.testing.baseline.command import baseline

    return baseline(
        arguments.target,
        names=arguments.case,
        repeat=arguments.repeat,
        as_json=arguments.json,
        junit=arguments.junit,
    )


def _doctor(arguments: argparse.Namespace) -> int:
    from rungent.testing.baseline.command import doctor

    return doctor(arguments.target)
