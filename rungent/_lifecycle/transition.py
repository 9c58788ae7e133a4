"""The unit of change: a new run with the messages, events and rows that go with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from rungent.agent import Agent
from rungent.catalog import Catalog
from rungent.events import Draft
from rungent.records import (
    ActionToken,
    Call,
    ExternalTask,
    Interaction,
    Run,
    RunState,
    ToolCall,
    ToolClaim,
)

__all__ = ["Facts", "MessageDraft", "Transition", "event", "with_calls", "with_state"]


class Facts(NamedTuple):
    """What decisions depend on besides the run: its agent, the bounds and the texts.

    `now` is the moment of the decision, an aware UTC datetime; `interaction_id` is a fresh id for
    a question that it may lead to, and `question_seconds` the time for which one without a time
    of its own may be answered.
    """

    agent: Agent
    catalog: Catalog
    now: datetime
    interaction_id: str
    max_model_steps: int
    max_identical_tool_failures: int
    max_recoveries: int
    question_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class MessageDraft:
    """A transcript entry before it has an id."""

    role: Literal["user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    public: bool = False


class Transition(NamedTuple):
    """The new run and everything to store with it, in order."""

    run: Run
    events: tuple[Draft, ...] = ()
    messages: tuple[MessageDraft, ...] = ()
    claims: tuple[ToolClaim, ...] = ()
    interactions: tuple[Interaction, ...] = ()
    tasks: tuple[ExternalTask, ...] = ()
    tokens: tuple[ActionToken, ...] = ()

    def then(self, later: Transition) -> Transition:
        """This transition followed by one that starts from its run, as a single one.

        A ledger row of the same call is written once, in its later form.
        """
        claims = self.claims
        if claims and later.claims:
            rewritten = {claim.call_id for claim in later.claims}
            claims = tuple([claim for claim in claims if claim.call_id not in rewritten])
        return Transition(
            run=later.run,
            events=self.events + later.events,
            messages=self.messages + later.messages,
            claims=claims + later.claims,
            interactions=self.interactions + later.interactions,
            tasks=self.tasks + later.tasks,
            tokens=self.tokens + later.tokens,
        )

    def emitting(self, *drafts: Draft) -> Transition:
        """The same with further events at the end."""
        return self._replace(events=self.events + drafts)

    @property
    def changes(self) -> bool:
        """Whether there is anything to store."""
        return bool(self.events or self.messages or self.claims or self.interactions or self.tasks)


def event(kind: str, data: Mapping[str, Any]) -> Draft:
    """An event whose optional keys (`message`, `public`, `tool_name`) are left out when None."""
    return Draft(kind, {k: v for k, v in data.items() if v is not None or k not in _OPTIONAL})


_OPTIONAL = frozenset({"message", "public", "tool_name", "deduplicated", "tool", "expires_at"})


def with_state(run: Run, **changes: object) -> Run:
    """The run with these fields of its state replaced."""
    state: RunState = run.state.model_copy(update=changes)
    return run.model_copy(update={"state": state})


def with_calls(run: Run, *changed: Call) -> Run:
    """The run with these calls of its turn replaced, by id."""
    by_id = {call.id: call for call in changed}
    return with_state(run, turn=tuple(by_id.get(call.id, call) for call in run.state.turn))
