"""Thousands of runs at random: whatever happens in whatever order, the promises hold."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from rungent import ToolCall, ToolResult
from rungent._lifecycle.actions import (
    AskApproval,
    CallModel,
    Initialise,
    Invocation,
    Park,
    Reconcile,
    RunTools,
    SkipDuplicate,
)
from rungent._lifecycle.opening import Pending
from rungent._lifecycle.outcomes import (
    ConfirmationFailed,
    ConfirmationMade,
    DuplicateSkipped,
    Initialised,
    ModelGaveUp,
    NothingDone,
    Outcome,
    ProgressReported,
    Retrying,
    RunBroke,
    Ticked,
    ToolBroke,
    ToolFinished,
    ToolInDoubt,
    Wrote,
)
from rungent.events import Usage
from rungent.records import ActivityTexts, RunStatus
from tests.grammar import check_log
from tests.lifecycle.world import POOL, World, facts_of, replied

MAX_STEPS = 4
MAX_FATES = 6
MAX_RECOVERIES = 2

ARGUMENTS: st.SearchStrategy[dict[str, JsonValue]] = st.sampled_from(
    [{"n": 1}, {"n": 1}, {"n": 2}, {"n": "1"}, {"n": "one"}, {}, {"n": 1, "m": 2}]
)
NAMES = st.sampled_from([made.name for made in POOL] + ["nothing_like_that"])
PROGRESS: st.SearchStrategy[dict[str, JsonValue]] = st.sampled_from(
    [{"message": "Looking."}, {"message": " "}, {"message": 5}, {}]
)
QUESTION: st.SearchStrategy[dict[str, JsonValue]] = st.just(
    {"kind": "text", "prompt": "Which day?"}
)
DEDUPLICATED = {made.name for made in POOL if made.effect != "read" and made.deduplicate}
TEXTS = ActivityTexts(
    message="m", waiting_message="w", long_wait_message="l", continuation_message="c"
)


class _Over(Exception):
    """The run was cancelled or its worker was lost: what was under way is gone."""


@dataclass
class Director:
    """Draws what happens next, and watches."""

    data: st.DataObject
    world: World
    fates: int = 0
    numbered: int = 0
    shown: bool = False
    retries: int = 0
    executed: Counter[str] = field(default_factory=Counter[str])
    void: Counter[str] = field(default_factory=Counter[str])
    crashes: int = 0

    def chance(self, percent: int) -> bool:
        return self.data.draw(st.integers(1, 100)) <= percent

    def pick(self, *options: str) -> str:
        return self.data.draw(st.sampled_from(options))

    def play(self) -> None:
        pending = self.world.proceed()
        while not isinstance(pending, Park):
            self.check_prompt(pending)
            try:
                outcome = self.perform(pending)
                self.maybe_interrupt()
            except _Over:
                pending = self.world.proceed()
                continue
            pending = self.world.proceed(outcome)
        if self.world.stored.active:
            # It waits for somebody who never comes.
            self.world.cancel()

    def maybe_interrupt(self) -> None:
        """Now and then the worker dies, or somebody cancels."""
        if self.fates >= MAX_FATES or not self.chance(7):
            return
        self.fates += 1
        self.shown = False
        if self.chance(30):
            self.world.cancel()
        else:
            self.crashes += 1
            self.world.crash()
        raise _Over

    # --- performing --------------------------------------------------------------------------

    def perform(self, pending: Pending) -> Outcome | None:
        if isinstance(pending, Initialise):
            return self.initialise()
        if isinstance(pending, CallModel):
            return self.model_step(pending)
        if isinstance(pending, RunTools):
            return self.run_tools(pending)
        if isinstance(pending, Reconcile):
            return self.reconcile(pending.invocation)
        if isinstance(pending, AskApproval):
            assert not pending.invocation.call.approved
            if self.chance(50):
                return ConfirmationFailed(pending.invocation)
            return ConfirmationMade(pending.invocation, "Really?")
        assert isinstance(pending, SkipDuplicate)
        assert pending.call.id not in self.executed
        assert self.executed[pending.earlier_id] >= 1
        return DuplicateSkipped(pending.call.id, {"done": True})

    def reconcile(self, invocation: Invocation) -> Outcome:
        call_id = invocation.call.id
        assert invocation.tool.reconcile is not None
        assert self.world.ledger[call_id].state == "started"
        assert self.crashes, "nothing was lost"
        what = self.pick("nothing done", "found", "failed", "in doubt")
        if what == "nothing done":
            self.void[call_id] = self.executed[call_id]
            return NothingDone(call_id)
        if what == "in doubt":
            return ToolInDoubt(call_id)
        ok = what == "found"
        return ToolFinished(call_id, ToolResult(data={"ok": ok}))

    def initialise(self) -> Outcome:
        if self.chance(5):
            return RunBroke("run_initialization_failed")
        texts = TEXTS if self.chance(50) else None
        return Initialised(texts, self.call() if self.chance(40) else None)

    def call(self) -> ToolCall:
        self.numbered += 1
        kind = self.pick("tool", "tool", "tool", "tool", "tool", "progress", "question")
        identity = f"call{self.numbered:05}"
        if kind == "progress":
            return ToolCall("report_progress", self.json(PROGRESS), identity)
        if kind == "question":
            return ToolCall("request_input", self.json(QUESTION), identity)
        return ToolCall(self.data.draw(NAMES), self.json(ARGUMENTS), identity)

    def json(self, source: st.SearchStrategy[dict[str, JsonValue]]) -> dict[str, JsonValue]:
        return dict(self.data.draw(source))

    def model_step(self, step: CallModel) -> Outcome:
        assert step.step == self.world.stored.model_steps <= MAX_STEPS
        self.shown = False
        for _ in range(self.data.draw(st.integers(0, 3))):
            self.model_noise()
            self.maybe_interrupt()
        if self.chance(4):
            return ModelGaveUp("model_unavailable")
        used = Usage(input_tokens=3, output_tokens=4, total_tokens=7)
        counted = used if self.chance(50) else None
        count = self.data.draw(st.integers(0, 5))
        if count == 0:
            self.world.apply(Wrote("bye"))
            text = self.said()
            return replied(text=text, usage=counted, shown=True)
        made = tuple(self.call() for _ in range(count))
        return replied(*made, text=self.said(), usage=counted, shown=self.shown)

    def model_noise(self) -> None:
        what = self.pick("text", "tick", "retry")
        if what == "text":
            self.shown = True
            self.world.apply(Wrote("word "))
        elif what == "tick":
            self.world.apply(Ticked(first=self.chance(50), elapsed_seconds=5))
        else:
            self.shown = False
            self.world.apply(Retrying(1, 3, 0.5, "network"))

    def said(self) -> str:
        """The deltas since the last reset or start of a step."""
        text = ""
        for event in self.world.events:
            if event.type in {"message.reset", "model.started"}:
                text = ""
            elif event.type == "message.delta":
                text += event.data["delta"]
        return text

    def run_tools(self, action: RunTools) -> Outcome | None:
        for invocation in action.invocations:
            tool, call = invocation.tool, invocation.call
            assert tool.approval == "never" or call.approved
            assert self.world.ledger[call.id].state == "started", "executed before it was stored"
            self.executed[call.id] += 1
            effects = self.executed[call.id] - self.void[call.id]
            if tool.effect != "read" and not tool.idempotent:
                assert effects == 1, "a write was executed twice"
            assert self.world.ledger[call.id].attempts == self.executed[call.id]
        if len(action.invocations) == 1:
            return self.outcome(action.invocations[0].call.id)
        assert all(invocation.tool.parallel for invocation in action.invocations)
        for invocation in self.data.draw(st.permutations(action.invocations)):
            self.world.apply(self.outcome(invocation.call.id))
            self.maybe_interrupt()
        return None

    def outcome(self, call_id: str) -> Outcome:
        for _ in range(self.data.draw(st.integers(0, 1))):
            self.world.apply(ProgressReported(call_id, "Going on.", {"at": 1}))
            self.maybe_interrupt()
        what = self.pick("fine", "fine", "failing", "broke", "late")
        if what == "fine":
            return ToolFinished(call_id, ToolResult(data={"done": True}, message="Done."))
        if what == "failing":
            return ToolFinished(call_id, ToolResult(data={"ok": False, "why": "full"}))
        return ToolBroke(call_id, "tool_error" if what == "broke" else "timeout")

    # --- watching ----------------------------------------------------------------------------

    def check_prompt(self, pending: Pending) -> None:
        """Before the model is asked, every call has its one answer, in the order of the calls."""
        check_log(self.world.events, complete=False)
        if isinstance(pending, CallModel):
            self.check_transcript()

    def check_transcript(self) -> None:
        wanted: list[str] = []
        for message in self.world.messages:
            if message.role == "tool":
                assert wanted, "an answer to nothing"
                assert message.tool_call_id == wanted.pop(0)
                json.loads(message.content)
                continue
            assert not wanted, "a call without an answer"
            assert message.content or message.tool_calls
            wanted = [str(call.id) for call in message.tool_calls]
        assert not wanted, "a call without an answer"

    def check_end(self) -> None:
        world = self.world
        check_log(world.events)
        self.check_transcript()
        assert world.stored.status is not RunStatus.RUNNING
        assert world.stored.lease is None
        assert world.stored.state.turn == ()
        assert not world.stored.state.step_open
        starts = Counter(e.data["call_id"] for e in world.events if e.type == "tool.started")
        assert set(world.ledger) == set(starts) >= set(self.executed)
        for call_id, claim in world.ledger.items():
            self.check_claim(call_id, starts[call_id])
            assert claim.idempotency_key == f"run_1:{call_id}"
        self.check_repetitions()
        if world.stored.failure_code == "recovery_exhausted":
            assert self.crashes > MAX_RECOVERIES

    def check_repetitions(self) -> None:
        """A write that succeeded is not done again with the same arguments."""
        done = Counter(
            (claim.tool_name, claim.arguments_digest)
            for claim in self.world.ledger.values()
            if claim.state == "succeeded" and claim.tool_name in DEDUPLICATED
        )
        assert all(count == 1 for count in done.values())

    def check_claim(self, call_id: str, starts: int) -> None:
        claim, kinds = self.world.ledger[call_id], self.settling(call_id)
        assert claim.attempts == starts
        assert claim.state in {"succeeded", "failed", "in_doubt", "cancelled"}
        if claim.state == "succeeded":
            assert kinds == ["tool.completed"]
        elif claim.state == "failed":
            assert kinds == ["tool.failed"]
        elif claim.code == "outcome_unknown":
            assert kinds == ["tool.failed"]
            assert claim.state == "in_doubt"
        else:
            assert kinds == []
            assert (claim.state == "cancelled") == (claim.effect == "read")

    def settling(self, call_id: str) -> list[str]:
        ends = {"tool.completed", "tool.failed"}
        found = [e for e in self.world.events if e.type in ends and e.data["call_id"] == call_id]
        return [event.type for event in found]


@settings(
    max_examples=1500,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_every_random_run_keeps_every_promise(data: st.DataObject) -> None:
    tools = data.draw(st.lists(st.sampled_from(POOL), unique=True, max_size=7))
    initialised = data.draw(st.booleans())
    world = World(
        facts_of(*tools, steps=MAX_STEPS, recoveries=MAX_RECOVERIES, initialised=initialised)
    )
    director = Director(data, world)
    director.play()
    director.check_end()
