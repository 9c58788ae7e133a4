"""Playing baseline cases against a runtime, one after another.

Source: docs/baselines.md.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import trio

from rungent.events import Event
from rungent.identity import Identity
from rungent.records import RunStatus
from rungent.runtime import Runtime
from rungent.testing.baseline.cases import (
    BaselineCase,
    BaselineContext,
    BaselineEnvironment,
    BaselineResult,
    Measures,
    SetupCase,
)
from rungent.testing.baseline.judge import (
    as_response,
    final_text,
    first_difference,
    interactions_of,
    surplus,
    tokens_of,
    tools_of,
)
from rungent.testing.baseline.report import BaselineReport

__all__ = ["BaselineSuite", "run_baseline"]

T = TypeVar("T")
Hook = Callable[[], Awaitable[None] | None]
DEFAULT_IDENTITY = Identity("baseline")


@dataclass
class BaselineSuite:
    """Cases for one runtime, which is served by `run` if it is not serving yet.

    `setup_case(case)` makes the environment of a case, instead of `resource` and `deps`.
    `before_all` is called before the runtime is served, `after_all` when everything is over,
    whatever happened. All may be async. A case that takes longer than `case_timeout_seconds`
    fails.
    """

    runtime: Runtime
    cases: Sequence[BaselineCase]
    identity: Identity = DEFAULT_IDENTITY
    resource: Mapping[str, Any] = field(default_factory=dict[str, Any])
    deps: Mapping[str, Any] = field(default_factory=dict[str, Any])
    setup_case: SetupCase | None = None
    before_all: Hook | None = None
    after_all: Hook | None = None
    case_timeout_seconds: float = 300

    async def run(
        self, *, repeat: int = 1, finished: Callable[[BaselineResult], object] = lambda _: None
    ) -> BaselineReport:
        """Play every case `repeat` times; `finished` is told each result.

        What a hook raises is raised; what a case raises is its error.
        """
        results: list[BaselineResult] = []
        try:
            if self.before_all is not None:
                await _awaited(self.before_all())
            async with nullcontext() if self.runtime.serving else self.runtime:
                for case in self.cases:
                    for _ in range(repeat):
                        results.append(await self._result(case))
                        finished(results[-1])
        finally:
            if self.after_all is not None:
                await _awaited(self.after_all())  # noqa: ASYNC102 - the host's own clean-up
        return BaselineReport(tuple(results))

    async def _result(self, case: BaselineCase) -> BaselineResult:
        talk = _Talk(self.runtime, case, self.identity)
        begun = trio.current_time()
        error: str | None = None
        state: bool | None = None
        try:
            with trio.fail_after(self.case_timeout_seconds):
                environment = await self._environment(case)
                await talk.play(environment)
                error = first_difference(case, talk.tools, talk.interactions, talk.status)
                state, wrong = await self._check_state(talk, environment)
                error = error or wrong
        except trio.TooSlowError:
            error = f"timed out after {self.case_timeout_seconds:g} s"
        except Exception as raised:  # noqa: BLE001 - the case fails with its text
            error = _text(raised)
        return BaselineResult(
            name=case.name,
            passed=error is None,
            tools=talk.tools,
            interactions=talk.interactions,
            final_text=final_text(talk.events),
            error=error,
            measures=Measures(
                unexpected_tools=surplus(case.expected_tools, talk.tools),
                unnecessary_interactions=surplus(case.expected_interactions, talk.interactions),
                state_correct=state if case.assert_state is None else bool(state),
                tokens=tokens_of(talk.events),
                seconds=trio.current_time() - begun,
            ),
        )

    async def _environment(self, case: BaselineCase) -> BaselineEnvironment:
        if self.setup_case is None:
            return BaselineEnvironment(self.resource, self.deps)
        return await _awaited(self.setup_case(case))

    async def _check_state(
        self, talk: _Talk, environment: BaselineEnvironment
    ) -> tuple[bool | None, str | None]:
        if talk.case.assert_state is None:
            return None, None
        context = BaselineContext(
            talk.case, talk.session_id, environment.resource, environment.deps, talk.events
        )
        try:
            await _awaited(talk.case.assert_state(context))
        except Exception as raised:  # noqa: BLE001 - an error of the check is a wrong state
            return False, _text(raised)
        return True, None


async def run_baseline(
    runtime: Runtime,
    cases: Sequence[BaselineCase],
    *,
    identity: Identity = DEFAULT_IDENTITY,
    resource: Mapping[str, Any] | None = None,
    deps: Mapping[str, Any] | None = None,
    setup_case: SetupCase | None = None,
) -> BaselineReport:
    """Play cases against a runtime; `BaselineSuite` has more options."""
    suite = BaselineSuite(
        runtime, cases, identity, resource or {}, deps or {}, setup_case=setup_case
    )
    return await suite.run()


@dataclass
class _Talk:
    """The conversation of one case."""

    runtime: Runtime
    case: BaselineCase
    identity: Identity
    session_id: str = ""
    status: str = "not started"
    events: list[Event] = field(default_factory=list[Event])

    @property
    def tools(self) -> tuple[str, ...]:
        return tools_of(self.events)

    @property
    def interactions(self) -> tuple[str, ...]:
        return interactions_of(self.events)

    async def play(self, environment: BaselineEnvironment) -> None:
        """Say everything, answer everything; stop after a run that did not complete."""
        session = await self.runtime.create_session(
            identity=self.identity, resource=environment.resource
        )
        self.session_id = session.id
        answers = list(self.case.responses)
        for text in (self.case.input, *self.case.followups):
            await self._one_run(text, environment.deps, answers)
            if self.status != RunStatus.COMPLETED:
                return

    async def _one_run(self, text: str, deps: Mapping[str, Any], answers: list[Any]) -> None:
        runtime, identity = self.runtime, self.identity
        last = await self._heard(
            runtime.stream_run(self.session_id, text, identity=identity, deps=deps)
        )
        while last.type == "interaction.requested" and answers:
            answer = cast("Any", as_response(last.data["kind"], answers.pop(0)))
            question: str = last.data["id"]
            last = await self._heard(
                runtime.stream_response(last.run_id, question, answer, identity=identity, deps=deps)
            )
        run = await runtime.get_run(last.run_id, identity=identity)
        self.status = run.status.value
        if run.active:
            await runtime.cancel_run(last.run_id, identity=identity)

    async def _heard(self, stream: AsyncIterator[Event]) -> Event:
        async for event in stream:
            self.events.append(event)
        return self.events[-1]


async def _awaited(value: T | Awaitable[T]) -> T:
    if inspect.isawaitable(value):
        return await value
    return value


def _text(raised: Exception) -> str:
    return str(raised).strip() or type(raised).__name__
