"""Trying a failed run again."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from rungent import (
    ActiveRunConflict,
    IdempotencyKeyReused,
    Identity,
    InvalidRequest,
    NotFound,
    RunNotRetryable,
    ShuttingDown,
)
from rungent.llm.port import ModelFailure
from rungent.store import Store
from tests.helpers import OWNER, Stage, asking, calls, stage
from tests.pauses.shop import Shop, answer, ask, asked, finish

DOWN = [ModelFailure("network")] * 4


async def retry(on: Stage, run_id: str, key: str | None = None) -> str:
    receipt = await on.runtime.retry_run(run_id, identity=OWNER, idempotency_key=key)
    assert receipt.retried_from == run_id
    return receipt.run_id


async def test_a_retry_goes_on_from_the_transcript_with_a_fresh_budget(
    autojump_clock: MockClock, store: Store
) -> None:
    shop = Shop()
    script = [calls("note"), *DOWN, calls("note"), *DOWN, "At last."]
    async with stage(script, tools=shop.tools(), store=store, max_model_steps=2) as on:
        first = await on.start("Note it.")
        await finish(on, first, "failed")
        second = await retry(on, first)
        await finish(on, second, "failed")
        third = await retry(on, second)
        await finish(on, third)
        runs = [await on.run(run_id) for run_id in (first, second, third)]
        assert [run.retried_from for run in runs] == [None, first, second]
        assert len({run.input_message_id for run in runs}) == 1
        assert [run.model_steps for run in runs] == [2, 2, 1]
        assert [m.content for m in await on.messages() if m.role == "user"] == ["Note it."]
        # Repetitions are suppressed within one run only.
        assert shop.names == ["note", "note"]


async def test_only_the_newest_run_that_failed_retryably_is_retried(
    autojump_clock: MockClock, store: Store
) -> None:
    rejected = ModelFailure("provider_error", terminal=True)
    script = [*DOWN, "ok", rejected, asking(ask()), *DOWN, "fine"]
    async with stage(script, store=store) as on:

        async def refused(run_id: str, status: str) -> None:
            with pytest.raises(RunNotRetryable) as wrong:
                await retry(on, run_id)
            assert wrong.value.status == status

        old = await on.start()
        await finish(on, old, "failed")
        good = await on.start()
        await finish(on, good)
        bad = await on.start()
        await finish(on, bad, "failed")
        for run_id, status in ((old, "failed"), (good, "completed"), (bad, "failed")):
            await refused(run_id, status)
        waiting, _ = await asked(on)
        await refused(waiting, "waiting_input")
        await on.cancel(waiting)
        await refused(waiting, "cancelled")
        newest = await on.start()
        await finish(on, newest, "failed")
        again = await retry(on, newest)
        await refused(newest, "failed")
        await finish(on, again)
        await refused(newest, "failed")
        assert on.model.remaining == 0


async def test_a_key_makes_a_retry_repeatable(autojump_clock: MockClock, store: Store) -> None:
    script = [*DOWN, asking(ask()), "fine"]
    async with stage(script, store=store) as on:
        run_id = await on.start("hi", idempotency_key="create")
        await finish(on, run_id, "failed")
        again = await retry(on, run_id, " k ")
        receipt = await on.runtime.retry_run(run_id, identity=OWNER, idempotency_key="k")
        assert (receipt.run_id, receipt.replayed, receipt.retried_from) == (again, True, run_id)
        for key in ("create",):
            with pytest.raises(IdempotencyKeyReused) as reused:
                await retry(on, run_id, key)
            assert reused.value.run_id == run_id
        with pytest.raises(IdempotencyKeyReused):
            await on.start("hi", idempotency_key="k")
        with pytest.raises(InvalidRequest):
            await retry(on, run_id, " ")
        with pytest.raises(RunNotRetryable):
            await retry(on, run_id, "other")
        with pytest.raises(ActiveRunConflict):
            await on.start("more")
        events = await on.until(again, "interaction.requested")
        await answer(on, again, events[-1].data, "x")
        await finish(on, again)
        receipt = await on.runtime.retry_run(run_id, identity=OWNER, idempotency_key="k")
        assert (receipt.run_id, receipt.status) == (again, "completed")


async def test_retries_are_refused_to_strangers_and_while_stopped(
    autojump_clock: MockClock,
) -> None:
    async with stage([*DOWN]) as on:
        run_id = await on.start()
        await finish(on, run_id, "failed")
        for aim, who in ((run_id, Identity("bob")), ("run_" + "0" * 32, OWNER)):
            with pytest.raises(NotFound):
                await on.runtime.retry_run(aim, identity=who)
        await on.runtime.stop()
        with pytest.raises(ShuttingDown):
            await retry(on, run_id)
        assert len(await on.store.list_runs(on.session.id, limit=10)) == 1
