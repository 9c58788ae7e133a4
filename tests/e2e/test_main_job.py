"""A message posted to a served app becomes a run that a real model server and a tool finish."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import httpx
import pytest
import trio

from tests.e2e.served import Demo, demo
from tests.modelserver.fixture import KEY, ModelServer


def types(events: list[dict[str, object]]) -> list[object]:
    return [event["type"] for event in events]


async def test_the_offline_model_moves_a_place_over_http_and_sse(tmp_path: Path) -> None:
    async with demo(tmp_path / "demo.db") as served:
        assert "offline" in served.printed
        _, events = await served.run("Move Asakusa Temple to day 2")
        assert events[0]["type"] == "run.started"
        assert events[-1]["type"] == "run.completed"
        assert "tool.completed" in types(events)
        assert await served.day_of("Asakusa Temple") == 2


async def test_a_real_model_server_drives_a_typed_tool_to_the_end(
    tmp_path: Path, roomy_server: ModelServer
) -> None:
    options = ("--model-url", roomy_server.base_url, "--model", "scripted", "--api-key", KEY)
    async with demo(tmp_path / "demo.db", *options) as served:
        assert await served.day_of("Tokyo Tower") != 2
        _, events = await served.run("Please do script:move now")
        assert await served.day_of("Tokyo Tower") == 2
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["type"] == "run.completed"
    said = [event["data"] for event in events if event["type"] == "message.completed"]
    assert said == [{"content": "Tokyo Tower is now on day 2."}]


async def test_events_replay_without_a_gap_after_the_server_was_killed(tmp_path: Path) -> None:
    async with demo(tmp_path / "demo.db") as first:
        run_id, events = await first.run("Swap Tokyo Tower and Ueno Park")
        first.end(signal.SIGKILL)
        await first.process.wait()
    async with demo(tmp_path / "demo.db") as second:
        assert await second.events(run_id) == events
        assert await second.events(run_id, after=3) == events[3:]
        assert await second.day_of("Ueno Park") == 1


async def kill_in_mid_stream(served: Demo, stream: str) -> None:
    """The reader sees its connection break."""
    async with served.client.stream("GET", stream) as response:
        async for chunk in response.aiter_bytes():
            if b"message.delta" in chunk:
                served.end(signal.SIGKILL)


async def test_a_run_cut_off_by_a_kill_can_be_cancelled_by_the_next_process(
    tmp_path: Path, roomy_server: ModelServer
) -> None:
    endless = ("--model-url", roomy_server.base_url, "--model", "scripted", "--api-key", KEY)
    async with demo(tmp_path / "demo.db", *endless) as first:
        session = (await first.client.post("/api/assistant/sessions", json={})).json()
        path = f"/api/assistant/sessions/{session['id']}/runs"
        run = (await first.client.post(path, json={"input": "script:text_loop forever"})).json()
        stream = f"/api/assistant/runs/{run['run_id']}/events/stream"
        with pytest.raises(httpx.RemoteProtocolError):
            await kill_in_mid_stream(first, stream)
        await first.process.wait()
    async with demo(tmp_path / "demo.db") as second:
        # The lease of the dead process lapses after thirty seconds; cancelling need not wait.
        cancelled = await second.client.post(f"/api/assistant/runs/{run['run_id']}/cancel")
        assert cancelled.json()["status"] == "cancelled"
        events = await second.events(run["run_id"])
        assert types(events)[-1] == "run.cancelled"
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


async def test_one_conversation_in_the_terminal_ends_with_exit_code_zero(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rungent", "demo", "--db", str(tmp_path / "demo.db")]
    with trio.fail_after(300):
        done = await trio.run_process(
            [*command, "--once", "Move Asakusa Temple to day 2"], capture_stdout=True
        )
    assert "Moved Asakusa Temple to day 2." in done.stdout.decode()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_the_served_demo_stops_at_once_when_asked(
    tmp_path: Path, number: signal.Signals
) -> None:
    async with demo(tmp_path / "demo.db") as served:
        served.end(number)
        with trio.fail_after(300):
            assert await served.process.wait() == 0
