"""What a run may need next: a closed union of small frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, JsonValue

from rungent.interactions import InteractionSpec
from rungent.records import Call
from rungent.tools.arguments import Arguments
from rungent.tools.decorator import AnyTool
from rungent.tools.interactive import FollowUp

__all__ = [
    "Action",
    "AnswerProgress",
    "AskApproval",
    "AskUser",
    "BreakOff",
    "CallModel",
    "Continuing",
    "GiveUp",
    "Initialise",
    "Invocation",
    "LeaveInDoubt",
    "Park",
    "Reconcile",
    "Refuse",
    "RunTools",
    "SkipDuplicate",
]


@dataclass(frozen=True, slots=True)
class Park:
    """Nothing to do: the run waits or has ended."""


@dataclass(frozen=True, slots=True)
class Initialise:
    """Ask the host's activity and initializer callbacks."""


@dataclass(frozen=True, slots=True)
class CallModel:
    """Make model step `step`; `resumed` when a lost worker had begun it."""

    step: int
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class Continuing:
    """What goes on with a call whose question was answered: the function, and what it gets."""

    follow_up: FollowUp
    answer: BaseModel
    named: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Invocation:
    """A checked call with its tool and validated arguments."""

    call: Call
    tool: AnyTool
    arguments: Arguments
    continuing: Continuing | None = None


@dataclass(frozen=True, slots=True)
class RunTools:
    """Execute these calls together; more than one only for parallel reads."""

    invocations: tuple[Invocation, ...]


@dataclass(frozen=True, slots=True)
class Refuse:
    """Settle a call as failed without executing it.

    `key` is the streak key of identical failures, None for what never counts; `note` replaces
    the catalog text for the model only; `shown` says whether clients see a `tool.failed`.
    """

    call: Call
    code: str
    key: str | None = None
    note: str | None = None
    details: tuple[dict[str, JsonValue], ...] = ()
    shown: bool = True


@dataclass(frozen=True, slots=True)
class AnswerProgress:
    """Settle a `report_progress` call with its checked message."""

    call: Call
    message: str


@dataclass(frozen=True, slots=True)
class AskUser:
    """Put the question of a `request_input` call to the user."""

    call: Call
    spec: InteractionSpec


@dataclass(frozen=True, slots=True)
class AskApproval:
    """Make the confirmation of a checked call, and put it to the user."""

    invocation: Invocation


@dataclass(frozen=True, slots=True)
class SkipDuplicate:
    """Settle a call as a repetition of `earlier_id`, without executing it."""

    call: Call
    tool: AnyTool
    earlier_id: str


@dataclass(frozen=True, slots=True)
class Reconcile:
    """Ask the tool what became of a call that a lost worker had begun."""

    invocation: Invocation


@dataclass(frozen=True, slots=True)
class LeaveInDoubt:
    """Settle a call that a lost worker had begun and that must not run twice."""

    call: Call


@dataclass(frozen=True, slots=True)
class BreakOff:
    """Settle a begun call as failed: what should continue it is not there any more."""

    call: Call
    code: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """End the run as failed with this code."""

    code: str


Action = (
    Park
    | Initialise
    | CallModel
    | RunTools
    | Refuse
    | AnswerProgress
    | AskUser
    | AskApproval
    | SkipDuplicate
    | Reconcile
    | LeaveInDoubt
    | BreakOff
    | GiveUp
)
