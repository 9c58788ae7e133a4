"""One model step: attempts, their deadlines, waits between them, text and waiting ticks.

Source: docs/model-steps.md.
"""

from __future__ import annotations

import contextvars
import logging
import math
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import cast

import trio

from rungent._drive.context import DriveContext
from rungent._drive.hosts import call_host
from rungent._drive.pen import Pen
from rungent._drive.silence import Silence
from rungent._lifecycle.outcomes import (
    ModelGaveUp,
    ModelReplied,
    Outcome,
    Retrying,
    Ticked,
    Wrote,
)
from rungent._lifecycle.retrying import Failure, Reply, StepFailed, decide_retry, judge
from rungent.llm.port import Echo, ModelCompleted, ModelFailure, ModelRequest, TextDelta
from rungent.text import storable

__all__ = ["model_step"]

logger = logging.getLogger("rungent")

CLOSE_SECONDS = 2.0


async def model_step(drive: DriveContext) -> Outcome:
    """Make the step that was opened, to a reply or a final failure.

    Cancelled: the stream is closed, and nothing is stored that was not stored before.
    """
    step = _Step(drive)
    outcome: Outcome = ModelGaveUp("model_step_timeout")
    try:
        with _until(step.deadline):
            outcome = await step.run()
    finally:
        step.silence.end()
    await step.stop_writing()
    return outcome


def _until(deadline: float) -> AbstractContextManager[object, bool | None]:
    """What gives up at `deadline`; without one nothing, because a scope is dear."""
    return nullcontext() if math.isinf(deadline) else trio.CancelScope(deadline=deadline)


