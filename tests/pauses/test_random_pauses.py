"""Thousands of pausing runs at random: whatever is asked and answered, the promises hold."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from rungent import (
    DeferredRequest,
    InteractionRequest,
    Tool,
    ToolCall,
    ToolContext,
    ToolContinuation,
    ToolResult,
    TrustedInteractionResponse,
    tool,
)
from rungent._lifecycle.actions import AskApproval, CallModel, Park, RunTools, SkipDuplicate
from rungent._lifecycle.checks import trusted_answer
from rungent._lifecycle.opening import Pending
from rungent._lifecycle.outcomes import (
    ConfirmationFailed,
    ConfirmationMade,
    DuplicateSkipped,
    ModelGaveUp,
    Outcome,
    ProgressReported,
    ToolBroke,
    ToolFinished,
)
from rungent.errors import InvalidResponse
from rungent.records import Interaction, RunStatus
from tests.grammar import check_log
from tests.pauses.world import POOL, World, named, replied

MAX_STEPS = 4
MAX_FATES = 6
MAX_DEPTH = 6

ARGUMENTS: st.SearchStrategy[dict[str, JsonValue]] = st.sampled_from(
    [{"n": 1}, {"n": 1}, {"n": 2}, {"n": "1"}, {"n": "one"}, {}]
)
QUESTIONS: list[dict[str, JsonValue]] = [
    {"kind": "text", "prompt": "Which day?", "options": None, "questions": None},
    {"kind": "choice", "prompt": "Which?", "options": [{"id": "a", "label": "A"}]},
    {
        "kind": "choice",
        "prompt": "Which?",
        "options": [{"id": "a", "label": "A"}, {"id": "b", "label": "B"}],
        "multiple": True,
        "allow_skip": True,
    },
    {"kind": "form", "prompt": "Tell.", "questions": [{"id": "q", "kind": "text", "prompt": "?"}]},
    {"kind": "text", "prompt": "1. this\n2. that"},
    {"kind": "choice", "prompt": "Which?", "options": None},
    {"kind": ["text"], "prompt": {"a": 1}, "options": 5, "questions": "x"},
    {},
]
GOOD: dict[str, list[JsonValue]] = {
    "text": ["Monday", " Monday "],
    "choice": [{"selected": ["a"]}, {"selected": ["a"], "custom": None, "more": 1}],
    "form": [{"answers": {"q": "yes"}}],
    "approval": [True, "approve", {"selected": ["approve"]}, False, "reject"],
}
BAD: dict[str, list[JsonValue]] = {
    "text": [None, " ", 5, {"selected": ["a"]}],
    "choice": [None, {}, {"selected": ["z"]}, {"selected": ["a", "a"]}, True],
    "form": [None, {}, {"answers": {"z": "?"}}, {"answers": {}}],
    "approval": [None, 1, 0, "yes", {"selected": ["approve", "reject"]}, {"approve": True}],
}
PROGRESS: list[dict[str, JsonValue]] = [{"message": "Looking."}, {"message": " "}]


@tool(effect="destructive", approval="always", confirmation="Delete {n}?", name="delete")
async def delete_more(ctx: ToolContext, n: int, deep: bool = True) -> str:
    """Delete, with a new parameter that changes what was approved."""
    raise NotImplementedError


@tool(
    effect="write",
    approval="never",
    name="accept",
)
async def accept_unasked(ctx: ToolContext, n: int) -> str:
    """The same without its flag."""
    raise NotImplementedError


@tool(
    effect="write",
    approval="never",
    requires_interaction_response=True,
    name="accept",
)
async def accept_two(ctx: ToolContext, n: int, m: int) -> str:
    """The same with another required parameter."""
    raise NotImplementedError


DEPLOYMENTS: list[tuple[str, tuple[Tool[..., Any], ...]]] = [
    ("delete", ()),
    ("delete", (delete_more,)),
    ("grant", ()),
    ("accept", ()),
    ("accept", (accept_unasked,)),
    ("accept", (accept_two,)),
    ("book", ()),
    ("delete", (named("delete"),)),
    ("accept", (named("accept"),)),
]


class _Over(Exception):
    """The run was cancelled or its worker was lost: what was under way is gone."""


@dataclass
class Director:
    """Draws what happens next, and watches."""

    data: st.DataObject
    world: World
    fates: int = 0
    numbered: int = 0
    depth: int = 0
    read: int = 0
    executed: Counter[str] = field(default_factory=Counter[str])
    made: set[str] = field(default_factory=set[str])
    following: set[str] = field(default_factory=set[str])
    answer: TrustedInteractionResponse | None = None
    kept: dict[str, TrustedInteractionResponse | None] = field(
        default_factory=dict[str, TrustedInteractionResponse | None]
    )

    def chance(self, percent: int) -> bool:
        return self.data.draw(st.integers(1, 100)) <= percent

    def pick(self, *options: Any) -> Any:
        return self.data.draw(st.sampled_from(options))

    def play(self) -> None:
        pending = self.world.proceed()
        while self.world.stored.active:
            self.watch()
            if self.world.stored.status is not RunStatus.RUNNING:
                assert isinstance(pending, Park)
                self.outside()
                self.watch()
                outcome = None
            else:
                try:
                    outcome = self.perform(pending)
                    self.maybe_interrupt()
                except _Over:
                    outcome = None
            if self.world.stored.active:
                pending = self.world.proceed(outcome)

    def maybe_interrupt(self) -> None:
        self.watch()
        if self.fates >= MAX_FATES or not self.chance(6):
            return
        self.fates += 1
        if self.chance(25):
            self.world.cancel()
        else:
            self.world.crash()
            self.deploy()
        raise _Over

    def deploy(self) -> None:
        """Now and then the next worker comes with other tools."""
        if self.chance(15):
            name, tools = self.pick(*DEPLOYMENTS)
            self.world.exchange(named(name), *tools)

    # --- while the run waits --------------------------------------------------------------------

    def outside(self) -> None:
        self.deploy()
        if self.chance(5):
            self.world.cancel()
        elif self.world.stored.state.interaction is not None:
            self.answer_it(self.world.stored.state.interaction)
        elif self.chance(30):
            self.world.report("Half.")
        else:
            self.world.complete(self.result(self.depth < MAX_DEPTH))

    def answer_it(self, interaction: Interaction) -> None:
        before = self.world.stored, len(self.world.events), len(self.world.messages)
        for value in BAD[interaction.kind]:
            with pytest.raises(InvalidResponse):
                self.world.answer(value)
        assert before == (self.world.stored, len(self.world.events), len(self.world.messages))
        if interaction.request["allow_skip"] and self.chance(40):
            self.world.answer({"skipped": True})
        else:
            self.world.answer(self.pick(*GOOD[interaction.kind]))

    # --- performing -----------------------------------------------------------------------------

    def perform(self, pending: Pending) -> Outcome | None:
        if isinstance(pending, CallModel):
            return self.model_step(pending)
        if isinstance(pending, RunTools):
            return self.run_tools(pending)
        if isinstance(pending, AskApproval):
            assert pending.invocation.tool.approval == "always"
            if self.chance(10):
                return ConfirmationFailed(pending.invocation)
            return ConfirmationMade(pending.invocation, "Sure?")
        assert isinstance(pending, SkipDuplicate)
        assert pending.call.id not in self.executed
        assert not pending.call.approved
        assert not pending.call.made
        return DuplicateSkipped(pending.call.id, {"done": True})

    def model_step(self, step: CallModel) -> Outcome:
        self.check_transcript()
        assert step.step == self.world.stored.model_steps <= MAX_STEPS
        if self.chance(4):
            return ModelGaveUp("model_unavailable")
        count = self.data.draw(st.integers(0, 5))
        if count == 0:
            return replied(text="")
        return replied(*(self.call() for _ in range(count)))

    def call(self) -> ToolCall:
        self.numbered += 1
        identity = f"call{self.numbered:05}"
        kind = self.pick("tool", "tool", "tool", "tool", "progress", "question")
        if kind == "progress":
            return ToolCall("report_progress", dict(self.pick(*PROGRESS)), identity)
        if kind == "question":
            return ToolCall("request_input", dict(self.pick(*QUESTIONS)), identity)
        name = self.pick(*(one.name for one in POOL), "nothing_like_that")
        return ToolCall(name, dict(self.data.draw(ARGUMENTS)), identity)

    def run_tools(self, action: RunTools) -> Outcome | None:
        for invocation in action.invocations:
            self.check_execution(invocation.call.id, invocation.tool, invocation.arguments)
        if len(action.invocations) == 1:
            (alone,) = action.invocations
            pausing = self.depth < MAX_DEPTH and not alone.tool.parallel
            return self.outcome(alone.call.id, pausing=pausing)
        assert all(invocation.tool.parallel for invocation in action.invocations)
        for invocation in self.data.draw(st.permutations(action.invocations)):
            self.world.apply(self.outcome(invocation.call.id, pausing=False))
            self.maybe_interrupt()
        return None

    def check_execution(self, call_id: str, tool: Tool[..., Any], arguments: Any) -> None:
        world = self.world
        call = next(one for one in world.stored.state.turn if one.id == call_id)
        about = [one for one in world.interactions.values() if one.tool_call_id == call_id]
        approvals = [one for one in about if one.kind == "approval"]
        assert tool.approval == "never" or approvals
        for approval in approvals:
            assert approval.outcome == "approved"
            assert approval.frozen_call is not None
            frozen = json.dumps(approval.frozen_call["arguments"])
            assert json.dumps(arguments.normalised) == frozen, "not what was approved"
            assert json.dumps(world.ledger[call_id].arguments) == frozen
        assert len(approvals) <= 1
        shown = trusted_answer(world.stored, call)
        assert shown == self.kept.get(call_id, self.answer)
        if tool.requires_interaction_response:
            assert shown is not None
        self.executed[call_id] += 1
        if tool.effect != "read" and not tool.idempotent:
            assert self.executed[call_id] == 1, "a write was executed twice"
        assert world.ledger[call_id].attempts == self.executed[call_id]

    def outcome(self, call_id: str, *, pausing: bool) -> Outcome:
        for _ in range(self.data.draw(st.integers(0, 1))):
            self.world.apply(ProgressReported(call_id, "Going on.", {"at": 1}))
            self.maybe_interrupt()
        if self.chance(20):
            return ToolBroke(call_id, self.pick("tool_error", "timeout"))
        result = self.result(pausing)
        if pausing and result.succeeded and result.interaction is None and self.chance(25):
            self.depth += 1
            task_id = f"task{self.data.draw(st.integers(1, 3))}"
            result = ToolResult(deferred=DeferredRequest(task_id, "At work.", {"p": 1}))
        return ToolFinished(call_id, result, f"made{len(self.world.events):05}")

    def result(self, asking: bool) -> ToolResult:
        if self.chance(20):
            return ToolResult(data={"ok": False, "why": "full"}, message="Full.")
        if not asking or self.chance(50):
            return ToolResult(data={"done": True}, message="Done.")
        self.depth += 1
        question = dict(self.pick(*QUESTIONS))
        question.setdefault("prompt", "")
        question.setdefault("kind", "text")
        name = self.pick("accept", "grant", "peruse", "book", "nothing_like_that")
        then = ToolContinuation(name, dict(self.data.draw(ARGUMENTS)))
        return ToolResult(interaction=InteractionRequest(**question, continuation=then))

    # --- watching -------------------------------------------------------------------------------

    def watch(self) -> None:
        """Follow the trusted answer through the log, and compare it with what is stored."""
        world, state = self.world, self.world.stored.state
        check_log(world.events, complete=not world.stored.active)
        for event in world.events[self.read :]:
            self.follow(event.type, event.data)
        self.read = len(world.events)
        following = {call.id for call in state.turn if call.made and call.settled is None}
        if self.following - following:
            # The drive after a continuation has no trusted answer.
            self.answer = None
        self.following = following
        self.made |= following
        assert state.answer == (self.answer if world.stored.active else None)

    def follow(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "interaction.requested":
            interaction = self.world.interactions[data["id"]]
            if interaction.kind == "approval":
                flagged = {"accept", "grant", "peruse"}
                needs = data["tool"]["name"] in flagged
                self.kept[data["tool_call_id"]] = self.answer if needs else None
            self.answer = None
        elif kind == "run.waiting_external":
            self.answer = None
        elif kind == "interaction.resolved" and data["outcome"] in {"answered", "skipped"}:
            asked = self.world.interactions[data["interaction_id"]]
            assert asked.kind != "approval"
            assert asked.kind != "data"
            self.answer = TrustedInteractionResponse(
                asked.id, asked.kind, str(asked.request["prompt"]), asked.response
            )
        elif data.get("code") == "interaction_required":
            assert self.kept.get(data["call_id"]) is None, "the answer it was frozen with is lost"
        elif kind in {"tool.completed", "tool.failed"} and data["call_id"] in self.executed:
            now = self.world.agent.tool(data["name"])
            if now is not None and now.requires_interaction_response:
                self.answer = None

    def check_transcript(self) -> None:
        """Every call has its one answer, in the order of the calls."""
        wanted: list[str] = []
        for message in self.world.messages:
            if message.role == "tool":
                assert wanted, "an answer to nothing"
                assert message.tool_call_id == wanted.pop(0)
                json.loads(message.content)
                continue
            assert not wanted, "a call without an answer"
            wanted = [str(call.id) for call in message.tool_calls]
        assert not wanted, "a call without an answer"
        assert self.world.stored.state.turn == ()
        assert self.made <= set(self.world.contents()), "a continuation is missing"

    def check_end(self) -> None:
        world = self.world
        check_log(world.events)
        self.check_transcript()
        state = world.stored.state
        assert (state.answer, state.interaction, state.task) == (None, None, None)
        starts = Counter(e.data["call_id"] for e in world.events if e.type == "tool.started")
        assert starts == self.executed or world.stored.failure_code == "recovery_exhausted"
        for claim in world.ledger.values():
            assert claim.state in {"succeeded", "failed", "in_doubt", "cancelled"}
        for approval in world.interactions.values():
            if approval.outcome == "rejected":
                assert approval.tool_call_id not in self.executed
                content = json.loads(world.contents()[approval.tool_call_id])
                assert content["code"] == "rejected"


@settings(
    max_examples=1000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_every_random_pausing_run_keeps_every_promise(data: st.DataObject) -> None:
    director = Director(data, World(steps=MAX_STEPS, recoveries=3))
    director.play()
    director.check_end()
