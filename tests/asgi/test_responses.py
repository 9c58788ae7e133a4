"""Answers over HTTP: what is accepted, what is refused in which order, and how streams go on."""

from __future__ import annotations

import http.client
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trio
from sqlalchemy import create_engine
from trio.testing import MockClock

from rungent import Agent, Identity, Run, Session, ToolCall, ToolContext, tool
from rungent.llm import ModelCompleted
from rungent.sqlalchemy import SQLAlchemyStore
from rungent.testing import ScriptedModel
from rungent.testing.asgi import AsgiResponse
from rungent.testing.scripted import Response
from tests.asgi.apps import ADA, BOB, World, detail, runtime_with, world
from tests.asgi.test_serve import serving

ASK = ModelCompleted(
    tool_calls=(
        ToolCall(
            "request_input",
            {"kind": "choice", "prompt": "Which?", "options": [{"id": "a", "label": "A"},
                                                               {"id": "b", "label": "B"}]},
        ),
    )
)  # fmt: skip
GOOD = {"selected": ["a"]}
DELETE = ModelCompleted(tool_calls=(ToolCall("delete", {"path": "a"}),))
MIB = 1_048_576


def deleting(done: list[str]) -> Agent:
    @tool(effect="destructive", approval="always", confirmation="Delete {path}?")
    async def delete(ctx: ToolContext, path: str) -> str:
        """Delete."""
        done.append(path)
        return "gone"

    return Agent("planner", "Plan.", tools=[delete])


@asynccontextmanager
async def asking(
    script: list[Response], **options: Any
) -> AsyncIterator[tuple[World, str, dict[str, Any]]]:
    """An application with a run that waits: its id and the announced question."""
    async with world(script, **options) as w:
        run_id = await w.started()
        yield w, run_id, (await stream(w, run_id))[-1]["data"]


async def stream(w: World, run_id: str, query: str = "") -> list[dict[str, Any]]:
    """The events of a stream that ends by itself."""
    answer = await w.client.request("GET", f"/runs/{run_id}/events/stream{query}")
    lines = [line for line in answer.body.decode().split("\n") if line.startswith("data: ")]
    return [json.loads(line[6:]) for line in lines]


async def respond(w: World, run_id: str, question: Any, value: Any, **options: Any) -> AsgiResponse:
    body = {"interaction_id": question["id"], "value": value}
    return await w.client.request("POST", f"/runs/{run_id}/responses", json=body, **options)


async def state_of(w: World, run_id: str) -> Any:
    run = await w.runtime.get_run(run_id, identity=Identity("ada"))
    return run, await w.runtime.get_run_events(run_id, identity=Identity("ada"))


async def test_a_stream_ends_at_a_question_and_goes_on_after_the_answer(
    autojump_clock: MockClock,
) -> None:
    async with asking([ASK, "Thanks."]) as (w, run_id, question):
        first = await stream(w, run_id)
        assert [event["type"] for event in first][-1] == "interaction.requested"
        seq = first[-1]["seq"]
        assert await stream(w, run_id, f"?after_seq={seq}") == []
        answer = await respond(w, run_id, question, GOOD)
        assert (answer.status, answer.json()) == (202, {"run_id": run_id, "status": "running"})
        rest = await stream(w, run_id, f"?after_seq={seq}")
        assert (rest[0]["type"], rest[-1]["type"]) == ("interaction.resolved", "run.completed")
        assert [e["seq"] for e in first + rest] == list(range(1, len(first + rest) + 1))
        assert await stream(w, run_id) == first + rest


