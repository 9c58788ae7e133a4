"""The mutations: single lines of our own code that are wrong on purpose, and what they break.

Each is found by the text of the line. When a change of the code takes that text away,
`python -m tests.mutations` says so, and the mutation is anchored anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["MUTATIONS", "AnchorLost", "Mutation", "apply"]


class AnchorLost(LookupError):
    """The text to change is not there exactly once."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """`before` is a unique part of one line of `path`, `after` takes its place.

    `scenario` is where the simulation looks for it, `store` over which store, `seeds` how far,
    and `faults` with which kinds of them.
    """

    name: str
    path: str
    before: str
    after: str
    scenario: str = "Pauses"
    store: str = "memory"
    seeds: int = 60
    faults: str = "crash,db,provider,slow-reader,cancel,rivals"


def apply(mutation: Mutation, root: Path) -> None:
    """Change the copy of the package below `root`. Raises AnchorLost."""
    target = root / mutation.path
    text = target.read_text(encoding="utf-8")
    found = text.count(mutation.before)
    if found != 1:
        raise AnchorLost(
            f"{mutation.name}: {mutation.before.strip()!r} is {found} times in {mutation.path}, "
            "expected once; give the mutation another anchor"
        )
    target.write_text(text.replace(mutation.before, mutation.after), encoding="utf-8")


_STALE = 'raise StaleRun("The run is no longer this drive\'s.")'
_COMMITTING = "        if not transition.changes:\n"
MUTATIONS = (
    Mutation(
        "the fencing check of a commit is dropped",
        "rungent/store/memory.py",
        _STALE,
        "pass",
        scenario="Writes",
        seeds=200,
    ),
    Mutation(
        "a healthy run is taken over, in SQL",
        "persistence/runs.py",
        "c.lease_expires_at <= now",
        "c.lease_expires_at > now",
        scenario="Writes",
        store="sqlite",
        seeds=10,
    ),
    Mutation(
        "the lease is released before the commit",
        "rungent/_drive/journal.py",
        _COMMITTING,
        "        await self._desk.store.release_lease("
        "self._run.id, self._desk.worker, self._run.fencing_token)\n" + _COMMITTING,
    ),
    Mutation(
        "an event is told before its commit",
        "rungent/_drive/journal.py",
        _COMMITTING,
        "        await self._desk.announcer.announce("
        "self._run.id, seal(transition, self._desk.options.now()).events)\n" + _COMMITTING,
    ),
    Mutation(
        "the wake-up is armed after looking",
        "rungent/store/feed.py",
        "                    return ()\n                self._news = news\n",
        "                    return ()\n                self._news = self._listen()\n",
        seeds=200,
    ),
    Mutation(
        "a call is executed without a claim",
        "rungent/_lifecycle/opening.py",
        'claims=tuple(claim_of(run, call, "started", facts) for call in calls),',
        "claims=(),",
    ),
    Mutation(
        "a call settles without its ledger row",
        "rungent/_lifecycle/tool_outcomes.py",
        'claimed = Transition(run, claims=(claim_of(run, call, "succeeded", facts),))',
        "claimed = Transition(run)",
    ),
    Mutation(
        "what may have had an effect is executed again",
        "rungent/_lifecycle/choose.py",
        'harmless = tool.effect == "read" or tool.idempotent or call.opened.nothing_done',
        "harmless = True",
        scenario="Writes",
        seeds=200,
    ),
    Mutation(
        "a healthy run is taken over",
        "rungent/store/memory.py",
        "run.lease.expires_at <= now",
        "run.lease.expires_at > now",
        scenario="Writes",
    ),
    Mutation(
        "leases are not renewed",
        "rungent/store/memory.py",
        'self._runs[run_id] = self._runs[run_id].model_copy(update={"lease": lease})\n        return held',
        "pass\n        return held",
        scenario="Writes",
    ),
    Mutation(
        "deduplication ignores the arguments",
        "rungent/_lifecycle/checks.py",
        'return f"{name}:{digest}"',
        "return name",
        scenario="Writes",
    ),
    Mutation(
        "a repetition is executed",
        "rungent/_lifecycle/checks.py",
        "and key in run.state.done:",
        "and key in ():",
        scenario="Writes",
    ),
    Mutation(
        "an approval is not asked for",
        "rungent/_lifecycle/checks.py",
        'if tool.approval == "always" and not call.approved:',
        "if False:",
    ),
    Mutation(
        "a second, different answer is accepted",
        "rungent/_drive/doors.py",
        "                _require_same(interaction, value, facts.agent)\n",
        "",
        seeds=200,
    ),
    Mutation(
        "an answer serves more than one call",
        "rungent/_lifecycle/turns.py",
        "return with_state(run, answer=None)",
        "return run",
    ),
    Mutation(
        "queued runs are forgotten",
        "rungent/store/memory.py",
        "    if run.status is RunStatus.QUEUED:\n",
        "    if run.status is RunStatus.QUEUED:\n        return False\n",
        scenario="Sessions",
    ),
    Mutation(
        "an idempotency key is ignored",
        "rungent/store/memory.py",
        "if key is not None and key in self._keys:",
        "if False:",
        scenario="Writes",
        seeds=200,
    ),
    Mutation(
        "two runs of a session are active at once",
        "rungent/store/memory.py",
        "        if active_id is None:\n",
        "        if True:\n",
        scenario="Writes",
        seeds=200,
    ),
    Mutation(
        "a cancel leaves calls without an answer",
        "rungent/_lifecycle/endings.py",
        "message for call in calls for message in answers_of(call, _last_word(call, facts))",
        "message for call in calls[1:] for message in answers_of(call, _last_word(call, facts))",
        seeds=200,
    ),
    Mutation(
        "a lost step begins without a reset",
        "rungent/_lifecycle/opening.py",
        'Draft("message.reset", {}), Draft("model.retrying", retrying)',
        'Draft("model.retrying", retrying),',
        seeds=200,
    ),
    Mutation(
        "a paused run keeps its lease",
        "rungent/_lifecycle/pauses.py",
        'update={"status": RunStatus.WAITING_INPUT, "lease": None}',
        'update={"status": RunStatus.WAITING_INPUT}',
    ),
    Mutation(
        "a lost drive is not told of it",
        "rungent/_drive/supervisor.py",
        "            drive.journal.lose()\n\n    async def _renew_forever",
        "            pass\n\n    async def _renew_forever",
        scenario="Writes",
        seeds=200,
        faults="cancel",
    ),
)
