"""What came of an action: a closed union of small frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from rungent._lifecycle.actions import Invocation
from rungent.events import Usage
from rungent.records import ActivityTexts, ToolCall
from rungent.tools.asking import KeptAsk
from rungent.tools.results import ToolResult

__all__ = [
    "ConfirmationFailed",
    "ConfirmationMade",
    "DuplicateSkipped",
    "Initialised",
    "ModelGaveUp",
    "ModelReplied",
    "NothingDone",
    "Outcome",
    "ProgressReported",
    "Retrying",
    "RunBroke",
    "Ticked",
    "ToolBroke",
    "ToolFinished",
    "ToolInDoubt",
    "Wrote",
]


@dataclass(frozen=True, slots=True)
class Initialised:
    """The host's callbacks answered. `call` already has an id that is unique in the session."""

    activity: ActivityTexts | None = None
    call: ToolCall | None = None


@dataclass(frozen=True, slots=True)
class Wrote:
    """Assistant text arrived."""

    text: str


@dataclass(frozen=True, slots=True)
class Ticked:
    """The model has been silent for long. `first` marks the step's first tick."""

    first: bool
    elapsed_seconds: int


@dataclass(frozen=True, slots=True)
class Retrying:
    """An attempt failed and another follows after `delay_seconds`."""

    retry: int
    max_retries: int
    delay_seconds: float
    reason: str
    tool_name: str | None = None


@dataclass(frozen=True, slots=True)
class ModelReplied:
    """A step is complete: calls (with ids unique in the session), or the final text.

    `text_shown` says whether deltas went out since the step's last reset; `unwritten` is the end
    of the text if it did not: it goes out as the last one.
    """

    text: str
    calls: tuple[ToolCall, ...]
    finish_reason: Literal["stop", "tool_calls", "length"]
    provider_request_id: str | None
    usage: Usage | None
    text_shown: bool
    unwritten: str = ""


@dataclass(frozen=True, slots=True)
class ModelGaveUp:
    """A step failed for good."""

    code: str


@dataclass(frozen=True, slots=True)
class ProgressReported:
    """A running tool reported progress."""

    call_id: str
    message: str
    public: JsonValue = None


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A tool returned a result, successful or failing.

    `follow_up_id` is the id, unique in the session, of the call that continues a result with an
    interaction.
    """

    call_id: str
    result: ToolResult
    follow_up_id: str | None = None


@dataclass(frozen=True, slots=True)
class ConfirmationMade:
    """The text that asks for the approval of a call, and how it was posted elsewhere."""

    invocation: Invocation
    text: str
    announced: KeptAsk | None = None


@dataclass(frozen=True, slots=True)
class ConfirmationFailed:
    """The text could not be made; nothing is asked."""

    invocation: Invocation


@dataclass(frozen=True, slots=True)
class ToolBroke:
    """A tool raised, timed out or returned what it may not."""

    call_id: str
    code: str


@dataclass(frozen=True, slots=True)
class NothingDone:
    """An execution cut off by the loss of its worker is known to have had no effect."""

    call_id: str


@dataclass(frozen=True, slots=True)
class ToolInDoubt:
    """Nobody could find out what an execution cut off by the loss of its worker did."""

    call_id: str


@dataclass(frozen=True, slots=True)
class DuplicateSkipped:
    """The data of the earlier success was found; `data` is None when it had none."""

    call_id: str
    data: JsonValue = None


@dataclass(frozen=True, slots=True)
class RunBroke:
    """The drive itself failed."""

    code: str


Outcome = (
    Initialised
    | Wrote
    | Ticked
    | Retrying
    | ModelReplied
    | ModelGaveUp
    | ProgressReported
    | ToolFinished
    | ToolBroke
    | NothingDone
    | ToolInDoubt
    | ConfirmationMade
    | ConfirmationFailed
    | DuplicateSkipped
    | RunBroke
)