async def test_a_stream_until_the_end_stays_open_over_a_question(
    autojump_clock: MockClock,
) -> None:
    async with asking([ASK, "Thanks."]) as (w, run_id, question):
        seen: list[dict[str, Any]] = []

        async def follow() -> None:
            seen.extend(await stream(w, run_id, "?until=terminal"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await trio.sleep(60)
            assert seen == []
            await respond(w, run_id, question, GOOD)
        assert seen[-1]["type"] == "run.completed"


async def test_a_repetition_is_accepted_and_another_answer_refused(
    autojump_clock: MockClock,
) -> None:
    async with asking([ASK, "Thanks."]) as (w, run_id, question):
        await respond(w, run_id, question, GOOD)
        await w.ended(run_id)
        before = await state_of(w, run_id)
        again = await respond(w, run_id, question, {"selected": ["a"], "custom": " "})
        assert (again.status, again.json()) == (202, {"run_id": run_id, "status": "completed"})
        for value in ({"selected": ["b"]}, None, "a"):
            other = await respond(w, run_id, question, value)
            assert other.status == 409
            assert detail(other) == {
                "code": "interaction_already_resolved",
                "message": "The interaction was already resolved.",
                "outcome": "answered",
            }
        assert await state_of(w, run_id) == before


@pytest.mark.parametrize(
    ("value", "reason", "path"),
    [
        (None, "type_mismatch", []),
        ({"selected": ["a", 5]}, "type_mismatch", ["selected", 1]),
        ({"selected": ["z"]}, "unknown_option", ["selected", 0]),
        ({}, "empty_answer", []),
    ],
)
async def test_a_value_that_breaks_a_rule_is_refused_with_its_place(
    autojump_clock: MockClock, value: Any, reason: str, path: list[str | int]
) -> None:
    async with asking([ASK]) as (w, run_id, question):
        before = await state_of(w, run_id)
        answer = await respond(w, run_id, question, value)
        problem = detail(answer)
        assert answer.status == 422
        assert list(problem) == ["code", "message", "reason", "path"]
        assert (problem["code"], problem["reason"], problem["path"]) == (
            "invalid_response",
            reason,
            path,
        )
        assert await state_of(w, run_id) == before


async def test_an_invented_decision_is_refused(autojump_clock: MockClock) -> None:
    done: list[str] = []
    options = {"agents": [deleting(done)]}
    async with asking([DELETE, "Kept."], runtime_options=options) as (w, run_id, question):
        for value in (None, 1, "yes", {"selected": ["approve", "all"]}):
            answer = await respond(w, run_id, question, value)
            assert (answer.status, detail(answer)["reason"]) == (422, "invalid_decision")
        assert (await respond(w, run_id, question, False)).status == 202
        await w.ended(run_id)
        assert done == []


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        ({}, ["body", "interaction_id"]),
        ({"interaction_id": "int_x"}, ["body", "value"]),
        ({"value": 1}, ["body", "interaction_id"]),
        ({"interaction_id": None, "value": 1}, ["body", "interaction_id"]),
        ({"interaction_id": 5, "value": 1}, ["body", "interaction_id"]),
        ({"interaction_id": ["int_x"], "value": 1}, ["body", "interaction_id"]),
    ],
)
async def test_both_keys_are_required(autojump_clock: MockClock, body: Any, loc: list[str]) -> None:
    async with asking([ASK]) as (w, run_id, _):
        path = f"/runs/{run_id}/responses"
        answer = await w.client.request("POST", path, json=body)
        assert (answer.status, detail(answer)["code"]) == (422, "invalid_request")
        assert loc in [error["loc"] for error in detail(answer)["errors"]]


async def test_the_checks_run_in_the_documented_order(autojump_clock: MockClock) -> None:
    """Each request breaks one rule less than the one before it."""
    async with asking([ASK, "Thanks.", ASK]) as (w, old, answered):
        await respond(w, old, answered, GOOD)
        await w.ended(old)
        run_id = await w.started()
        question = (await stream(w, run_id))[-1]["data"]
        await w.runtime.stop()
        unknown, known = f"/runs/run_{'0' * 32}/responses", f"/runs/{run_id}/responses"
        nobody, plain = {"x-user": "refused"}, {"content-type": "text/plain"}
        typed = {"content-type": "application/json"}

        def body(interaction_id: object, value: object) -> bytes:
            return json.dumps({"interaction_id": interaction_id, "value": value}).encode()

        large, bad = b"[" * 2 * MIB, b"{}"
        foreign, wrong = body(answered["id"], None), body(question["id"], None)
        right = body(question["id"], GOOD)
        steps: list[tuple[int, str, str, str, bytes, dict[str, str]]] = [
            (405, "method_not_allowed", "PUT", unknown, large, {**nobody, **plain}),
            (401, "unauthenticated", "POST", unknown, large, {**nobody, **plain}),
            (415, "unsupported_media_type", "POST", unknown, large, plain),
            (413, "payload_too_large", "POST", unknown, large, typed),
            (422, "invalid_request", "POST", unknown, bad, typed),
            (404, "not_found", "POST", unknown, foreign, typed),
            (404, "not_found", "POST", known, foreign, {**typed, **BOB}),
            (409, "interaction_mismatch", "POST", known, foreign, typed),
            (422, "invalid_response", "POST", known, wrong, typed),
            (503, "shutting_down", "POST", known, right, typed),
        ]
        before = await state_of(w, run_id)
        for status, code, method, path, content, headers in steps:
            answer = await w.client.request(method, path, content=content, headers=headers)
            assert (answer.status, detail(answer)["code"]) == (status, code)
            if status == 503:
                assert int(answer.headers["retry-after"]) >= 1
        assert await state_of(w, run_id) == before


async def test_foreign_and_unknown_runs_look_alike_and_states_are_told(
    autojump_clock: MockClock,
) -> None:
    async with asking([ASK, "Thanks."]) as (w, run_id, question):
        foreign = await respond(w, run_id, question, GOOD, headers=BOB)
        unknown = await respond(w, "run_" + "0" * 32, question, GOOD, headers=BOB)
        assert foreign.status == unknown.status == 404
        assert foreign.body == unknown.body
        mismatch = await respond(w, run_id, {"id": "int_forged"}, GOOD)
        assert (mismatch.status, detail(mismatch)) == (
            409,
            {
                "code": "interaction_mismatch",
                "message": "Another interaction is pending.",
                "interaction_id": question["id"],
            },
        )
        await respond(w, run_id, question, GOOD)
        await w.ended(run_id)
        late = await respond(w, run_id, {"id": "int_forged"}, GOOD)
        assert (late.status, detail(late)) == (
            409,
            {
                "code": "run_not_waiting",
                "message": "The run is not waiting for this.",
                "status": "completed",
            },
        )


