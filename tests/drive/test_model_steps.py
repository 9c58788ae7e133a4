"""Attempts, deadlines and repetitions of a model step, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from rungent import Event
from rungent.llm.port import (
    Heartbeat,
    ModelChunk,
    ModelCompleted,
    ModelFailure,
    ModelRequest,
    RetryPolicy,
    TextDelta,
)
from rungent.testing.scripted import Delay, Response, ScriptedModel
from tests.helpers import calls, delays, failed, of, stage, types

NETWORK = ModelFailure("network")


def seconds(events: Sequence[Event], kind: str) -> list[float]:
    """When events of a type were stored, in seconds since the first event."""
    first = events[0].created_at
    found = [event.created_at - first for event in events if event.type == kind]
    return [round(since.total_seconds(), 3) for since in found]


async def test_a_run_without_calls_is_one_step(autojump_clock: MockClock) -> None:
    async with stage(["Hello."]) as on:
        events = await on.play()
        assert types(events) == [
            "run.started",
            "model.started",
            "message.delta",
            "model.completed",
            "message.completed",
            "run.completed",
        ]
        assert of(events, "message.completed") == [{"content": "Hello."}]
        assert [m.role for m in await on.messages()] == ["user", "assistant"]


async def test_a_failed_attempt_is_repeated_in_the_same_step(autojump_clock: MockClock) -> None:
    script = [[TextDelta("Hel"), Delay(1), NETWORK], ModelFailure("server_error"), "Hello."]
    async with stage(script) as on:
        events = await on.play()
    assert types(events)[1:-3] == [
        "model.started",
        "message.delta",
        "message.reset",
        "model.retrying",
        "message.reset",
        "model.retrying",
        "message.delta",
    ]
    assert [d["reason"] for d in of(events, "model.retrying")] == ["network", "server_error"]
    assert [d["retry"] for d in of(events, "model.retrying")] == [1, 2]
    assert seconds(events, "model.retrying") == [1, 1.5]
    assert seconds(events, "run.completed") == [2.5]


async def test_waits_double_up_to_eight_seconds(autojump_clock: MockClock) -> None:
    model = ScriptedModel([NETWORK] * 6 + ["At last."], max_retries=6)
    async with stage(model) as on:
        assert delays(await on.play()) == [0.5, 1, 2, 4, 8, 8]


async def test_jitter_takes_off_at_most_a_quarter(autojump_clock: MockClock) -> None:
    model = ScriptedModel([NETWORK] * 100 + ["At last."], max_retries=100)
    model.retry_policy = RetryPolicy(100, 16)
    async with stage(model, context_budget_tokens=10**9) as on:
        events = await on.play()
    waits = delays(events)
    assert len(waits) == 100
    assert min(waits) >= 6
    assert max(waits) <= 8
    assert max(waits) - min(waits) > 1
    # The event tells the real wait.
    gaps = [later - earlier for earlier, later in pairwise(seconds(events, "model.retrying"))]
    assert gaps == pytest.approx(waits[:-1], abs=0.002)


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (NETWORK, "model_unavailable"),
        (ModelFailure("timeout"), "model_step_timeout"),
        (ModelFailure("invalid_tool_arguments"), "invalid_tool_arguments"),
        (ModelFailure("rate_limit"), "model_unavailable"),
        (ModelCompleted(), "empty_completion"),
        (ModelCompleted(" \n"), "empty_completion"),
        ([TextDelta("half a sen")], "model_unavailable"),
        (ModelCompleted(finish_reason="length"), "empty_completion"),
    ],
)
async def test_the_last_reason_names_the_failure_when_the_budget_is_used_up(
    autojump_clock: MockClock, failure: Any, code: str
) -> None:
    async with stage([NETWORK, NETWORK, NETWORK, failure]) as on:
        events = await on.play()
        assert failed(events) == code
        assert len(of(events, "model.retrying")) == 3
        assert of(events, "run.failed")[0]["retryable"] is True
        assert [m.role for m in await on.messages()] == ["user"]


@pytest.mark.parametrize(
    ("failure", "code", "retryable"),
    [
        (ModelFailure("model_rejected", terminal=True), "model_rejected", False),
        (ModelFailure("rate_limit", terminal=True), "model_rejected", False),
        (ModelFailure("content_filtered", terminal=True), "content_filtered", False),
        (ZeroDivisionError("canary"), "internal_error", True),
    ],
)
async def test_what_is_final_is_never_repeated(
    autojump_clock: MockClock, failure: Exception, code: str, retryable: bool
) -> None:
    async with stage([[TextDelta("Hm"), failure]]) as on:
        events = await on.play()
        assert "model.retrying" not in types(events)
        assert (failed(events), of(events, "run.failed")[0]["retryable"]) == (code, retryable)
        assert len(on.model.requests) == 1


async def test_each_step_has_its_own_retry_budget(autojump_clock: MockClock) -> None:
    script: list[Response] = [NETWORK, NETWORK, calls("nothing"), NETWORK, NETWORK, "Done."]
    async with stage(ScriptedModel(script, max_retries=2)) as on:
        events = await on.play()
    assert [(d["step"], d["retry"]) for d in of(events, "model.retrying")] == [
        (1, 1),
        (1, 2),
        (2, 1),
        (2, 2),
    ]
    assert types(events)[-1] == "run.completed"


# --- deadlines -----------------------------------------------------------------------------------


async def test_an_attempt_that_takes_too_long_is_repeated(autojump_clock: MockClock) -> None:
    slow = [TextDelta("a"), Delay(6), TextDelta("b"), Delay(6), ModelCompleted()]
    async with stage([slow, "ab"], model_step_timeout_seconds=10) as on:
        events = await on.play()
    assert of(events, "model.retrying")[0]["reason"] == "timeout"
    assert seconds(events, "model.retrying") == [10]
    assert seconds(events, "run.completed") == [10.5]


async def test_every_attempt_has_the_whole_time_and_waits_do_not_count(
    autojump_clock: MockClock,
) -> None:
    slow = [Delay(9), ModelFailure("rate_limit", retry_after=30)]
    async with stage([slow, [Delay(9), ModelCompleted("ok")]], model_step_timeout_seconds=10) as on:
        events = await on.play()
    assert seconds(events, "run.completed") == [48]


async def test_silence_between_chunks_is_bounded_from_the_first_chunk_on(
    autojump_clock: MockClock,
) -> None:
    patient = [Delay(50), Heartbeat(), Delay(4), TextDelta("a"), Delay(4), ModelCompleted()]
    silent = [Heartbeat(), Delay(3), TextDelta("a"), Delay(6), ModelCompleted()]
    async with stage([silent, patient], model_idle_timeout_seconds=5) as on:
        events = await on.play()
    assert seconds(events, "model.retrying") == [8]
    assert seconds(events, "run.completed") == [66.5]


async def test_a_slow_but_lively_stream_is_left_alone(autojump_clock: MockClock) -> None:
    lively = [part for _ in range(40) for part in (TextDelta("a"), Delay(4))]
    async with stage([[*lively, ModelCompleted()]], model_idle_timeout_seconds=5) as on:
        assert types(await on.play())[-1] == "run.completed"


async def test_a_stream_that_drips_meets_the_deadline_of_the_attempt(
    autojump_clock: MockClock,
) -> None:
    drip: list[Any] = [part for _ in range(20) for part in (Heartbeat(), Delay(60))]
    model = ScriptedModel([drip, drip], max_retries=1)
    options = {"model_idle_timeout_seconds": 70.0, "model_step_timeout_seconds": 100.0}
    async with stage(model, **options) as on:  # type: ignore[arg-type]
        events = await on.play()
    assert failed(events) == "model_step_timeout"
    assert seconds(events, "run.failed") == [200.5]


async def test_the_total_deadline_ends_the_step_without_a_further_tick(
    autojump_clock: MockClock,
) -> None:
    async with stage([[Delay(100)]], model_step_total_timeout_seconds=8) as on:
        events = await on.play()
    assert failed(events) == "model_step_timeout"
    assert seconds(events, "run.failed") == [8]
    assert seconds(events, "activity.updated") == [3]


async def test_the_total_deadline_also_bounds_waits(autojump_clock: MockClock) -> None:
    async with stage([NETWORK] * 4, model_step_total_timeout_seconds=1) as on:
        events = await on.play()
    assert failed(events) == "model_step_timeout"
    assert seconds(events, "run.failed") == [1]


async def test_an_hour_asked_for_by_the_provider_is_cut_to_a_minute(
    autojump_clock: MockClock,
) -> None:
    async with stage([ModelFailure("rate_limit", retry_after=3600), "ok"]) as on:
        events = await on.play()
    assert delays(events) == [60]
    assert seconds(events, "run.completed") == [60]


async def test_a_stated_delay_replaces_the_wait_as_it_is(autojump_clock: MockClock) -> None:
    script = [ModelFailure("rate_limit", retry_after=s) for s in (0, 12.25)]
    async with stage([*script, NETWORK, "ok"]) as on:
        assert delays(await on.play()) == [0, 12.25, 2]


@pytest.mark.parametrize("stated", [-1.0, float("nan"), float("inf")])
async def test_a_stated_delay_that_is_none_counts_for_nothing(
    autojump_clock: MockClock, stated: float
) -> None:
    async with stage([ModelFailure("rate_limit", retry_after=stated), "ok"]) as on:
        assert delays(await on.play()) == [0.5]


async def test_a_stated_delay_beyond_the_total_deadline_fails_the_step_at_once(
    autojump_clock: MockClock,
) -> None:
    script = [[Delay(2), ModelFailure("rate_limit", retry_after=9)]]
    async with stage(script, model_step_total_timeout_seconds=10) as on:
        events = await on.play()
    assert failed(events) == "model_unavailable"
    assert seconds(events, "run.failed") == [2]
    fits = [[Delay(2), ModelFailure("rate_limit", retry_after=70)], "ok"]
    async with stage(fits, model_step_total_timeout_seconds=100) as on:
        assert delays(await on.play()) == [70]


async def test_a_model_that_ignores_its_deadline_but_answers_is_believed(
    autojump_clock: MockClock,
) -> None:
    """A completion in hand outweighs a deadline that passes while the stream closes."""

    class Lingering(ScriptedModel):
        @asynccontextmanager
        async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelChunk]]:
            async with super().stream(request) as chunks:
                yield chunks
                await trio.sleep(60)

    async with stage(Lingering(["Hello."]), model_step_timeout_seconds=10) as on:
        assert types(await on.play())[-1] == "run.completed"
