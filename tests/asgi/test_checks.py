"""What is refused, in which order, and that a refusal changes nothing."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
import trio
from quart import Request, abort
from trio.testing import MockClock

from rungent import Identity
from rungent.testing import ScriptedModel
from rungent.testing.asgi import AsgiClient, AsgiResponse
from tests.asgi.apps import ADA, World, app_of, detail, runtime_with, world

JSON = {"content-type": "application/json"}
MIB = 1_048_576

# Path templates of every route, with the methods it has.
ROUTES: dict[str, tuple[str, ...]] = {
    "/sessions": ("GET", "POST"),
    "/sessions/{session}": ("GET", "PATCH"),
    "/sessions/{session}/runs": ("GET", "POST"),
    "/runs/{run}/events": ("GET",),
    "/runs/{run}/events/stream": ("GET",),
    "/runs/{run}/responses": ("POST",),
    "/runs/{run}/retry": ("POST",),
    "/runs/{run}/cancel": ("POST",),
}
WITH_BODY = [
    ("POST", "/sessions"),
    ("PATCH", "/sessions/{session}"),
    ("POST", "/sessions/{session}/runs"),
    ("POST", "/runs/{run}/responses"),
]
METHODS = ("CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE", "BREW")

BAD_BODIES: dict[str, bytes] = {
    "array": b"[]",
    "string": b'"text"',
    "number": b"1",
    "null": b"null",
    "truncated": b'{"input": "Hi"',
    "two values": b"{} {}",
    "trailing comma": b'{"input": "Hi",}',
    "byte order mark": b'\xef\xbb\xbf{"input": "Hi"}',
    "NaN": b'{"input": "Hi", "title": "t", "x": NaN}',
    "infinity": b'{"input": "Hi", "title": "t", "x": -Infinity}',
    "too large a number": b'{"input": "Hi", "title": "t", "x": 1e999}',
    "too many digits": b'{"input": "Hi", "title": "t", "x": ' + b"9" * 5000 + b"}",
    "invalid UTF-8": b'{"input": "\xff\xfe", "title": "\xff"}',
    "UTF-16": '{"input": "Hi"}'.encode("utf-16"),
    "deep arrays": b'{"input": "Hi", "x": ' + b"[" * 70 + b"]" * 70 + b"}",
    "very deep arrays": b"[" * 100_000 + b"]" * 100_000,
    "very deep objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "unclosed depth": b"[" * 200_000,
    "whitespace": b"   ",
    "NUL": b"\x00",
    "wrong types": b'{"input": 1, "title": 2, "agent": [], "resource": null, "if_active": {}}',
    "empty texts": b'{"input": " ", "title": " ", "agent": 1}',
    "long texts": json.dumps({"input": "x" * 65_537, "title": "x" * 201}).encode(),
    "large resource": json.dumps(
        {"resource": {"x": "y" * 16_384}, "title": 1, "input": ""}
    ).encode(),
}


async def filled(w: World) -> dict[str, str]:
    """A session and an ended run to aim at."""
    session_id = await w.session(title="kept", resource={"k": 1.5})
    run_id = str((await w.run(session_id)).json()["run_id"])
    await w.ended(run_id)
    return {"session": session_id, "run": run_id}


async def everything(w: World, ids: dict[str, str]) -> list[Any]:
    """All that a refused request could have changed."""
    paths = ("/sessions", "/sessions/{session}", "/sessions/{session}/runs", "/runs/{run}/events")
    answers = [await w.client.request("GET", path.format(**ids)) for path in paths]
    return [answer.json() for answer in answers]


@pytest.mark.parametrize("case", BAD_BODIES)
async def test_bad_bodies_are_refused_and_change_nothing(
    autojump_clock: MockClock, case: str
) -> None:
    async with world(["ok"]) as w:
        ids = await filled(w)
        before = await everything(w, ids)
        for method, path in WITH_BODY:
            answer = await w.client.request(
                method, path.format(**ids), content=BAD_BODIES[case], headers=JSON
            )
            assert answer.status == 422, (method, path, answer.body)
            assert detail(answer)["code"] == "invalid_request"
            for error in detail(answer)["errors"]:
                assert set(error) == {"loc", "msg", "type"}
                assert error["loc"][0] == "body"
        assert await everything(w, ids) == before


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-json", "application/jsonp"])
async def test_a_body_of_another_type_is_refused(autojump_clock: MockClock, kind: str) -> None:
    async with world(["ok"]) as w:
        ids = await filled(w)
        before = await everything(w, ids)
        headers = {"content-type": kind} if kind else {}
        for method, path in WITH_BODY:
            answer = await w.client.request(
                method, path.format(**ids), content=b'{"input": "Hi"}', headers=headers
            )
            assert (answer.status, detail(answer)["code"]) == (415, "unsupported_media_type")
        assert await everything(w, ids) == before


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON"])
async def test_the_json_type_may_have_parameters_and_any_case(
    autojump_clock: MockClock, kind: str
) -> None:
    async with world() as w:
        answer = await w.client.request(
            "POST", "/sessions", content=b"{}", headers={"content-type": kind}
        )
        assert answer.status == 200


@pytest.mark.parametrize("pieces", [1, 7])
async def test_a_body_above_the_limit_is_read_and_refused(
    autojump_clock: MockClock, pieces: int
) -> None:
    async with world(["ok"]) as w:
        ids = await filled(w)
        before = await everything(w, ids)
        large = json.dumps({"input": "x" * 2 * MIB}).encode()
        size = len(large) // pieces + 1
        content = [large[at : at + size] for at in range(0, len(large), size)]
        for method, path in WITH_BODY:
            answer = await w.client.request(
                method, path.format(**ids), content=content, headers=JSON
            )
            assert (answer.status, detail(answer)["code"]) == (413, "payload_too_large")
        assert await everything(w, ids) == before


async def test_the_limit_is_the_largest_body_accepted(autojump_clock: MockClock) -> None:
    async with world(max_body_bytes=100) as w:
        for size, status in ((100, 200), (101, 413)):
            body = b"{}".ljust(size)
            answer = await w.client.request("POST", "/sessions", content=body, headers=JSON)
            assert answer.status == status


async def test_of_repeated_keys_the_last_counts_and_large_numbers_are_kept(
    autojump_clock: MockClock,
) -> None:
    body = b'{"title": 5, "title": "last", "resource": {"n": ' + b"9" * 400 + b"}}"
    async with world() as w:
        answer = await w.client.request("POST", "/sessions", content=body, headers=JSON)
        assert answer.json()["title"] == "last"
        assert answer.json()["resource"] == {"n": 10**400 - 1}


async def test_unstorable_characters_are_replaced(autojump_clock: MockClock) -> None:
    body = b'{"title": "a\\u0000b\\ud800c", "resource": {"\\ud800": "\\u0000"}}'
    async with world() as w:
        answer = await w.client.request("POST", "/sessions", content=body, headers=JSON)
        assert answer.json()["title"] == "a\ufffdb\ufffdc"
        assert answer.json()["resource"] == {"\ufffd": "\ufffd"}


BAD_QUERIES = [
    ("/sessions?limit={}", "limit", ["0", "501", "-1", "x", "", "1.0", "%2B1", "9" * 30, "١"]),
    ("/sessions/{session}/runs?limit={}", "limit", ["0", "501", "x"]),
    ("/runs/{run}/events?limit={}", "limit", ["0", "501", "x"]),
    ("/runs/{run}/events?after_seq={}", "after_seq", ["-1", "x", "", "1e3", "9" * 5000]),
    ("/runs/{run}/events/stream?after_seq={}", "after_seq", ["-1", "x", "", "None"]),
    ("/runs/{run}/events/stream?until={}", "until", ["", "end", "TERMINAL"]),
    ("/sessions?cursor={}", "cursor", ["x", "", "%00", "W10", "WzEsMl0", "é", "=" * 9]),
    ("/sessions/{session}/runs?cursor={}", "cursor", ["x", "bnVsbA", "%ff"]),
]


@pytest.mark.parametrize(("path", "name", "values"), BAD_QUERIES)
async def test_bad_queries_are_refused_by_name(
    autojump_clock: MockClock, path: str, name: str, values: list[str]
) -> None:
    async with world(["ok"]) as w:
        ids = await filled(w)
        for value in values:
            target = path.replace("{}", quote(value, safe="%")).format(**ids)
            answer = await w.client.request("GET", target)
            assert answer.status == 422, (target, answer.body)
            assert detail(answer)["errors"][0]["loc"] == ["query", name]


@pytest.mark.parametrize(
    "odd", ["%00", "%0a", "%F0%9F%98%80", "..", "%2e%2e", "a%20b", "%25", "x" * 3000, "%ff", "a;b"]
)
async def test_odd_ids_are_not_found(autojump_clock: MockClock, odd: str) -> None:
    async with world() as w:
        for path in ("/sessions/{}", "/sessions/{}/runs", "/runs/{}/events"):
            answer = await w.client.request("GET", path.format(odd))
            assert (answer.status, detail(answer)["code"]) == (404, "not_found"), path


@pytest.mark.parametrize(
    "path",
    ["/", "//sessions", "/sessions/", "/sessions//runs", "/Sessions", "/runs", "/runs/x",
     "/sessions/x/", "/runs/x/events/", "/runs/x/events/stream/", "/static/x", "/openapi"],
)  # fmt: skip
async def test_there_are_no_aliases_and_no_redirects(autojump_clock: MockClock, path: str) -> None:
    async with world() as w:
        for method in ("GET", "POST", "OPTIONS"):
            answer = await w.client.request(method, path)
            assert (answer.status, detail(answer)["code"]) == (404, "not_found")


async def test_other_methods_are_refused_with_those_that_there_are(
    autojump_clock: MockClock,
) -> None:
    async with world(["ok"]) as w:
        ids = await filled(w)
        for path, allowed in ROUTES.items():
            for method in METHODS:
                if method in allowed:
                    continue
                answer = await w.client.request(
                    method, path.format(**ids), content=b"x" * 70_000, headers={"x-user": ""}
                )
                assert answer.status == 405, (method, path)
                assert answer.headers["allow"] == ", ".join(allowed)
                assert detail(answer)["code"] == "method_not_allowed"


async def test_without_identity_every_route_refuses(autojump_clock: MockClock) -> None:
    async with world(["ok"]) as w:
        ids = await filled(w)
        before = await everything(w, ids)
        for path, methods in ROUTES.items():
            for method in methods:
                for user in ("refused", "forbidden"):
                    answer = await w.client.request(
                        method,
                        path.format(**ids),
                        content=b'{"input": "Hi"}',
                        headers={**JSON, "x-user": user},
                    )
                    assert (answer.status, detail(answer)["code"]) == (401, "unauthenticated")
                    assert b"canary" not in answer.body
                    realm = 'Bearer realm="trips"' if user == "refused" else None
                    assert answer.headers.get("www-authenticate") == realm
        assert await everything(w, ids) == before


def answer_with(result: object) -> Callable[[Request], object]:
    return lambda request: result


nobody = answer_with(None)


async def test_nobody_is_no_identity(autojump_clock: MockClock) -> None:
    async with world(identity_resolver=nobody) as w:
        answer = await w.client.request("GET", "/sessions")
        assert (answer.status, detail(answer)["code"]) == (401, "unauthenticated")


async def test_the_checks_run_in_the_documented_order(autojump_clock: MockClock) -> None:
    """Each request breaks one rule less than the one before it."""
    async with world(["ok"]) as w:
        ids = await filled(w)
        unknown = "/sessions/ses_" + "0" * 32 + "/runs"
        known = f"/sessions/{ids['session']}/runs"
        large, bad, good = b"[" * 2 * MIB, b"[]", b'{"input": "Hi"}'
        nobody, plain = {"x-user": "refused"}, {"content-type": "text/plain"}
        await w.runtime.stop()
        steps: list[tuple[int, str, str, bytes, dict[str, str]]] = [
            (404, "POST", "/nowhere", large, {**nobody, **plain}),
            (405, "PUT", unknown, large, {**nobody, **plain}),
            (401, "POST", unknown, large, {**nobody, **plain}),
            (415, "POST", unknown, large, plain),
            (413, "POST", unknown, large, JSON),
            (422, "POST", unknown, bad, JSON),
            (422, "POST", unknown, b'{"input": "Hi", "if_active": "x"}', JSON),
            (404, "POST", unknown, good, JSON),
            (503, "POST", known, good, JSON),
        ]
        for status, method, path, body, headers in steps:
            answer = await w.client.request(method, path, content=body, headers=headers)
            assert answer.status == status, (method, path)


async def test_an_unexpected_error_is_logged_and_tells_nothing(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(request: object) -> Identity:
        raise LookupError("canary")

    async with world(identity_resolver=broken) as w:
        with caplog.at_level(logging.ERROR, logger="rungent"):
            answer = await w.client.request("GET", "/sessions")
        assert answer.status == 500
        assert detail(answer) == {"code": "internal_error", "message": "Something went wrong."}
        assert "LookupError: canary" in caplog.text
        assert "canary" not in caplog.messages[0]


@pytest.mark.parametrize("result", ["ada", {"subject_id": "ada"}, 7])
async def test_a_resolver_that_returns_no_identity_is_a_fault_of_the_host(
    autojump_clock: MockClock, result: object
) -> None:
    async with world(identity_resolver=answer_with(result)) as w:
        assert (await w.client.request("GET", "/sessions")).status == 500


@pytest.mark.parametrize("status", [401, 403, 404, 405, 429, 503])
async def test_errors_of_the_framework_pass_unchanged(
    autojump_clock: MockClock, status: int
) -> None:
    async def identify(request: Request) -> Identity:
        await request.get_data()
        abort(status, description="the host says no")

    async with world(identity_resolver=identify) as w:
        answer: AsgiResponse = await w.client.request("GET", "/sessions", headers=ADA)
        assert answer.status == status
        assert b"the host says no" in answer.body
        assert answer.headers["content-type"].startswith("text/html")


async def test_the_host_can_read_the_body_too(autojump_clock: MockClock) -> None:
    seen: list[Any] = []

    async def identify(request: Request) -> Identity:
        seen.append(await request.get_json())
        return Identity("ada")

    async with world(identity_resolver=identify) as w:
        await w.session(title="mine")
    assert seen == [{"title": "mine"}]


async def test_a_body_that_never_ends_is_given_up(autojump_clock: MockClock) -> None:
    runtime = runtime_with(ScriptedModel([]))
    app = app_of(runtime)
    async with AsgiClient(app):

        async def receive() -> dict[str, Any]:
            await trio.sleep(1)
            return {"type": "http.request", "body": b" ", "more_body": True}

        sent: list[dict[str, Any]] = []

        async def send(message: dict[str, Any]) -> None:
            await trio.lowlevel.checkpoint()
            sent.append(message)

        scope: dict[str, Any] = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/sessions",
            "query_string": b"",
            "headers": [],
            "root_path": "",
        }
        await app(scope, receive, send)
        assert trio.current_time() == 60
        assert sent[0]["status"] == 408


@pytest.mark.parametrize(
    "forged",
    [
        ["2026-01-01T00:00:00+00:00", "\ud800"],
        ["2026-01-01T00:00:00+00:00", "a\0b"],
        ["0001-01-01T00:00:00+23:59", "x"],
        ["9999-12-31T23:59:59-23:59", "x"],
        ["2026-01-01T00:00:00", "x"],
        [1, 2],
        None,
    ],
)
async def test_a_forged_cursor_never_reaches_the_database(
    autojump_clock: MockClock, forged: object
) -> None:
    cursor = base64.urlsafe_b64encode(json.dumps(forged).encode()).decode().rstrip("=")
    async with world() as w:
        session_id = await w.session()
        for path in ("/sessions", f"/sessions/{session_id}/runs"):
            answer = await w.client.request("GET", f"{path}?cursor={cursor}")
            assert (answer.status, detail(answer)["code"]) == (422, "invalid_request")


@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_beyond_all_patience_is_refused_too(
    autojump_clock: MockClock, declared: bool
) -> None:
    piece = b" " * MIB
    headers = {**JSON, "content-length": str(66 * MIB)} if declared else JSON
    async with world() as w:
        answer = await w.client.request("POST", "/sessions", content=[piece] * 66, headers=headers)
        assert (answer.status, detail(answer)["code"]) == (413, "payload_too_large")