class _Step:
    """The state of one step: text so far, silence so far, repetitions so far.

    `deadline` is when the step must be over, infinite without a limit. What is written beside
    the reader of the model's stream has tasks of its own in the drive's nursery.
    """

    def __init__(self, drive: DriveContext) -> None:
        options = drive.desk.options
        total = options.model_step_total_timeout_seconds
        self._drive = drive
        self._echo: Echo | None = None
        self._writing: set[trio.CancelScope] = set()
        # The clock starts ticks from its own task; they see the context variables of the step.
        self._context = contextvars.copy_context()
        self.deadline = math.inf if total is None else trio.current_time() + total
        self.pen = Pen(self._write, lambda: self._start(self.pen.run))
        self.silence = Silence(
            drive.desk.clock,
            self._tick,
            self._start,
            after=options.model_wait_progress_after_seconds,
            every=options.model_wait_progress_interval_seconds,
        )

    def _start(self, work: Callable[[], Awaitable[None]]) -> None:
        # Made here, so that also a task that has not begun yet is stopped.
        scope = trio.CancelScope(deadline=self.deadline)
        self._writing.add(scope)
        self._context.run(self._drive.nursery.start_soon, self._beside, work, scope)

    async def _beside(self, work: Callable[[], Awaitable[None]], scope: trio.CancelScope) -> None:
        with scope:
            await work()
        self._writing.discard(scope)

    async def stop_writing(self) -> None:
        """End what is written beside the step; no delta or tick is half told."""
        if self._writing:
            async with self._drive.journal.turn:
                for scope in self._writing:
                    scope.cancel()

    async def run(self) -> Outcome:
        """Attempts until one succeeds or the budget is used up."""
        try:
            context = await self._context_text()
        except Exception:
            logger.exception("context of %s failed", self._drive.journal.run.id)
            return ModelGaveUp("context_failed")
        policy = self._drive.model.retry_policy
        retries, correction = 0, False
        while True:
            verdict = await self._attempt(self._request(context, correction))
            if isinstance(verdict, Reply):
                return self._replied(verdict, await self.pen.finish())
            decision = decide_retry(
                verdict,
                retries,
                policy,
                remaining_seconds=self._remaining(),
                chance=random.random(),
            )
            if isinstance(decision, StepFailed):
                return ModelGaveUp(decision.code)
            retries += 1
            correction = correction or verdict.reason == "invalid_tool_arguments"
            await self.pen.drop()
            await self._announce_retry(verdict, retries, policy.max_retries, decision.delay_seconds)
            await trio.sleep(decision.delay_seconds)

    async def _context_text(self) -> str:
        provider = self._drive.agent.context
        if provider is None:
            return ""
        text = cast("object", await call_host(provider, self._drive.tool_context()))
        if text is None:
            return ""
        if not isinstance(text, str):
            raise TypeError("Agent.context must return a string")
        return storable(text)

    def _request(self, context: str, correction: bool) -> ModelRequest:
        journal = self._drive.journal
        return journal.transcript.request(
            journal.run,
            context,
            correction=correction,
            budget=self._drive.desk.options.context_budget_tokens,
        )

    def _remaining(self) -> float | None:
        return None if math.isinf(self.deadline) else self.deadline - trio.current_time()

    async def _announce_retry(
        self, failure: Failure, retry: int, max_retries: int, delay: float
    ) -> None:
        named = failure.reason == "invalid_tool_arguments"
        await self._drive.journal.apply(
            Retrying(
                retry=retry,
                max_retries=max_retries,
                delay_seconds=delay,
                reason=failure.reason,
                tool_name=failure.tool_name if named else None,
            )
        )
        self.silence.broken()

    async def _attempt(self, request: ModelRequest) -> Reply | Failure:
        """One use of the model, as a value: under its own deadlines, whatever it raises."""
        options = self._drive.desk.options
        limit, idle = options.model_step_timeout_seconds, options.model_idle_timeout_seconds
        scope: trio.CancelScope | None = None
        if limit is not None or idle is not None:
            whole = math.inf if limit is None else trio.current_time() + limit
            scope = trio.CancelScope(deadline=whole)
        found: list[ModelCompleted] = []
        try:
            with scope or nullcontext():
                await self._read(request, scope, found)
        except ModelFailure as failure:
            return Failure(
                failure.reason,
                terminal=failure.terminal,
                retry_after=failure.retry_after,
                tool_name=failure.tool_name,
            )
        except Exception:
            logger.exception("model of %s failed", self._drive.journal.run.id)
            return Failure("internal_error", terminal=True)
        if not found:
            late = scope is not None and scope.cancelled_caught
            return Failure("timeout" if late else "stream_incomplete")
        self._echo = found[0].echo
        return judge(found[0], self.pen.text)

    async def _read(
        self, request: ModelRequest, scope: trio.CancelScope | None, found: list[ModelCompleted]
    ) -> None:
        """Show text as it comes; `found` gets the completion, also when closing is cut off.

        `scope` holds the deadlines of the attempt, of which the nearest counts.
        """
        idle = self._drive.desk.options.model_idle_timeout_seconds
        whole = math.inf if scope is None else scope.deadline
        async with self._drive.model.stream(request) as chunks:
            try:
                async for chunk in chunks:
                    if scope is not None and idle is not None:
                        scope.deadline = min(whole, trio.current_time() + idle)
                    if isinstance(chunk, TextDelta):
                        self.pen.put(chunk.text)
                    elif isinstance(chunk, ModelCompleted):
                        if not self.pen.text:
                            self.pen.put(chunk.text)
                        found.append(chunk)
                        break
            finally:
                with trio.move_on_after(CLOSE_SECONDS, shield=True):
                    await _close(chunks)

    def _replied(self, reply: Reply, unwritten: str) -> ModelReplied:
        transcript = self._drive.journal.transcript
        calls = transcript.identified(reply.calls)
        transcript.expect_echo(calls, self._echo)
        return ModelReplied(
            text=reply.text,
            calls=calls,
            finish_reason=reply.finish_reason,
            provider_request_id=reply.provider_request_id,
            usage=reply.usage,
            text_shown=self.pen.shown,
            unwritten=unwritten,
        )

    async def _write(self, text: str) -> None:
        await self._drive.journal.apply(Wrote(text))
        self.silence.broken()

    async def _tick(self) -> None:
        await self._drive.journal.apply_late(self._silent)

    def _silent(self) -> Ticked | None:
        # Text may have been shown while the tick waited for its turn to write.
        silence = self.silence
        return Ticked(silence.first, silence.elapsed_seconds) if silence.overdue else None


async def _close(chunks: AsyncIterator[object]) -> None:
    """End a model's generator here, not whenever it is collected."""
    if isinstance(chunks, AsyncGenerator):
        await cast("AsyncGenerator[object, None]", chunks).aclose()
