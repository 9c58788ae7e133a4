"""Planning a play: which faults and chances a seed brings, and where they strike. Pure.

A plan is a value: it can be printed, cut down and played again. Source: docs/simulation.md#plans.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from typing_extensions import override

__all__ = ["EVERY_KIND", "Chance", "Kind", "Plan", "parse_kinds", "parse_seeds", "plan_of"]


class Kind(StrEnum):
    """What can go wrong, or come at a bad moment."""

    CRASH = "crash"
    """A worker is lost at a write or at a task step, and started again later."""
    DB = "db"
    """A write fails, its reply is lost, or the worker stands still."""
    PROVIDER = "provider"
    """An attempt of the model fails, hangs or breaks off."""
    SLOW_READER = "slow-reader"
    """A reader stops reading for a while, or leaves and comes back."""
    CANCEL = "cancel"
    """The user cancels the run, or a caller goes away in the middle of a request."""
    RIVALS = "rivals"
    """A request is made twice at once, with the same content or with another."""


EVERY_KIND = tuple(Kind)
_WAYS: dict[Kind, tuple[str, ...]] = {
    Kind.CRASH: ("before", "after", "step"),
    Kind.DB: ("error", "lost reply", "stall"),
    Kind.PROVIDER: ("down", "busy", "cut", "incomplete", "hang"),
    Kind.SLOW_READER: ("pause", "leave"),
    Kind.CANCEL: ("run", "caller"),
    Kind.RIVALS: ("same", "other"),
}
_SECONDS = {
    "step": (0, 70),
    "before": (0, 70),
    "after": (0, 70),
    "stall": (20, 70),
    "pause": (0, 60),
    "leave": (0, 40),
}
WRITES = 30
STEPS = 500
EVENTS = 30
ATTEMPTS = 6
REQUESTS = 6
MOST_CHANCES = 4


@dataclass(frozen=True, slots=True)
class Chance:
    """One thing that happens, and where.

    `number` counts from 1: writes or task steps of a worker (`crash`, `db`), attempts of the
    model (`provider`), events seen (`slow-reader`, `cancel` of a run), or requests of the client
    (`rivals`, `cancel` of a caller). `worker` is meant only where a worker is hit.
    """

    kind: Kind
    way: str
    number: int
    worker: int = 0
    seconds: float = 0

    @override
    def __str__(self) -> str:
        n, pause = self.number, f", for {self.seconds:g} s"
        match self.kind, self.way:
            case Kind.CRASH, "step":
                return f"worker {self.worker} crashes in task step {n}, back in {self.seconds:g} s"
            case Kind.CRASH, way:
                return f"worker {self.worker} crashes {way} write {n}, back in {self.seconds:g} s"
            case Kind.DB, "stall":
                return f"worker {self.worker} stands still at write {n}{pause}"
            case Kind.DB, way:
                return f"worker {self.worker} gets {_article(way)} at write {n}"
            case Kind.PROVIDER, way:
                return f"attempt {n} of the model: {way}"
            case Kind.SLOW_READER, way:
                return (
                    f"the reader {'stops' if way == 'pause' else 'leaves'} after event {n}{pause}"
                )
            case Kind.CANCEL, "run":
                return f"the user cancels after event {n}"
            case Kind.CANCEL, _:
                return f"the caller of request {n} goes away"
            case _:
                return f"request {n} is made twice, {self.way} content"


def _article(way: str) -> str:
    return "an error" if way == "error" else f"a {way}"


@dataclass(frozen=True, slots=True)
class Plan:
    """A play: the seed of every other decision, and the chances."""

    seed: int
    chances: tuple[Chance, ...] = ()

    def only(self, kept: Collection[int]) -> Plan:
        """The same with the chances at these places, which count from 1."""
        chosen = (c for place, c in enumerate(self.chances, start=1) if place in kept)
        return Plan(self.seed, tuple(chosen))

    def of(self, kind: Kind, *, worker: int | None = None) -> tuple[Chance, ...]:
        """The chances of a kind, of one worker where that is asked."""
        return tuple(
            c for c in self.chances if c.kind is kind and (worker is None or c.worker == worker)
        )


def plan_of(seed: int, kinds: Iterable[Kind] = EVERY_KIND, *, workers: int = 2) -> Plan:
    """The plan of a seed: always the same one for the same arguments.

    About every fifth seed brings no chance at all, so that plays without any fault are among
    them.
    """
    allowed = sorted(set(kinds))
    choice = random.Random(f"plan {seed}")
    count = choice.randint(0, MOST_CHANCES) if allowed else 0
    return Plan(seed, tuple(_chance(choice, allowed, workers) for _ in range(count)))


def _chance(choice: random.Random, allowed: list[Kind], workers: int) -> Chance:
    kind = choice.choice(allowed)
    way = choice.choice(_WAYS[kind])
    low, high = _SECONDS.get(way, (0, 0))
    return Chance(
        kind,
        way,
        choice.randint(1, _last_number(kind, way)),
        choice.randrange(workers),
        choice.randint(low, high),
    )


def _last_number(kind: Kind, way: str) -> int:
    match kind:
        case Kind.CRASH:
            return STEPS if way == "step" else WRITES
        case Kind.DB:
            return WRITES
        case Kind.PROVIDER:
            return ATTEMPTS
        case Kind.RIVALS:
            return REQUESTS
        case Kind.CANCEL:
            return EVENTS if way == "run" else REQUESTS
        case Kind.SLOW_READER:
            return EVENTS


def parse_seeds(text: str) -> range:
    """`7` or `1..2000`, both ends included. Raises ValueError."""
    found = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", text)
    if found is None:
        raise ValueError(f"{text!r} is no seed and no range like 1..2000")
    first = int(found[1])
    last = int(found[2]) if found[2] is not None else first
    if last < first:
        raise ValueError(f"the range {text} is empty")
    return range(first, last + 1)


def parse_kinds(text: str) -> tuple[Kind, ...]:
    """Kinds with commas between; nothing for `none`. Raises ValueError."""
    return () if text == "none" else tuple(map(_named(), text.split(",")))


def _named() -> Callable[[str], Kind]:
    def named(name: str) -> Kind:
        try:
            return Kind(name.strip())
        except ValueError:
            known = ", ".join(EVERY_KIND)
            raise ValueError(f"{name!r} is no kind of fault; there are {known}") from None

    return named
