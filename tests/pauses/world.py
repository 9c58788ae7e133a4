"""A run that pauses, with its store as plain values, to push around by hand.

Everything that is stored goes through JSON and back before it is used again, as if the worker
had been restarted between any two steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import JsonValue

from rungent import (
    Agent,
    Event,
    Identity,
    Message,
    Run,
    Tool,
    ToolCall,
    ToolContext,
    ToolResult,
    tool,
)
from rungent._drive.claims import claimed, started
from rungent._drive.seal import seal
from rungent._lifecycle import Facts, Transition, advance, cancel, proceed
from rungent._lifecycle.follow_ups import end_task, report_task
from rungent._lifecycle.opening import Pending
from rungent._lifecycle.outcomes import ModelReplied, Outcome
from rungent._lifecycle.pauses import answered
from rungent._lifecycle.tool_outcomes import task_ended
from rungent.catalog import Catalog
from rungent.records import ExternalTask, Interaction, Lease, RunStatus, ToolClaim

__all__ = ["NOW", "POOL", "World", "agent_of", "named", "replied"]

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
OWNER = Identity("ada")
LEASE = Lease(owner="wrk_a", expires_at=NOW + timedelta(seconds=30))


@tool(effect="read", approval="never", parallel=True)
async def peek(ctx: ToolContext, n: int) -> str:
    """Read beside others."""
    raise NotImplementedError


@tool(effect="write", approval="never")
async def book(ctx: ToolContext, n: int) -> str:
    """Write once."""
    raise NotImplementedError


@tool(effect="external", approval="never", idempotent=True, deduplicate=False)
async def send(ctx: ToolContext, n: int) -> str:
    """Write, repeatable under its key."""
    raise NotImplementedError


@tool(effect="destructive", approval="always", confirmation="Delete {n}?")
async def delete(ctx: ToolContext, n: int) -> str:
    """Write after an approval only."""
    raise NotImplementedError


@tool(effect="write", approval="never", requires_interaction_response=True)
async def accept(ctx: ToolContext, n: int) -> str:
    """Write after an answer only."""
    raise NotImplementedError


@tool(effect="read", approval="never", requires_interaction_response=True)
async def peruse(ctx: ToolContext, n: int) -> str:
    """Read after an answer only."""
    raise NotImplementedError


@tool(
    effect="write",
    approval="always",
    confirmation="Grant {n}?",
    requires_interaction_response=True,
)
async def grant(ctx: ToolContext, n: int) -> str:
    """Write after an answer and an approval."""
    raise NotImplementedError


POOL: tuple[Tool[..., Any], ...] = (peek, book, send, delete, accept, peruse, grant)


def named(name: str) -> Tool[..., Any]:
    """The tool of the pool with this name."""
    return next(made for made in POOL if made.name == name)


def agent_of(*tools: Tool[..., Any]) -> Agent:
    """An agent with these tools, all of them when none is given."""
    return Agent("helper", "Help.", tools=tools or POOL)


def replied(*calls: ToolCall, text: str = "", shown: bool = False) -> ModelReplied:
    """A reply with calls, or a final text."""
    return ModelReplied(
        text=text,
        calls=calls,
        finish_reason="tool_calls" if calls else "stop",
        provider_request_id=None,
        usage=None,
        text_shown=shown,
    )


@dataclass
class World:
    """The stored run and its rows, and what the worker holds in memory."""

    agent: Agent = field(default_factory=agent_of)
    steps: int = 16
    recoveries: int = 5
    stored: Run = field(init=False)
    held: Run = field(init=False)
    events: list[Event] = field(default_factory=list[Event])
    messages: list[Message] = field(default_factory=list[Message])
    ledger: dict[str, ToolClaim] = field(default_factory=dict[str, ToolClaim])
    interactions: dict[str, Interaction] = field(default_factory=dict[str, Interaction])
    tasks: dict[str, ExternalTask] = field(default_factory=dict[str, ExternalTask])
    made: int = 0

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

    @property
    def facts(self) -> Facts:
        """What the next decision depends on, with an id of its own."""
        self.made += 1
        return Facts(
            agent=self.agent,
            catalog=Catalog.of({}),
            now=NOW,
            interaction_id=f"int_{self.made}",
            max_model_steps=self.steps,
            max_identical_tool_failures=3,
            max_recoveries=self.recoveries,
        )

    def commit(self, transition: Transition) -> None:
        """Store a transition, checking what every store relies on."""
        if not transition.changes:
            self.held = transition.run
            return
        sealed = seal(transition, NOW)
        assert self.stored.active, "written after the end"
        assert sealed.run.version == self.stored.version + 1
        for claim in sealed.claims:
            before = self.ledger.get(claim.call_id)
            assert before is None or before.state in {"started", "deferred"}, "settled already"
            self.ledger[claim.call_id] = claim
        for interaction in sealed.interactions:
            known = self.interactions.get(interaction.id)
            assert (known is None) == (interaction.status == "pending")
            assert known is None or known.status == "pending", "resolved already"
            self.interactions[interaction.id] = interaction
        for task in sealed.tasks:
            parked = self.tasks.get(task.task_id)
            assert (parked is None) == (task.state == "waiting")
            self.tasks[task.task_id] = task
        self.events += sealed.events
        self.messages += sealed.messages
        self.stored = Run.model_validate_json(sealed.run.model_dump_json())
        assert self.stored == sealed.run
        self.held = self.stored
        self.check_waiting()

    def check_waiting(self) -> None:
        """Status, lease, and what the run waits for agree."""
        run = self.stored
        pending = [one for one in self.interactions.values() if one.status == "pending"]
        waiting = [one for one in self.tasks.values() if one.state == "waiting"]
        assert len(pending) == (run.status == RunStatus.WAITING_INPUT)
        assert len(waiting) == (run.status == RunStatus.WAITING_EXTERNAL)
        assert run.state.interaction == (pending[0] if pending else None)
        assert run.state.task == (waiting[0] if waiting else None)
        assert (run.lease is not None) == (run.status == RunStatus.RUNNING)

    # --- the worker --------------------------------------------------------------------------

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

    # --- from outside ------------------------------------------------------------------------

    def cancel(self) -> None:
        """Somebody cancels the stored run."""
        transition = cancel(self.stored, self.facts)
        assert transition is not None
        self.commit(transition)

    def answer(self, value: JsonValue) -> None:
        """Somebody answers the pending interaction. InvalidResponse changes nothing."""
        interaction = self.stored.state.interaction
        assert interaction is not None
        token = self.stored.fencing_token
        self.commit(answered(self.stored, interaction, value, OWNER, LEASE, self.facts))
        assert self.stored.fencing_token == token + 1

    def report(self, message: str) -> None:
        """The host reports how its task goes."""
        task = self.stored.state.task
        assert task is not None
        self.commit(report_task(self.stored, task, message, None))

    def complete(self, result: ToolResult) -> None:
        """The host completes the task."""
        task, facts = self.stored.state.task, self.facts
        assert task is not None
        token = self.stored.fencing_token
        ended = end_task(self.stored, task, result, LEASE, facts)
        settled = task_ended(ended.run, task.call_id, result, f"more{self.made:05}", facts)
        self.commit(ended.then(settled))
        assert self.stored.fencing_token == token + 1

    # --- looking ----------------------------------------------------------------------------

    def contents(self) -> dict[str, str]:
        """The tool messages so far, by call."""
        return {str(m.tool_call_id): m.content for m in self.messages if m.role == "tool"}

    def types(self, after: int = 0) -> list[str]:
        """The types of the events so far."""
        return [event.type for event in self.events[after:]]

    def exchange(self, old: Tool[..., Any], *new: Tool[..., Any]) -> None:
        """The agent is deployed anew with other tools in place of one."""
        rest = tuple(one for one in self.agent.tools if one.name != old.name)
        self.agent = replace(self.agent, tools=(*rest, *new))
