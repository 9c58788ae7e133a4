"""A trial: many runs with their clients, workers that are killed meanwhile, and the accounts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio

from rungent import Event
from rungent.events import TERMINAL_TYPES
from rungent.persistence import SQLAlchemyStore
from rungent.store import Store
from rungent.testing.store_samples import session_of
from tests.grammar import check_log
from tests.helpers import OWNER, of
from tests.kills.effects import Effects, plain_engine
from tests.kills.fleet import Fleet, Gone, Refused
from tests.persistence.stores import sql_store
from tests.recovery.agent import AGENT, ONCE, REPEATABLE
from tests.recovery.journey import check_transcript

__all__ = ["Accounts", "Client", "Trial"]

PAGE = 1000


@dataclass
class Client:
    """Creates one run and stays with it until it ends, whichever worker is there.

    `seen` is what its follower got, over all reconnections.
    """

    fleet: Fleet
    session_id: str
    note: Callable[[], None]
    run_id: str = ""
    seen: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def last(self) -> str:
        """The type of the newest event."""
        return self.seen[-1]["type"] if self.seen else ""

    async def stay(self) -> None:
        """Go on until the run has ended."""
        while self.last not in TERMINAL_TYPES:
            try:
                await self._go_on()
            except (Gone, Refused):
                # The next worker knows as much, and what was stored is not done twice.
                await trio.lowlevel.checkpoint()

    async def _go_on(self) -> None:
        if not self.run_id:
            self.run_id = await self.fleet.ask(op="create", session=self.session_id)
        if self.last == "interaction.requested" and await self._status() == "waiting_input":
            asked = self.seen[-1]["data"]["id"]
            await self.fleet.ask(op="approve", run=self.run_id, interaction=asked)
        if self.last == "run.waiting_external" and await self._status() == "waiting_external":
            await self.fleet.ask(op="complete", run=self.run_id)
        replies = self.fleet.send(op="follow", run=self.run_id, after=len(self.seen))
        async with aclosing(replies):
            async for reply in replies:
                if "event" in reply:
                    self.seen.append(reply["event"])
                    self.note()
                if self.last == "run.waiting_external":
                    return

    async def _status(self) -> str:
        status: str = await self.fleet.ask(op="status", run=self.run_id)
        return status


@dataclass
class Accounts:
    """What a trial came to. `problems` should be empty."""

    runs: Counter[str] = field(default_factory=Counter[str])
    events: int = 0
    recoveries: int = 0
    effects: int = 0
    in_doubt: int = 0
    duplicates: int = 0
    gaps: int = 0
    problems: list[str] = field(default_factory=list[str])


@dataclass
class Trial:
    """Runs with their clients on a fleet over one database."""

    fleet: Fleet
    store: Store
    effects: Effects
    clients: list[Client] = field(default_factory=list[Client])
    events: int = 0
    ended: int = 0
    kills: int = 0
    seconds: float = 0
    exits: list[int] = field(default_factory=list[int])
    _progress: trio.Event = field(default_factory=trio.Event)

    @classmethod
    @asynccontextmanager
    async def over(
        cls,
        kinds: Sequence[str],
        folder: Path,
        postgres: str = "",
        *,
        seed: int = 1,
        effects_apart: bool = False,
    ) -> AsyncIterator[Trial]:
        """A trial with one worker for each kind of store, all over one empty database.

        The effects of the tools are `effects_apart` where the database may go away.
        """
        effects_postgres = "" if effects_apart else postgres
        store = sql_store(kinds[0], folder, postgres)
        assert isinstance(store, SQLAlchemyStore)
        effects = Effects(plain_engine(folder, effects_postgres))
        await trio.to_thread.run_sync(effects.create)
        fleet = Fleet(
            list(kinds), folder, postgres, random.Random(seed), effects_postgres=effects_postgres
        )
        async with store.open():
            await store.create_schema()
            try:
                async with fleet.running():
                    yield cls(fleet, store, effects)
            finally:
                with trio.CancelScope(shield=True):
                    await trio.to_thread.run_sync(effects.drop)

    @property
    def all_ended(self) -> bool:
        """Whether every run has ended."""
        return self.ended == len(self.clients)

    async def play(
        self, runs: int, harass: Callable[[Trial], Awaitable[None]], *, at_once: int | None = None
    ) -> None:
        """Let the clients go through their runs, at most `at_once` of them, while `harass` runs."""
        limit = trio.CapacityLimiter(at_once or runs)
        for _ in range(runs):
            session = session_of(OWNER.subject_id, agent_name=AGENT.name)
            await self.store.create_session(session)
            self.clients.append(Client(self.fleet, session.id, self._note))
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for client in self.clients:
                nursery.start_soon(self._attend, client, limit)
            await harass(self)
        self.seconds = trio.current_time() - began

    async def until(self, events: int) -> bool:
        """Wait until clients have seen this many events, or until every run has ended."""
        while self.events < events and not self.all_ended:
            await self._progress.wait()
        return not self.all_ended

    async def kill(self) -> None:
        """Kill one worker; another one takes its place."""
        self.kills += 1
        await self.fleet.kill()

    async def roll(self) -> None:
        """Replace every worker in order, one after the other."""
        for _ in range(self.fleet.size):
            self.exits.append(await self.fleet.replace())

    def _note(self) -> None:
        self.events += 1
        self._wake()

    def _wake(self) -> None:
        self._progress.set()
        self._progress = trio.Event()

    async def _attend(self, client: Client, limit: trio.CapacityLimiter) -> None:
        async with limit:
            await client.stay()
        self.ended += 1
        self._wake()

    # --- the accounts ------------------------------------------------------------------------

    async def account(self) -> Accounts:
        """Compare what was stored, what clients saw and what took effect."""
        accounts = Accounts()
        effects = Counter(await trio.to_thread.run_sync(self.effects.all))
        accounts.effects = effects.total()
        by_key = {key: count for (key, _), count in effects.items()}
        for (key, name), count in effects.items():
            if count > 1:
                accounts.duplicates += 1
                accounts.problems.append(f"{name} took effect {count} times under {key}")
        for client in self.clients:
            try:
                await self._account_run(client, accounts, by_key)
            except AssertionError as broken:
                accounts.problems.append(f"{client.run_id}: {broken}")
        if by_key:
            accounts.problems.append(f"effects that no run knows of: {by_key}")
        return accounts

    async def _account_run(
        self, client: Client, accounts: Accounts, effects: dict[str, int]
    ) -> None:
        """Check one run; takes its effects out of `effects`."""
        run = await self.store.get_run(client.run_id)
        accounts.runs[run.status] += 1
        events = await self.store.list_events(run.id, after=0, limit=PAGE)
        accounts.events += len(events)
        accounts.recoveries += sum(e.data["reason"] == "worker_lost" for e in retries(events))
        numbers = [event.seq for event in events]
        accounts.gaps += numbers != list(range(1, run.event_seq + 1))
        claims = [c for c in await self.store.list_claims(run.id) if c.tool_name in ONCE]
        counts = {claim.call_id: effects.pop(claim.idempotency_key, 0) for claim in claims}
        check_log(events)
        assert client.seen == [event.model_dump(mode="json") for event in events], "follower"
        check_transcript(await self.store.list_messages(run.session_id))
        assert run.lease is None
        unknown = [d["name"] for d in of(events, "tool.failed") if d["code"] == "outcome_unknown"]
        doubtful = [claim.tool_name for claim in claims if claim.state == "in_doubt"]
        accounts.in_doubt += len(doubtful)
        assert Counter(unknown) == Counter(doubtful)
        assert REPEATABLE.isdisjoint(unknown)
        for claim in claims:
            assert claim.state in {"succeeded", "in_doubt"}, f"{claim.tool_name} is {claim.state}"
            if claim.state == "succeeded":
                assert counts[claim.call_id] == 1, f"{claim.tool_name} had no effect"
        assert run.status == "completed", f"the run is {run.status}: {run.failure_code}"


def retries(events: Sequence[Event]) -> list[Event]:
    """The repetitions of model steps."""
    return [event for event in events if event.type == "model.retrying"]
