"""Runs and their events over HTTP."""

from __future__ import annotations

import contextvars
import re
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from rungent import Identity, Run, Session
from rungent.llm import ModelCompleted
from rungent.testing import Delay
from rungent.testing.scripted import Response
from tests.asgi.apps import GatedModel, detail, world

CANARY: contextvars.ContextVar[str] = contextvars.ContextVar("canary", default="unset")


async def test_a_run_is_accepted_at_once_and_listed_with_the_documented_keys(
    autojump_clock: MockClock,
) -> None:
    async with world([[Delay(1000), ModelCompleted("Rome.")]]) as w:
        session_id = await w.session()
        answer = await w.run(session_id)
        assert trio.current_time() < 1
        receipt = answer.json()
        assert (answer.status, receipt["status"]) == (202, "running")
        assert list(receipt) == ["run_id", "status"]
        assert "idempotency-replayed" not in answer.headers
        await w.ended(receipt["run_id"])
        (run,) = (await w.client.request("GET", f"/sessions/{session_id}/runs")).json()
        assert list(run) == [
            "id",
            "session_id",
            "status",
            "event_seq",
            "model_steps",
            "retried_from",
            "created_at",
            "updated_at",
        ]
        assert (run["id"], run["status"], run["model_steps"]) == (
            receipt["run_id"],
            "completed",
            1,
        )


async def test_runs_are_listed_page_by_page_oldest_first(autojump_clock: MockClock) -> None:
    async with world(["1", "2", "3"]) as w:
        session_id, made = await w.session(), list[str]()
        for _ in range(3):
            made.append((await w.run(session_id)).json()["run_id"])
            await w.ended(made[-1])
        path = f"/sessions/{session_id}/runs"
        first = await w.client.request("GET", f"{path}?limit=2")
        link = re.fullmatch(r'<(.+)>; rel="next"', first.headers["link"])
        assert link is not None
        second = await w.client.request("GET", link[1])
        assert [run["id"] for run in first.json() + second.json()] == made
        assert "link" not in second.headers


async def test_a_busy_session_refuses_at_once(autojump_clock: MockClock) -> None:
    async with world([[Delay(50), ModelCompleted("done")]]) as w:
        session_id = await w.session()
        run_id = (await w.run(session_id)).json()["run_id"]
        answer = await w.run(session_id)
        assert trio.current_time() < 1
        assert answer.status == 409
        assert detail(answer) == {
            "code": "active_run_conflict",
            "message": "The session has an active run.",
            "run_id": run_id,
            "status": "running",
        }


async def test_a_repeated_key_gets_the_run_of_the_first_request(autojump_clock: MockClock) -> None:
    key = {"Idempotency-Key": " k1 "}
    async with world(["done"]) as w:
        session_id = await w.session()
        first = await w.run(session_id, " Hi ", headers=key)
        again = await w.run(session_id, "Hi", headers={"Idempotency-Key": "k1"})
        assert again.status == 202
        assert again.json()["run_id"] == first.json()["run_id"]
        assert again.headers["idempotency-replayed"] == "true"
        await w.ended(first.json()["run_id"])
        late = await w.run(session_id, headers=key)
        assert late.json() == {"run_id": first.json()["run_id"], "status": "completed"}
        other = await w.run(session_id, "Ho", headers=key)
        assert (other.status, detail(other)["code"]) == (409, "idempotency_key_reused")
        assert detail(other)["run_id"] == first.json()["run_id"]


@pytest.mark.parametrize("key", ["", "   ", "k" * 201])
async def test_a_key_of_the_wrong_length_is_refused(autojump_clock: MockClock, key: str) -> None:
    async with world() as w:
        session_id = await w.session()
        answer = await w.run(session_id, headers={"Idempotency-Key": key})
        assert (answer.status, detail(answer)["code"]) == (422, "invalid_request")
        assert detail(answer)["errors"][0]["loc"] == ["header", "idempotency-key"]
        assert (await w.client.request("GET", f"/sessions/{session_id}/runs")).json() == []


async def test_the_longest_input_is_the_runtimes(autojump_clock: MockClock) -> None:
    async with world(["ok"], runtime_options={"max_input_chars": 5}) as w:
        session_id = await w.session()
        refused = await w.run(session_id, "123456")
        assert refused.status == 422
        assert detail(refused)["errors"][0]["loc"] == ["body", "input"]
        assert (await w.run(session_id, " 12345 ")).status == 202


async def test_too_many_queued_runs_are_refused_with_a_time_to_come_back(
    autojump_clock: MockClock,
) -> None:
    script: list[Response] = [[Delay(5), ModelCompleted("done")] for _ in range(2)]
    options = {"max_concurrent_runs": 1, "max_queued_runs": 1}
    async with world(script, runtime_options=options) as w:
        first = await w.run(await w.session())
        second = await w.run(await w.session())
        assert (first.json()["status"], second.json()["status"]) == ("running", "queued")
        third = await w.run(await w.session())
        assert (third.status, detail(third)["code"]) == (429, "runtime_busy")
        assert int(third.headers["retry-after"]) >= 1


