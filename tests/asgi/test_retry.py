"""Retries over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import MockClock

from rungent import Identity
from rungent.llm import ModelFailure
from rungent.testing.asgi import AsgiResponse
from rungent.testing.scripted import Delay
from tests.asgi.apps import BOB, World, detail, world

DOWN: list[Any] = [ModelFailure("network")] * 4


async def failed(w: World) -> tuple[str, str]:
    """A session and its run that failed retryably."""
    session_id = await w.session()
    run_id = (await w.run(session_id)).json()["run_id"]
    await w.ended(run_id)
    return session_id, run_id


async def retry(w: World, run_id: str, **options: Any) -> AsgiResponse:
    return await w.client.request("POST", f"/runs/{run_id}/retry", **options)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"not json", b'{"input": "other"}', b"x" * 3_000_000]
)
async def test_a_retry_is_a_new_run_whatever_its_body(
    autojump_clock: MockClock, content: bytes
) -> None:
    async with world([*DOWN, "At last."]) as w:
        session_id, run_id = await failed(w)
        answer = await retry(w, run_id, content=content, headers={"content-type": "text/plain"})
        receipt = answer.json()
        assert answer.status == 202
        assert list(receipt) == ["run_id", "status", "retried_from"]
        assert (receipt["status"], receipt["retried_from"]) == ("running", run_id)
        assert receipt["run_id"] != run_id
        assert "idempotency-replayed" not in answer.headers
        await w.ended(receipt["run_id"])
        runs = (await w.client.request("GET", f"/sessions/{session_id}/runs")).json()
        assert [(run["id"], run["retried_from"]) for run in runs] == [
            (run_id, None),
            (receipt["run_id"], run_id),
        ]
        session = (await w.client.request("GET", f"/sessions/{session_id}")).json()
        assert [m["content"] for m in session["messages"]] == ["Hi", "At last."]


async def test_a_repeated_key_gets_the_retry_of_the_first_request(
    autojump_clock: MockClock,
) -> None:
    key = {"Idempotency-Key": " k "}
    async with world([*DOWN, [Delay(60), *DOWN[:1]], *DOWN]) as w:
        session_id, run_id = await failed(w)
        first = (await retry(w, run_id, headers=key)).json()
        again = await retry(w, run_id, headers={"Idempotency-Key": "k"})
        assert (again.status, again.json()) == (202, first)
        assert again.headers["idempotency-replayed"] == "true"
        busy = await retry(w, run_id, headers={"Idempotency-Key": "other"})
        assert (busy.status, detail(busy)["code"]) == (409, "run_not_retryable")
        create = await w.run(session_id, headers=key)
        assert (create.status, detail(create)) == (
            409,
            {
                "code": "idempotency_key_reused",
                "message": "The idempotency key was used for another request.",
                "run_id": first["run_id"],
            },
        )


async def test_what_cannot_be_retried_is_refused_with_its_status(
    autojump_clock: MockClock,
) -> None:
    async with world(["ok", [Delay(60), *DOWN[:1]]]) as w:
        session_id = await w.session()
        done = (await w.run(session_id)).json()["run_id"]
        await w.ended(done)
        answer = await retry(w, done)
        assert (answer.status, detail(answer)) == (
            409,
            {
                "code": "run_not_retryable",
                "message": "The run cannot be retried.",
                "status": "completed",
            },
        )
        running = (await w.run(session_id)).json()["run_id"]
        assert detail(await retry(w, running))["status"] == "running"
        await w.client.request("POST", f"/runs/{running}/cancel")
        assert detail(await retry(w, running))["status"] == "cancelled"


async def test_the_checks_run_in_the_documented_order(autojump_clock: MockClock) -> None:
    async with world([*DOWN, "ok"]) as w:
        _, run_id = await failed(w)
        done = (await w.run(await w.session())).json()["run_id"]
        await w.ended(done)
        await w.runtime.stop()
        unknown, long = "run_" + "0" * 32, {"Idempotency-Key": "k" * 201}
        refused: list[tuple[int, str, dict[str, str]]] = [
            (401, unknown, {**long, "x-user": "refused"}),
            (422, unknown, long),
            (404, unknown, {}),
            (404, run_id, BOB),
            (409, done, {}),
            (503, run_id, {}),
        ]
        for status, aim, headers in refused:
            answer = await retry(w, aim, headers=headers)
            assert answer.status == status
        assert (await w.client.request("PUT", f"/runs/{run_id}/retry")).status == 405
        run = await w.runtime.get_run(run_id, identity=Identity("ada"))
        assert (
            len((await w.runtime.list_session_runs(run.session_id, identity=Identity("ada")))[0])
            == 1
        )


async def test_a_full_queue_refuses_a_retry(autojump_clock: MockClock) -> None:
    options = {"max_concurrent_runs": 1, "max_queued_runs": 1}
    script: list[Any] = [*DOWN, [Delay(100), "x"], "y", "z"]
    script[4] = [Delay(1000), ModelFailure("network")]
    async with world(script, runtime_options=options) as w:
        _, run_id = await failed(w)
        for status in ("running", "queued"):
            assert (await w.run(await w.session())).json()["status"] == status
        answer = await retry(w, run_id)
        assert (answer.status, detail(answer)["code"]) == (429, "runtime_busy")
        assert int(answer.headers["retry-after"]) >= 1


async def test_the_context_factory_of_a_retry_gets_no_run(autojump_clock: MockClock) -> None:
    seen: list[Any] = []

    def factory(request: Any, session: Any, run: Any) -> dict[str, Any]:
        seen.append((session.id, run))
        return {}

    async with world([*DOWN, "ok"], context_factory=factory) as w:
        session_id, run_id = await failed(w)
        await w.ended((await retry(w, run_id)).json()["run_id"])
        assert seen == [(session_id, None)] * 2
