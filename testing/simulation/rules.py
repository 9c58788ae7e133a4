"""What must hold of every run at every moment, checked commit by commit. Pure.

Source: docs/simulation.md#what-is-checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rungent.events import Event
from rungent.records import Message, Run, RunStatus, ToolClaim
from rungent.tools.decorator import AnyTool
from rungent.verify.fold import Fold
from rungent.verify.grammar import LogError, LogReader
from rungent.verify.rows import check_claims, check_run
from rungent.verify.transcript import TranscriptReader

__all__ = ["RunRules", "Snapshot", "Violation", "check_executions"]


class Violation(AssertionError):
    """A promise that a play broke."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run as of one moment: its row, the events since the last snapshot, its ledger."""

    run: Run
    events: Sequence[Event]
    claims: Sequence[ToolClaim]


@dataclass(slots=True)
class RunRules:
    """Follows one run; `take` raises Violation at the first broken promise."""

    run_id: str
    tools: Mapping[str, AnyTool]
    seen: int = 0
    _reader: LogReader = field(init=False)
    _fold: Fold = field(init=False)
    _token: int = 0
    _version: int = 0
    _approved: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self._reader = LogReader(self.run_id)
        self._fold = Fold(self.run_id)

    def take(self, snapshot: Snapshot, *, harmed: bool) -> None:
        """Check what is stored now. `harmed` says whether a worker or store was hit so far."""
        run = snapshot.run
        for event in snapshot.events:
            self._read(event)
            if not harmed:
                _require(not _shows_loss(event), f"{_at(event)}: without any fault")
        wrong = check_run(run, self._fold) or check_claims(run, self._fold, snapshot.claims)
        _require(wrong is None, f"run {run.id}: {wrong}")
        _require(run.fencing_token >= self._token, f"run {run.id}: the fencing token fell")
        _require(run.version >= self._version, f"run {run.id}: the version fell")
        self._token, self._version = run.fencing_token, run.version
        _require(harmed or run.state.recoveries == 0, f"run {run.id}: taken over without a fault")
        _check_repetitions(run, snapshot.claims, self.tools)
        _check_waiting(run)

    def check_transcript(self, run: Run, messages: Iterable[Message]) -> None:
        """The messages of a run that has ended."""
        reader = TranscriptReader(run)
        for message in messages:
            wrong = reader.read(message)
            _require(wrong is None, f"run {run.id}: {wrong}")
        wrong = reader.finish(self._fold.view.content)
        _require(wrong is None, f"run {run.id}: {wrong}")

    def _read(self, event: Event) -> None:
        try:
            self._reader.read(event.seq, event.type, event.data)
        except LogError as wrong:
            raise Violation(f"{_at(event)}: {wrong}") from None
        self._fold.take(event.seq, event.type, event.data)
        self.seen = event.seq
        if event.type == "interaction.resolved" and event.data["outcome"] == "approved":
            self._approved.add(self._fold.interactions[event.data["interaction_id"]].call_id)
        if event.type == "tool.started":
            tool = self.tools.get(event.data["name"])
            free = tool is None or tool.approval != "always"
            approved = free or event.data["call_id"] in self._approved
            _require(approved, f"{_at(event)}: {event.data['name']} was not approved")


def check_executions(begun: Counter[str], tool: AnyTool, key: str, claim: ToolClaim | None) -> None:
    """A tool is about to take effect under a key, for the `begun[key]`-th time."""
    _require(
        claim is not None and claim.state == "started",
        f"{tool.name} executes {key}, but the ledger says {claim.state if claim else 'nothing'}",
    )
    once = tool.effect != "read" and not tool.idempotent and tool.reconcile is None
    _require(not once or begun[key] == 1, f"{tool.name} took effect twice under {key}")


def _check_repetitions(run: Run, claims: Sequence[ToolClaim], tools: Mapping[str, AnyTool]) -> None:
    """A write that succeeded is not executed again with the same arguments."""
    done: Counter[tuple[str, str]] = Counter()
    for claim in claims:
        tool = tools.get(claim.tool_name)
        if tool is None or claim.state != "succeeded" or not _counts_once(tool):
            continue
        done[claim.tool_name, claim.arguments_digest] += 1
        twice = done[claim.tool_name, claim.arguments_digest] > 1
        _require(not twice, f"run {run.id}: {claim.tool_name} succeeded twice with equal arguments")


def _counts_once(tool: AnyTool) -> bool:
    # A continuation is made by the runtime, which never skips it.
    return tool.effect != "read" and tool.deduplicate and not tool.requires_interaction_response


def _check_waiting(run: Run) -> None:
    """Who waits, waits for something that somebody can bring."""
    pending, task = run.state.interaction, run.state.task
    asks = pending is not None and pending.status == "pending"
    waits = task is not None and task.state == "waiting"
    fine = (run.status is RunStatus.WAITING_INPUT) == asks
    _require(fine, f"run {run.id}: {run.status} and its question do not agree")
    fine = (run.status is RunStatus.WAITING_EXTERNAL) == waits
    _require(fine, f"run {run.id}: {run.status} and its task do not agree")
    fine = run.lease is None or run.active
    _require(fine, f"run {run.id}: {run.status} with a lease")


def _shows_loss(event: Event) -> bool:
    if event.type == "model.retrying":
        return bool(event.data["reason"] == "worker_lost")
    return event.type == "tool.failed" and event.data.get("code") == "outcome_unknown"


def _at(event: Event) -> str:
    return f"run {event.run_id}: seq {event.seq}: {event.type}"


def _require(condition: object, reason: str) -> None:
    if not condition:
        raise Violation(reason)