async def test_the_context_factory_gets_the_run_before_the_answer_is_stored(
    autojump_clock: MockClock,
) -> None:
    seen: list[Any] = []

    async def factory(request: Any, session: Session, run: Run | None) -> dict[str, Any]:
        stored = None if run is None else await w.runtime.get_run(run.id, identity=Identity("ada"))
        seen.append((session.id, run and run.id, stored and stored.status.value))
        return {"user": request.headers["x-user"]}

    deps: list[Any] = []

    async def context(ctx: ToolContext) -> str:
        deps.append(dict(ctx.deps))
        return ""

    agents = [Agent("planner", "Plan.", context=context)]
    async with world(
        [ASK, "Thanks."], runtime_options={"agents": agents}, context_factory=factory
    ) as w:
        session_id = await w.session()
        run_id = (await w.run(session_id)).json()["run_id"]
        question = (await stream(w, run_id))[-1]["data"]
        await respond(w, run_id, question, GOOD)
        await w.ended(run_id)
        assert seen == [(session_id, None, None), (session_id, run_id, "waiting_input")]
        assert deps == [{"user": "ada"}] * 2
        await respond(w, run_id, question, GOOD, headers=BOB)
        bad = await w.client.request("POST", f"/runs/{run_id}/responses", json={})
        assert (bad.status, len(seen)) == (422, 2)


async def test_the_client_may_go_away_after_its_answer(autojump_clock: MockClock) -> None:
    async with asking([ASK, "Thanks."]) as (w, run_id, question):
        with trio.move_on_after(0):
            await respond(w, run_id, question, GOOD)
        answer = await respond(w, run_id, question, GOOD)
        assert answer.status == 202
        await w.ended(run_id)
        assert (await state_of(w, run_id))[0].status == "completed"


# --- many clients at once -----------------------------------------------------------------------

CLIENTS = 8


def ask_over_socket(url: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    parts = urlsplit(url)
    wire = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=120)
    try:
        headers = {**ADA, "content-type": "application/json"}
        wire.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = wire.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        wire.close()


async def test_of_many_browsers_that_decide_at_once_one_decides(tmp_path: Path) -> None:
    """Real threads, sockets and SQLite: one effect, equal decisions accepted, others refused."""
    done: list[str] = []
    store = SQLAlchemyStore(create_engine(f"sqlite:///{tmp_path / 'runs.db'}"))
    await store.create_schema()
    rounds = 4
    script: list[Response] = [DELETE, "Settled."] * rounds
    runtime = runtime_with(ScriptedModel(script), store=store, agents=[deleting(done)])
    limiter = trio.CapacityLimiter(CLIENTS)

    async def call(method: str, path: str, body: Any = None) -> tuple[int, Any]:
        return await trio.to_thread.run_sync(
            ask_over_socket, url, method, path, body, limiter=limiter
        )

    async with serving(runtime) as url:
        expected = 0
        for _ in range(rounds):
            session_id = (await call("POST", "/sessions", {}))[1]["id"]
            run_id = (await call("POST", f"/sessions/{session_id}/runs", {"input": "Hi"}))[1][
                "run_id"
            ]
            requested = [
                event
                async for event in runtime.stream_events(run_id, identity=Identity("ada"))
                if event.type == "interaction.requested"
            ]
            verdicts: list[tuple[bool, int, Any]] = []

            async def decide(value: bool, run_id: str, interaction_id: str, into: Any) -> None:
                body = {"interaction_id": interaction_id, "value": value}
                into.append((value, *await call("POST", f"/runs/{run_id}/responses", body)))

            async with trio.open_nursery() as nursery:
                for number in range(CLIENTS):
                    nursery.start_soon(
                        decide, number % 2 == 0, run_id, requested[0].data["id"], verdicts
                    )
            events = [
                event
                async for event in runtime.stream_events(
                    run_id, identity=Identity("ada"), until="terminal"
                )
            ]
            (resolved,) = [e.data for e in events if e.type == "interaction.resolved"]
            approved = resolved["outcome"] == "approved"
            assert len(verdicts) == CLIENTS
            for value, status, body in verdicts:
                assert status == (202 if value == approved else 409)
                if status == 409:
                    assert body["detail"]["code"] == "interaction_already_resolved"
                    assert body["detail"]["outcome"] == resolved["outcome"]
            expected += approved
            assert events[-1].type == "run.completed"
        assert len(done) == expected
