"""The store port: durable sessions, runs and events, each operation one transaction or one read.

Contract of every implementation. Source: docs/persistence.md.

* An operation happened completely or left no trace, also when its caller is cancelled: a
  checkpoint before it is accepted, and after that the caller learns the verdict.
* Returned values are frozen. A missing thing raises NotFound, a lost condition StaleRun or the
  conflict that the operation names. A list of what belongs to a missing thing is empty.
* A `Decision` is a pure function that the store calls inside its transaction with the current
  row, possibly in another thread and more than once. It returns what to write, or None to write
  nothing, or raises a RungentError to refuse; then nothing changes.
* Events are visible to readers only together with the state they describe.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from rungent.errors import RungentError
from rungent.events import Event
from rungent.identity import Identity
from rungent.records import (
    ActionToken,
    ExternalTask,
    Interaction,
    Message,
    Run,
    Session,
    ToolClaim,
)

__all__ = ["Commit", "Created", "Creation", "Cursor", "Decision", "Store"]

Cursor = tuple[datetime, str]
"""The sort key of the last row of a page: (updated_at or created_at, id)."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Everything one transition writes, in one transaction.

    `run` is the new row: its version is one above the stored one, its `event_seq` is the seq of
    the last event. `messages` are appended to the session in order; the store gives them their
    positions and moves the session's `message_count` and `updated_at`. `claims`, `interactions`,
    `tasks` and `tokens` are inserted, or replace the row of the same key.

    `appends` promises that of the run only `version`, `event_seq` and `updated_at` differ from
    the stored row, so that a store may leave the rest alone.
    """

    run: Run
    events: tuple[Event, ...] = ()
    messages: tuple[Message, ...] = ()
    claims: tuple[ToolClaim, ...] = ()
    interactions: tuple[Interaction, ...] = ()
    tasks: tuple[ExternalTask, ...] = ()
    tokens: tuple[ActionToken, ...] = ()
    appends: bool = False

    @property
    def only_events(self) -> bool:
        """Whether the log grows, and nothing else changes or comes with it."""
        others = (self.messages, self.claims, self.interactions, self.tasks, self.tokens)
        return self.appends and not any(others)


@dataclass(frozen=True, slots=True)
class Creation:
    """A run to create.

    `commit.run` has version 1; `commit.messages` holds the user message, or nothing for a retry.
    `replace_waiting` is given for `if_active="cancel_waiting"`: it turns an active run that waits
    for input into its cancelled form. `retry_of` names the run that must be the newest of its
    session and failed retryably. `refusal` is raised when every other check has passed.
    """

    commit: Commit
    replace_waiting: Callable[[Run], Commit] | None = None
    retry_of: str | None = None
    refusal: RungentError | None = None


@dataclass(frozen=True, slots=True)
class Created:
    """The created run, or the earlier one when the idempotency key was replayed.

    `replaced` is the waiting run that was cancelled for it. `position` is the place of the user
    message in the transcript, counted from 1; None where no message was added.
    """

    run: Run
    replayed: bool = False
    replaced: Commit | None = None
    position: int | None = None


Decision = Callable[[Run], Commit | None]


class Store(Protocol):
    """Durable sessions, messages, runs, events, interactions, tasks and the claim ledger."""

    def open(self) -> AbstractAsyncContextManager[object]:
        """Own threads, loops and pools for as long as the context lasts; drain on leaving."""
        ...

    async def watch(self, wake: Callable[[str | None], None], poll_seconds: float) -> None:
        """Report changes made by other processes until cancelled.

        Calls `wake(run_id)`, or `wake(None)` for "any run", at most `poll_seconds` after a commit
        elsewhere. Reports are hints: they may be too many, and reading is the truth.
        """
        ...

    async def create_session(self, session: Session) -> None:
        """Insert a session."""
        ...

    async def get_session(self, session_id: str) -> Session:
        """The session, or NotFound."""
        ...

    async def list_sessions(
        self,
        owner: Identity,
        agent_names: Collection[str],
        *,
        limit: int,
        after: Cursor | None = None,
    ) -> list[Session]:
        """The owner's sessions of these agents, newest `updated_at` first (then id, descending)."""
        ...

    async def set_title(self, session_id: str, title: str | None, now: datetime) -> Session:
        """Set or clear the title and move `updated_at`. NotFound when there is no session."""
        ...

    async def list_messages(
        self, session_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[Message]:
        """Messages with a position above `after`, in order."""
        ...

    async def create_run(self, creation: Creation) -> Created:
        """Create a run, unless a rule forbids it; all in one transaction.

        In this order: NotFound without the session; the earlier run when its session and
        idempotency key match and the digest is equal, else IdempotencyKeyReused; RunNotRetryable
        when `retry_of` does not qualify; ActiveRunConflict when the session has an active run,
        unless it waits for input and `replace_waiting` is given, which is then committed first;
        `refusal`.
        """
        ...

    async def get_run(self, run_id: str) -> Run:
        """The run, or NotFound."""
        ...

    async def list_runs(
        self, session_id: str, *, limit: int, after: Cursor | None = None
    ) -> list[Run]:
        """Runs of a session, oldest first (created_at, then id)."""
        ...

    async def list_claimable(
        self, agent_names: Collection[str], owner: str, now: datetime, *, limit: int
    ) -> list[Run]:
        """Runs that `owner` may claim now, oldest first.

        Queued runs reserved by `owner`, and queued or running runs without a valid lease.
        """
        ...

    async def claim_run(self, run_id: str, owner: str, now: datetime, decide: Decision) -> Run:
        """Commit `decide(run)` if `owner` may claim the run (as `list_claimable`), else StaleRun."""
        ...

    async def commit(self, commit: Commit, *, owner: str, token: int) -> None:
        """Write a drive's transition.

        StaleRun unless the stored run is running, leased to `owner` with fencing token `token`,
        and one version behind `commit.run`. A lease that stays keeps the later of the stored and
        the given expiry: a renewal may be newer than what the drive knows.
        """
        ...

    async def resolve_interaction(
        self,
        run_id: str,
        interaction_id: str,
        decide: Callable[[Run, Interaction | None], Commit | None],
    ) -> Run:
        """Commit `decide(run, interaction)`; the interaction is None unless it is of this run."""
        ...

    async def get_interaction(self, interaction_id: str) -> Interaction:
        """The interaction, or NotFound."""
        ...

    async def find_token(self, token_hash: str) -> ActionToken | None:
        """The button with this hash of its token, or None."""
        ...

    async def list_due(
        self, agent_names: Collection[str], now: datetime, *, limit: int
    ) -> list[Interaction]:
        """Pending interactions whose `expires_at` is not after `now`, and those to be closed.

        Of runs of these agents; those to be closed have `closing`. In no particular order.
        """
        ...

    async def take_closing(self, interaction_id: str) -> bool:
        """Clear `closing`; whether it was set: of all that try, one learns True."""
        ...

    async def complete_task(
        self,
        run_id: str,
        task_id: str,
        decide: Callable[[Run, ExternalTask | None], Commit | None],
    ) -> Run:
        """Commit `decide(run, task)` for a host completion; the task is None when unknown."""
        ...

    async def report_task(
        self,
        run_id: str,
        task_id: str,
        decide: Callable[[Run, ExternalTask | None], Commit | None],
    ) -> Run:
        """Commit `decide(run, task)` for a progress report."""
        ...

    async def cancel_run(self, run_id: str, decide: Decision) -> Run:
        """Commit `decide(run)` whatever the run's status; returns the run as it is afterwards."""
        ...

    async def list_claims(self, run_id: str) -> list[ToolClaim]:
        """The run's ledger rows, oldest `started_at` first."""
        ...

    async def renew_lease(
        self, tokens: Mapping[str, int], owner: str, expires_at: datetime
    ) -> set[str]:
        """Extend the leases of these runs (run id → token); returns the ids still held."""
        ...

    async def release_lease(self, run_id: str, owner: str, token: int) -> bool:
        """Clear the lease if it is still `owner`'s under `token`; returns whether it was."""
        ...

    async def list_events(self, run_id: str, *, after: int, limit: int) -> list[Event]:
        """Events with `seq > after`, in order, at most `limit`."""
        ...
