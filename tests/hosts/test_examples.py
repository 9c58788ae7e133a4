"""Every example host under its real server, used as its client would."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from rungent.testing.sse import SseFrame
from tests.hosts.servers import API, EXAMPLES, client, frames, served, start_run

HOSTS = {
    "quart_app": "hypercorn",
    "quart_host": "hypercorn",
    "fastapi_trio": "hypercorn",
    "fastapi_mount": "hypercorn",
    "starlette_mount": "hypercorn",
    "fastapi_asyncio": "uvicorn",
    "starlette_asyncio": "uvicorn",
}
ROUTERS = {"fastapi_trio", "fastapi_asyncio"}


def test_every_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*HOSTS, "assistant"}


@pytest.mark.parametrize("name", HOSTS)
def test_an_example_serves_the_assistant(name: str) -> None:
    with served(HOSTS[name], f"{name}:app", folder=EXAMPLES) as server:
        with client(server) as http:
            refuses_strangers(server.url, name)
            follows_a_run_while_it_goes_on(http)
            answers_errors_as_everywhere(http)
            knows_where_it_lies(http, name)
            if name in ROUTERS:
                gives_tools_what_the_host_provides(http)
        code, output = server.end()
        assert (code, "Traceback" in output) == (0 if HOSTS[name] == "hypercorn" else -15, False)


def refuses_strangers(url: str, name: str) -> None:
    answer = httpx.get(f"{url}{API}/sessions", trust_env=False, timeout=120)
    assert answer.status_code == 401
    if name in ROUTERS:
        assert answer.json() == {"detail": "Who are you?"}
        assert answer.headers["www-authenticate"] == "Bearer"
    else:
        assert answer.json()["detail"]["code"] == "unauthenticated"


def follows_a_run_while_it_goes_on(http: httpx.Client) -> None:
    words = " ".join(f"word{number}" for number in range(20))
    run = start_run(http, words)
    with http.stream("GET", f"{run}/events/stream") as stream:
        first = [frame for _, frame in zip(range(4), frames(stream), strict=False)]
        # The run cannot be over yet: the stream does not wait for its end.
        assert "run.completed" not in [kind(frame) for frame in first]
    last = first[-1].seq
    with http.stream("GET", f"{run}/events/stream", headers={"Last-Event-ID": f"{last}"}) as again:
        rest = [frame for frame in frames(again) if frame.seq is not None]
    assert last is not None
    assert [frame.seq for frame in rest] == list(range(last + 1, last + 1 + len(rest)))
    assert kind(rest[-1]) == "run.completed"


def answers_errors_as_everywhere(http: httpx.Client) -> None:
    wrong = http.put(f"{API}/sessions", content=b"{}")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, POST")
    assert wrong.json()["detail"]["code"] == "method_not_allowed"
    assert http.get(f"{API}/sessions/ses_x").json()["detail"]["code"] == "not_found"
    assert http.post(f"{API}/sessions", content=b"[").status_code == 415


def knows_where_it_lies(http: httpx.Client, name: str) -> None:
    http.post(f"{API}/sessions").raise_for_status()
    page = http.get(f"{API}/sessions", params={"limit": 1})
    assert page.headers["link"].startswith(f"<{API}/sessions?limit=1&cursor=")
    following = page.links["next"]["url"]
    assert http.get(following).status_code == 200
    assert http.get(f"{API}/openapi.json").json()["servers"] == [{"url": API}]
    if name in ROUTERS:
        assert f"{API}/runs/{{run_id}}/events/stream" in http.get("/openapi.json").json()["paths"]


def gives_tools_what_the_host_provides(http: httpx.Client) -> None:
    with http.stream("GET", f"{start_run(http, 'weather?')}/events/stream") as stream:
        events = [frame.event for frame in frames(stream) if frame.event]
    said = [event["data"]["content"] for event in events if event["type"] == "message.completed"]
    assert "sunny in Rome" in said[-1]


def kind(frame: SseFrame) -> Any:
    return frame.event["type"] if frame.event else None
