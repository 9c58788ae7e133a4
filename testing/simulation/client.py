"""The users of a play: they create runs, answer, complete, cancel, and read along.

A user copes with whatever a client must cope with: lost workers, lost replies, others that were
faster. It repeats its requests, with the same content, until it learns what became of them.
Source: docs/simulation.md#plans.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import trio
from pydantic import JsonValue

from rungent.errors import (
    ActiveRunConflict,
    Conflict,
    InteractionAlreadyResolved,
    InvalidResponse,
    RuntimeBusy,
    ShuttingDown,
)
from rungent.events import TERMINAL_TYPES, Event
from rungent.identity import Identity
from rungent.records import Interaction, RunStatus
from rungent.runtime import Runtime
from rungent.testing.simulation.plan import Kind
from rungent.testing.simulation.stage import Stage
from rungent.testing.simulation.workers import Worker

__all__ = ["USER", "User"]

USER = Identity("user")
AGAIN_SECONDS = 0.5
_OTHER = "-other"
CALLER_PATIENCE = (0.0, 0.001, 0.003, 0.01)
_TRANSIENT = (OSError, Conflict, RuntimeBusy, ShuttingDown)

Request = Callable[[Runtime], Awaitable[object]]


class CallerLeft(OSError):
    """The caller of a request went away and learned nothing."""


@dataclass
class User:
    """One user with one session; `talk` is the whole conversation."""

    stage: Stage
    workers: Sequence[Worker]
    session_id: str
    number: int
    on_run: Callable[[str], None]
    run_ids: list[str] = field(default_factory=list[str])

    async def talk(self, texts: Sequence[str]) -> None:
        """Say one text after another, each once the run before has ended."""
        for place, text in enumerate(texts):
            await self._until(partial(self._accompany, text, place))
        runs = await self.stage.store.list_runs(self.session_id, limit=100)
        wanted = [run for run in runs if not str(run.idempotency_key).endswith(_OTHER)]
        fine = len(wanted) == len(texts)
        self.stage.require(fine, f"{len(wanted)} runs for {len(texts)} texts")

    async def _until(self, do: Callable[[], Awaitable[bool]]) -> None:
        """Try until it is done, over whatever worker there is."""
        while True:
            try:
                if await do():
                    return
            except _TRANSIENT as refused:
                self.stage.note(f"   user {self.number} is refused: {refused!r:.90}")
            await trio.sleep(AGAIN_SECONDS)

    def _worker(self) -> Worker:
        return self.stage.stream(f"user {self.number}").choice(self.workers)

    async def _accompany(self, text: str, place: int) -> bool:
        """Create the run and see it to its end."""
        key = f"{self.number}-{place}"
        run_id = await self._create(text, key)
        if run_id not in self.run_ids:
            self.run_ids.append(run_id)
            self.on_run(run_id)
        while await self._worker().use(lambda runtime: self._follow(runtime, run_id)):
            pass
        # If it took the place of the wanted one, that comes next.
        return (await self.stage.store.get_run(run_id)).idempotency_key == key

    async def _create(self, text: str, key: str) -> str:
        """The run for a text: one, however often and by however many it is asked for."""

        def create(key: str) -> Request:
            async def request(runtime: Runtime) -> str:
                receipt = await runtime.create_run(
                    self.session_id, text, identity=USER, idempotency_key=key
                )
                return receipt.run_id

            return request

        rival = self._rival()
        try:
            if rival is None:
                return str(await self._request(create(key)))
            second = key if rival == "same" else key + _OTHER
            return self._one_of(await self._both(create(key), create(second)))
        except ActiveRunConflict as conflict:
            # A request that its caller knows nothing of was faster.
            return conflict.run_id

    def _one_of(self, made: Sequence[object]) -> str:
        ids = {one for one in made if isinstance(one, str)}
        self.stage.require(len(ids) <= 1, f"two requests at once made {len(ids)} runs")
        if ids:
            return ids.pop()
        raise next((one for one in made if isinstance(one, Conflict)), CallerLeft("nobody knows"))

    async def _follow(self, runtime: Runtime, run_id: str) -> bool:
        """Follow the run and do what it waits for; whether it may go on then."""
        asked: Event | None = None
        async for event in runtime.stream_events(run_id, identity=USER):
            if event.type == "interaction.requested":
                asked = event
            if event.type == "run.waiting_external":
                await self._complete(run_id)
            await self._perhaps_cancel(run_id, event)
        run = await runtime.get_run(run_id, identity=USER)
        if run.status is RunStatus.WAITING_INPUT and asked is not None:
            await self._answer(run_id, asked)
        return run.active

    async def _answer(self, run_id: str, asked: Event) -> None:
        question = asked.data["id"]
        choice = self._choice(f"answer {asked.seq}")
        value = self.stage.scenario.answer(asked.data, choice)
        other = self.stage.scenario.answer(asked.data, choice)
        await trio.sleep(choice.choice((0, 0, 1, 45)))

        def answer(given: JsonValue) -> Request:
            return lambda runtime: runtime.submit_response(run_id, question, given, identity=USER)

        rival = self._rival()
        if rival is None:
            await self._request(answer(value))
            return
        values = [value, value if rival == "same" else other]
        accepted = await self._both(answer(values[0]), answer(values[1]))
        stored = await self.stage.store.get_interaction(question)
        self._check_answers(stored, values, accepted)

    def _check_answers(
        self, stored: Interaction, values: Sequence[JsonValue], accepted: Sequence[object]
    ) -> None:
        """Of two answers the stored one counts; the other was accepted only if it is equal."""
        took = [one for one in accepted if not isinstance(one, Exception)]
        refused = [one for one in accepted if isinstance(one, InteractionAlreadyResolved)]
        if len(took) + len(refused) < len(accepted):
            # Somebody cannot know what became of the request.
            return
        equal = values[0] == values[1]
        cancelled = stored.outcome == "cancelled"
        fine = len(took) == (2 if equal else 1) or cancelled
        self.stage.require(fine, f"{stored.id}: {len(took)} answers of 2 were accepted")

    async def _complete(self, run_id: str) -> None:
        run = await self.stage.store.get_run(run_id)
        task = run.state.task
        if run.status is not RunStatus.WAITING_EXTERNAL or task is None:
            return
        choice = self._choice(f"task {task.task_id}")
        result = self.stage.scenario.result(task, choice)
        await trio.sleep(choice.choice((0, 0, 2, 45)))

        def complete(runtime: Runtime) -> Awaitable[object]:
            return runtime.resume_deferred(run_id, task.task_id, result, identity=USER)

        if self._rival() is None:
            await self._request(complete)
            return
        outcomes = await self._both(complete, complete)
        took = sum(not isinstance(one, Exception) for one in outcomes)
        self.stage.require(took <= 1, f"task {task.task_id} was completed {took} times")

    async def _perhaps_cancel(self, run_id: str, event: Event) -> None:
        for chance in self.stage.plan.of(Kind.CANCEL):
            wanted = chance.way == "run" and chance.number == event.seq
            if wanted and run_id == self.run_ids[0] and event.type not in TERMINAL_TYPES:
                self.stage.fire(str(chance))
                await self._cancel(run_id)

    async def _cancel(self, run_id: str) -> None:
        run = await self._worker().use(lambda runtime: runtime.cancel_run(run_id, identity=USER))
        over = not run.active
        self.stage.require(over, f"run {run_id}: {run.status} after it was cancelled")

    def _choice(self, what: str) -> random.Random:
        return self.stage.choice_for(f"{self.number} {len(self.run_ids)} {what}")

    def _rival(self) -> str | None:
        """How the request that comes now is doubled, if it is."""
        number = self.stage.requests + 1
        for chance in self.stage.plan.of(Kind.RIVALS):
            if chance.number == number:
                self.stage.fire(str(chance))
                return chance.way
        return None

    async def _both(self, *requests: Request) -> list[object]:
        """The results, or the errors, of requests made at the same time over any workers."""
        self.stage.requests += 1
        outcomes: list[object] = [None] * len(requests)

        async def ask(place: int, request: Request) -> None:
            try:
                outcomes[place] = await self._worker().use(request)
            except (*_TRANSIENT, InvalidResponse) as refused:
                outcomes[place] = refused

        async with trio.open_nursery() as nursery:
            for place, request in enumerate(requests):
                nursery.start_soon(ask, place, request)
        return outcomes

    async def _request(self, request: Request) -> object:
        """Make a request, perhaps as a caller that goes away: CallerLeft."""
        self.stage.requests += 1
        number = self.stage.requests
        leaves = [
            chance
            for chance in self.stage.plan.of(Kind.CANCEL)
            if chance.way == "caller" and chance.number == number
        ]
        if not leaves:
            return await self._worker().use(request)
        self.stage.fire(str(leaves[0]))
        with trio.move_on_after(self.stage.stream(f"user {self.number}").choice(CALLER_PATIENCE)):
            return await self._worker().use(request)
        raise CallerLeft("the caller left")