async def test_a_stopped_runtime_refuses_runs_and_still_reads(autojump_clock: MockClock) -> None:
    async with world() as w:
        session_id = await w.session()
        await w.runtime.stop()
        refused = await w.run(session_id)
        assert (refused.status, detail(refused)["code"]) == (503, "shutting_down")
        assert int(refused.headers["retry-after"]) >= 1
        assert (await w.client.request("GET", f"/sessions/{session_id}")).status == 200


async def test_cancel_ends_the_run_and_may_be_repeated(autojump_clock: MockClock) -> None:
    async with world([[Delay(50), ModelCompleted("done")]]) as w:
        run_id = await w.started()
        for body in (b"", b"{not json"):
            answer = await w.client.request("POST", f"/runs/{run_id}/cancel", content=body)
            assert answer.status == 200
            assert answer.json() == {"id": run_id, "run_id": run_id, "status": "cancelled"}
        events = (await w.client.request("GET", f"/runs/{run_id}/events")).json()
        assert [e["type"] for e in events].count("run.cancelled") == 1


async def test_events_are_read_page_by_page(autojump_clock: MockClock) -> None:
    async with world(["Rome."]) as w:
        run_id = await w.started()
        await w.ended(run_id)
        whole = (await w.client.request("GET", f"/runs/{run_id}/events")).json()
        assert [event["seq"] for event in whole] == list(range(1, len(whole) + 1))
        assert list(whole[0]) == [
            "v",
            "id",
            "seq",
            "type",
            "session_id",
            "run_id",
            "created_at",
            "data",
        ]
        found: list[dict[str, Any]] = []
        path: str | None = f"/runs/{run_id}/events?limit=2"
        while path is not None:
            answer = await w.client.request("GET", path)
            found += answer.json()
            link = re.fullmatch(r'<(.+)>; rel="next"', answer.headers.get("link", ""))
            path = link[1] if link else None
            if link is not None:
                assert f"after_seq={found[-1]['seq']}&limit=2" in link[1]
        assert found == whole
        full = await w.client.request("GET", f"/runs/{run_id}/events?limit={len(whole)}")
        assert "link" not in full.headers


@pytest.mark.parametrize("after", ["5000000000", "99999999999999999999"])
async def test_a_number_beyond_every_log_finds_nothing(
    autojump_clock: MockClock, after: str
) -> None:
    async with world(["Rome."]) as w:
        run_id = await w.started()
        await w.ended(run_id)
        for path in ("events", "events/stream"):
            answer = await w.client.request("GET", f"/runs/{run_id}/{path}?after_seq={after}")
            assert answer.status == 200
            assert b'"seq"' not in answer.body


async def test_the_context_factory_is_asked_with_the_session_before_anything_is_stored(
    autojump_clock: MockClock,
) -> None:
    seen: list[tuple[str, Run | None]] = []

    async def deps(request: object, session: Session, run: Run | None) -> dict[str, Any]:
        del request
        await trio.lowlevel.checkpoint()
        seen.append((session.id, run))
        if len(seen) == 2:
            raise OSError("canary")
        return {"x": 1} if len(seen) == 1 else cast("dict[str, Any]", [])

    async with world(["ok"], context_factory=deps) as w:
        session_id = await w.session()
        run_id = (await w.run(session_id)).json()["run_id"]
        await w.ended(run_id)
        assert seen == [(session_id, None)]
        assert (await w.run(session_id, "")).status == 422
        assert len(seen) == 1
        for _ in range(2):
            broken = await w.run(session_id)
            assert (broken.status, detail(broken)["code"]) == (500, "internal_error")
            assert b"canary" not in broken.body
        runs = (await w.client.request("GET", f"/sessions/{session_id}/runs")).json()
        assert [run["id"] for run in runs] == [run_id]


async def test_the_context_variables_of_a_request_are_not_visible_in_its_run(
    autojump_clock: MockClock,
) -> None:
    seen: list[str] = []

    def identify(request: object) -> Identity:
        del request
        CANARY.set("of the request")
        return Identity("ada")

    def reply(request: object) -> str:
        del request
        seen.append(CANARY.get())
        return "ok"

    async with world([reply], identity_resolver=identify) as w:
        await w.ended(await w.started())
    assert seen == ["unset"]


async def test_a_run_outlives_the_request_that_created_it(autojump_clock: MockClock) -> None:
    model = GatedModel()
    async with world(model) as w:
        run_id = await w.started()
        await model.asked.wait()
        model.gate.set()
        await w.ended(run_id)
        assert (await w.runtime.get_run(run_id, identity=Identity("ada"))).status == "completed"
