"""A run with its store and its worker as plain values, to push around by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from rungent import Agent, Event, Message, Run, Tool, ToolCall, ToolContext, tool
from rungent._drive.claims import claimed, started
from rungent._drive.seal import seal
from rungent._lifecycle import Facts, Transition, advance, cancel, proceed
from rungent._lifecycle.opening import Pending
from rungent._lifecycle.outcomes import ModelReplied, Outcome
from rungent.catalog import Catalog
from rungent.events import Usage
from rungent.records import Lease, RunStatus, ToolClaim
from tests.grammar import check_log

__all__ = ["NOW", "POOL", "World", "facts_of", "replied"]

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LEASE = Lease(owner="wrk_a", expires_at=NOW + timedelta(seconds=30))


@tool(effect="read", approval="never", parallel=True)
async def peek(ctx: ToolContext, n: int) -> str:
    """Read beside others."""
    raise NotImplementedError


@tool(effect="read", approval="never")
async def look(ctx: ToolContext, n: int) -> str:
    """Read alone."""
    raise NotImplementedError


@tool(effect="write", approval="never")
async def book(ctx: ToolContext, n: int) -> str:
    """Write once."""
    raise NotImplementedError


@tool(effect="write", approval="never", deduplicate=False)
async def append(ctx: ToolContext, n: int) -> str:
    """Write as often as asked."""
    raise NotImplementedError


@tool(effect="external", approval="never", idempotent=True)
async def send(ctx: ToolContext, n: int) -> str:
    """Write, repeatable under its key."""
    raise NotImplementedError


async def _what_became(ctx: ToolContext, n: int) -> None:
    raise NotImplementedError


@tool(effect="external", approval="never", reconcile=_what_became)
async def post(ctx: ToolContext, n: int) -> str:
    """Write, and know afterwards whether it was done."""
    raise NotImplementedError


@tool(effect="destructive", approval="always", confirmation="Delete {n}?")
async def delete(ctx: ToolContext, n: int) -> str:
    """Write after approval only."""
    raise NotImplementedError


@tool(effect="write", approval="never", requires_interaction_response=True)
async def accept(ctx: ToolContext, n: int) -> str:
    """Write after an answer only."""
    raise NotImplementedError


POOL: tuple[Tool[..., object], ...] = (peek, look, book, append, send, post, delete, accept)


def _no_call(ctx: ToolContext, content: str) -> None:
    raise NotImplementedError


def facts_of(
    *tools: Tool[..., object],
    steps: int = 16,
    failures: int = 3,
    recoveries: int = 5,
    initialised: bool = False,
) -> Facts:
    """Facts about an agent with these tools, all of them when none is named.

    With `initialised` the agent has an initializer, whose answer is an outcome like others.
    """
    return Facts(
        agent=Agent(
            "helper",
            "Help.",
            tools=tools or POOL,
            run_initializer=_no_call if initialised else None,
        ),
        catalog=Catalog.of({}),
        now=NOW,
        interaction_id="int_" + "0" * 32,
        max_model_steps=steps,
        max_identical_tool_failures=failures,
        max_recoveries=recoveries,
    )


def replied(
    *calls: ToolCall,
    text: str = "",
    usage: Usage | None = None,
    shown: bool = False,
    unwritten: str = "",
) -> ModelReplied:
    """A reply with calls, or a final text."""
    return ModelReplied(
        text=text,
        calls=calls,
        finish_reason="tool_calls" if calls else "stop",
        provider_request_id=None,
        usage=usage,
        text_shown=shown,
        unwritten=unwritten,
    )


@dataclass
class World:
    """The stored run and its rows, and what the worker holds in memory."""

    facts: Facts
    stored: Run = field(init=False)
    held: Run = field(init=False)
    events: list[Event] = field(default_factory=list[Event])
    messages: list[Message] = field(default_factory=list[Message])
    ledger: dict[str, ToolClaim] = field(default_factory=dict[str, ToolClaim])
    commits: int = 0

    def __post_init__(self) -> None:
        queued = Run(
            id="run_1",
            session_id="ses_1",
            agent_name="helper",
            status=RunStatus.QUEUED,
            input="hi",
            input_message_id="msg_1",
            created_at=NOW,
            updated_at=NOW,
        )
        self.stored = self.held = queued
        self.commit(started(queued, LEASE))

    def commit(self, transition: Transition) -> None:
        """Store a transition as a drive would, checking what every store relies on."""
        if not transition.changes:
            self.held = transition.run
            return
        sealed = seal(transition, NOW)
        assert sealed.run.version == self.stored.version + 1
        assert self.stored.active, "written after the end"
        assert sealed.run.model_steps - self.stored.model_steps in {0, 1}
        seqs = [event.seq for event in sealed.events]
        assert seqs == list(range(self.stored.event_seq + 1, sealed.run.event_seq + 1))
        for claim in sealed.claims:
            before = self.ledger.get(claim.call_id)
            assert before is None or before.state == "started", "a settled row was written again"
            assert (claim.settled_at is None) == (claim.state == "started")
            self.ledger[claim.call_id] = claim
        self.events += sealed.events
        self.messages += sealed.messages
        self.stored = self.held = sealed.run
        self.commits += 1
        # What is stored must come back from JSON as it was.
        assert Run.model_validate_json(sealed.run.model_dump_json()) == sealed.run

    def proceed(self, outcome: Outcome | None = None) -> Pending:
        """Commit an outcome and the opening of the next action, which is returned."""
        transition, pending = proceed(self.held, outcome, self.facts)
        self.commit(transition)
        return pending

    def apply(self, outcome: Outcome) -> None:
        """Commit an outcome that the action under way goes on after."""
        self.commit(advance(self.held, outcome, self.facts))

    def crash(self) -> None:
        """The worker is lost; another one claims what is stored."""
        commit = claimed(LEASE, NOW)(self.stored)
        assert commit is not None
        assert not commit.events
        self.stored = self.held = commit.run

    def cancel(self) -> None:
        """Somebody cancels the stored run."""
        transition = cancel(self.stored, self.facts)
        assert transition is not None
        self.held = self.stored
        self.commit(transition)

    def types(self) -> list[str]:
        """The types of the events so far."""
        check_log(self.events, complete=self.stored.status is not RunStatus.RUNNING)
        return [event.type for event in self.events]

    def contents(self) -> list[str]:
        """The tool messages so far."""
        return [message.content for message in self.messages if message.role == "tool"]

    def last(self, kind: str) -> dict[str, object]:
        """The newest payload of a type."""
        return next(event.data for event in reversed(self.events) if event.type == kind)
