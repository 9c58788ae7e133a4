"""Sessions over HTTP."""

from __future__ import annotations

import re
from typing import Any

from trio.testing import MockClock

from rungent.testing import ScriptedModel
from rungent.testing.asgi import AsgiClient
from tests.asgi.apps import ADA, BOB, app_of, detail, runtime_with, world

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


async def test_a_new_session_has_exactly_the_documented_keys(autojump_clock: MockClock) -> None:
    async with world() as w:
        body = {"agent": "other", "title": " Rome ", "resource": {"trip": "Ω"}, "more": 1}
        answer = await w.client.request("POST", "/sessions", json=body)
        session = answer.json()
        assert answer.status == 200
        assert answer.headers["content-type"] == "application/json"
        assert list(session) == [
            "id",
            "agent_name",
            "subject_id",
            "tenant_id",
            "title",
            "resource",
            "created_at",
            "updated_at",
        ]
        assert (session["agent_name"], session["title"]) == ("other", "Rome")
        assert (session["subject_id"], session["tenant_id"]) == ("ada", None)
        assert "Ω".encode() in answer.body
        assert TIME.fullmatch(session["created_at"])
        assert TIME.fullmatch(session["updated_at"])


async def test_a_session_needs_no_body_and_gets_the_default_agent(
    autojump_clock: MockClock,
) -> None:
    async with world() as w:
        answer = await w.client.request("POST", "/sessions")
        assert answer.json()["agent_name"] == "planner"
        assert answer.json()["resource"] == {}
        assert answer.json()["title"] is None


async def test_an_unknown_agent_is_not_found_after_the_shape_was_checked(
    autojump_clock: MockClock,
) -> None:
    async with world() as w:
        unknown = await w.client.request("POST", "/sessions", json={"agent": "nobody"})
        assert (unknown.status, detail(unknown)["code"]) == (404, "not_found")
        both = await w.client.request("POST", "/sessions", json={"agent": "nobody", "title": " "})
        assert both.status == 422


async def test_a_title_is_set_and_cleared(autojump_clock: MockClock) -> None:
    async with world() as w:
        path = f"/sessions/{await w.session(title='one')}"
        changed = await w.client.request("PATCH", path, json={"title": "two"})
        assert (changed.status, changed.json()["title"]) == (200, "two")
        assert (await w.client.request("GET", path)).json()["title"] == "two"
        for body in ({"title": None}, {}):
            await w.client.request("PATCH", path, json={"title": "x"})
            assert (await w.client.request("PATCH", path, json=body)).json()["title"] is None
        assert (await w.client.request("PATCH", path)).status == 422


async def test_a_session_shows_user_messages_and_final_answers_only(
    autojump_clock: MockClock,
) -> None:
    async with world(["Rome."]) as w:
        session_id = await w.session()
        run_id = (await w.run(session_id, "Where?")).json()["run_id"]
        await w.ended(run_id)
        body = (await w.client.request("GET", f"/sessions/{session_id}")).json()
        said = [(m["role"], m["content"], m["run_id"]) for m in body["messages"]]
        assert said == [("user", "Where?", run_id), ("assistant", "Rome.", run_id)]
        assert list(body["messages"][0]) == ["id", "run_id", "role", "content", "created_at"]


async def test_sessions_are_listed_page_by_page_newest_first(autojump_clock: MockClock) -> None:
    async with world() as w:
        made = [await w.session(title=str(n)) for n in range(5)]
        await w.client.request("POST", "/sessions", headers=BOB)
        found: list[str] = []
        path: str | None = "/sessions?limit=2"
        sizes: list[int] = []
        while path is not None:
            answer = await w.client.request("GET", path)
            sizes.append(len(answer.json()))
            found += [session["id"] for session in answer.json()]
            link = answer.headers.get("link")
            match = re.fullmatch(r'<(/sessions\?[^>]+)>; rel="next"', link) if link else None
            path = match[1] if match else None
        assert found == made[::-1]
        assert sizes == [2, 2, 1]


async def test_a_full_last_page_announces_no_further_one(autojump_clock: MockClock) -> None:
    async with world() as w:
        for _ in range(2):
            await w.session()
        assert "link" not in (await w.client.request("GET", "/sessions?limit=2")).headers


async def test_links_carry_the_prefix_and_the_mount_point(autojump_clock: MockClock) -> None:
    runtime = runtime_with(ScriptedModel([]))
    app = app_of(runtime, url_prefix="/api")
    async with AsgiClient(app, headers=ADA, root_path="/host") as client:
        for _ in range(2):
            assert (await client.request("POST", "/api/sessions")).status == 200
        answer = await client.request("GET", "/api/sessions?limit=1")
        assert answer.headers["link"].startswith("</host/api/sessions?limit=1&cursor=")


async def test_a_foreign_id_and_an_unknown_id_cannot_be_told_apart(
    autojump_clock: MockClock,
) -> None:
    async with world(["Rome."]) as w:
        session_id = await w.session()
        run_id = (await w.run(session_id)).json()["run_id"]
        await w.ended(run_id)
        calls = [
            ("GET", "/sessions/{}", session_id, None),
            ("PATCH", "/sessions/{}", session_id, {"title": "mine"}),
            ("GET", "/sessions/{}/runs", session_id, None),
            ("POST", "/sessions/{}/runs", session_id, {"input": "Hi"}),
            ("GET", "/runs/{}/events", run_id, None),
            ("GET", "/runs/{}/events/stream", run_id, None),
            ("POST", "/runs/{}/cancel", run_id, None),
        ]
        nowhere = await w.client.request("GET", "/nowhere")
        for method, path, known, body in calls:
            options: dict[str, Any] = {} if body is None else {"json": body}
            unknown = known[:4] + "0" * 32
            answers = [
                await w.client.request(method, path.format(known), headers=BOB, **options),
                await w.client.request(method, path.format(unknown), headers=BOB, **options),
                await w.client.request(method, path.format(unknown), **options),
                nowhere,
            ]
            assert {answer.status for answer in answers} == {404}, path
            assert len({answer.body for answer in answers}) == 1, path
        assert (await w.client.request("GET", f"/sessions/{session_id}")).json()["title"] is None
