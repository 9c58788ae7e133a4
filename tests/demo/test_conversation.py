"""Whole conversations: runtime, store, offline model over HTTP, tools and terminal together."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import trio
from rich.console import Console

from rungent import Event
from rungent.demo.app import LOCAL_IDENTITY, build_runtime
from rungent.demo.command import demo
from rungent.demo.database import open_database
from rungent.demo.seed import DEMO_TRIP_ID
from rungent.demo.settings import DemoOptions
from rungent.demo.terminal import run_once
from rungent.llm import (
    ModelFailure,
    ModelRequest,
    RetryPolicy,
)
from tests.demo.offline import offline_model


async def conversation(path: Path | None, *texts: str) -> tuple[list[list[Event]], str]:
    """Events of one run after another in one session, and the trip afterwards."""
    logs: list[list[Event]] = []
    with trio.fail_after(300):
        async with open_database(path) as (store, services), offline_model() as model:
            runtime = build_runtime(store, model, services)
            async with runtime:
                session = await runtime.create_session(identity=LOCAL_IDENTITY)
                for text in texts:
                    stream = runtime.stream_run(session.id, text, identity=LOCAL_IDENTITY)
                    logs.append([event async for event in stream])
            return logs, await services.trips.snapshot(DEMO_TRIP_ID)


def types(log: Sequence[Event]) -> list[str]:
    """Event types in order, deltas joined: how many there are is a matter of speed."""
    kinds = [event.type for event in log]
    return [kind for i, kind in enumerate(kinds) if kind != "message.delta" or kinds[i - 1] != kind]


async def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear Ada")
    with pytest.raises(OSError, match="not a database"):
        async with open_database(path):
            pass
    assert path.read_text() == "Dear Ada"


async def test_a_change_runs_from_the_message_to_the_trip(tmp_path: Path) -> None:
    (log,), trip = await conversation(tmp_path / "demo.sqlite3", "Move Asakusa Temple to day 2")
    assert types(log) == [
        "run.started",
        "activity.updated",
        "model.started",
        "activity.updated",
        "model.completed",
        "tool.started",
        "tool.completed",
        "model.started",
        "message.delta",
        "model.completed",
        "message.completed",
        "run.completed",
    ]
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    completed = next(event for event in log if event.type == "tool.completed")
    assert completed.data["message"] == "Moved Asakusa Temple to day 2."
    assert completed.data["public"] == {"resource": "trip", "revision": 2}
    deltas = "".join(event.data["delta"] for event in log if event.type == "message.delta")
    assert log[-2].data["content"] == deltas == "- Moved Asakusa Temple to day 2."
    assert log[-1].data["usage"]["total_tokens"] > 0
    assert "Day 2 (train): Shibuya Crossing, Ghibli Museum, Asakusa Temple" in trip


async def test_steps_one_after_the_other_and_reads_side_by_side() -> None:
    (log,), trip = await conversation(
        None, "Add a day, then move Ueno Park to day 4 and show day 4 and show my trip"
    )
    started = [event.data["name"] for event in log if event.type == "tool.started"]
    assert started[:2] == ["add_day", "move_place"]
    assert sorted(started[2:]) == ["get_day", "list_places"]
    assert types(log).count("model.started") == 3
    assert log[-1].type == "run.completed"
    assert "**Day 4**\n\n1. Ueno Park (walk)" in log[-2].data["content"]
    assert "Day 4 (walk): Ueno Park" in trip


async def test_an_ambiguous_goal_changes_nothing_and_is_explained() -> None:
    (log,), trip = await conversation(None, "Take a taxi to the museum")
    failed = next(event for event in log if event.type == "tool.failed")
    assert failed.data["code"] == "tool_rejected"
    assert failed.data["message"] == "More than one place fits: Edo-Tokyo Museum, Ghibli Museum."
    assert "Please say its full name." in log[-2].data["content"]
    assert "(revision 1)" in trip


async def test_a_second_message_of_a_session_is_a_run_of_its_own() -> None:
    logs, trip = await conversation(None, "Add a day", "Add a day", "What is on day 5?")
    assert [log[-1].type for log in logs] == ["run.completed"] * 3
    assert "Nothing is planned yet." in logs[-1][-2].data["content"]
    assert "(revision 3)" in trip


def test_one_message_from_the_command_line_is_kept_in_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = DemoOptions(db=str(tmp_path / "new" / "demo.sqlite3"), once="Swap tower and beach")
    assert demo(options, environ={}, pause_seconds=0) == 0
    out = capsys.readouterr().out
    assert "Model: offline-planner (offline: no language model" in out
    assert re.search(r"^\.\.\. +Swap Places$", out, re.MULTILINE)
    assert re.search(
        r"^ok +Swap Places: Swapped Tokyo Tower and Odaiba Beach\.$", out, re.MULTILINE
    )
    assert "Tokyo, three days (revision 2)" in out
    assert "\x1b" not in out
    assert demo(options, environ={}, pause_seconds=0) == 0
    assert "Tokyo, three days (revision 3)" in capsys.readouterr().out


def test_wrong_usage_is_told_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo(DemoOptions(api_key="k", once="x"), environ={}) == 2
    assert "--model" in capsys.readouterr().err


def test_a_path_that_cannot_be_written_is_told_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo(DemoOptions(db=str(tmp_path), once="Add a day"), environ={}) == 1
    assert capsys.readouterr().err.startswith("rungent demo: ")


class Refusing:
    """A model whose provider refuses every request."""

    retry_policy = RetryPolicy()

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[Any]:
        raise ModelFailure("model_rejected", terminal=True)


async def test_a_failed_run_shows_its_public_text_and_ends_with_1() -> None:
    output = io.StringIO()
    with trio.fail_after(300):
        async with open_database(None) as (store, services):
            runtime = build_runtime(store, Refusing(), services)
            async with runtime:
                console = Console(file=output, width=100)
                assert await run_once(runtime, services, "Add a day", console=console) == 1
                assert await run_once(runtime, services, "   ", console=console) == 1
    shown = output.getvalue()
    assert "The run failed: The assistant cannot process this request." in shown
    assert "(revision 1)" in shown
    assert "Not sent: " in shown


async def test_a_terminal_is_redrawn_with_the_answer_as_markdown() -> None:
    output = io.StringIO()
    console = Console(file=output, width=100, height=40, force_terminal=True)
    with trio.fail_after(300):
        async with open_database(None) as (store, services), offline_model() as model:
            runtime = build_runtime(store, model, services)
            async with runtime:
                assert await run_once(runtime, services, "Show day 1", console=console) == 0
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output.getvalue())
    assert "✓ Get Day" in shown
    assert "1 Asakusa Temple (walk)" in shown
