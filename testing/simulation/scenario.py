"""What is simulated: agents, a model, what users say and answer, and what must always hold.

Source: docs/simulation.md#scenarios.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import JsonValue

from rungent.agent import Agent
from rungent.events import Event
from rungent.llm.port import Model
from rungent.options import RuntimeOptions
from rungent.records import ExternalTask, Run
from rungent.tools.results import ToolResult

__all__ = ["Execution", "Seen", "SimScenario"]


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of a tool that has an effect: it began, and `ended` says whether it ended."""

    tool: str
    key: str
    arguments: Mapping[str, Any]
    worker: int
    ended: bool = False


@dataclass(slots=True)
class Seen:
    """What is stored, and what tools did, at one moment of a play.

    `runs` and `logs` are by run id; `executions` are those of tools with an effect, in order.
    """

    runs: dict[str, Run] = field(default_factory=dict[str, Run])
    logs: dict[str, list[Event]] = field(default_factory=dict[str, list[Event]])
    executions: list[Execution] = field(default_factory=list[Execution])


class SimScenario:
    """Subclass it, or change the attributes of one.

    One instance is made for each play and may hold the world that tools act on: it outlives
    every worker. Everything must be decided from arguments, from that world, or from the
    `choice` that is handed in; then the same seed plays the same.
    """

    conversations: Sequence[Sequence[str]] = (("Go",),)
    """For each session what its user says, one run after another."""

    def options(self) -> RuntimeOptions:
        """Options of every worker."""
        return {}

    def agents(self) -> Sequence[Agent]:
        """The agents; every session is with the first."""
        raise NotImplementedError

    def model(self) -> Model:
        """The model, asked by every worker; see `TranscriptModel`."""
        raise NotImplementedError

    def deps(self) -> Mapping[str, Any]:
        """What tools get as `ctx.deps`."""
        return {}

    def answer(self, asked: Mapping[str, Any], choice: random.Random) -> JsonValue:
        """The user's answer to a question: a valid one, drawn from `choice`, unless overridden.

        `asked` is the payload of `interaction.requested`.
        """
        return valid_answer(asked, choice)

    def result(self, task: ExternalTask, choice: random.Random) -> ToolResult:
        """How the host completes deferred work."""
        del choice
        return ToolResult(data={"task": task.task_id})

    def check(self, seen: Seen) -> None:
        """What must hold at every moment; raise AssertionError. Called after each commit."""

    def check_end(self, seen: Seen) -> None:
        """What must hold when every conversation is over; raise AssertionError."""


def valid_answer(asked: Mapping[str, Any], choice: random.Random) -> JsonValue:
    """An answer that keeps the rules of a question."""
    match asked["kind"]:
        case "approval":
            return choice.choice(["approve", "reject"])
        case "choice":
            return _chosen(asked, choice)
        case "form":
            return {"answers": {q["id"]: _of_question(q, choice) for q in asked["questions"]}}
        case _:
            return f"answer {choice.randrange(100)}"


def _of_question(question: Mapping[str, Any], choice: random.Random) -> JsonValue:
    if question["kind"] == "choice":
        return _chosen(question, choice)
    return f"answer {choice.randrange(100)}"


def _chosen(question: Mapping[str, Any], choice: random.Random) -> JsonValue:
    options = [str(option["id"]) for option in question["options"]]
    if question.get("allow_skip") and choice.random() < 0.25:
        return {"skipped": True}
    most = len(options) if question.get("multiple") else 1
    picked = choice.sample(options, choice.randint(1, most))
    return {"selected": cast("list[JsonValue]", picked)}
