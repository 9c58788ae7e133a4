"""The log line of each part of a run: exactly one, with ids, codes and numbers."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from rungent import Agent, DeferredRequest, ToolCall, ToolContext, ToolResult, tool
from rungent.llm import ModelCompleted
from rungent.llm.port import ModelFailure
from rungent.logs import JsonFormatter
from rungent.testing import Delay
from tests.helpers import OWNER, asking, stage

FIELDS = {
    "run_id",
    "session_id",
    "agent",
    "status",
    "code",
    "duration_seconds",
    "steps",
    "worker",
}
QUESTION = asking(ToolCall("request_input", {"kind": "text", "prompt": "Where to?"}))


@tool(effect="write", approval="never")
async def defers(ctx: ToolContext) -> ToolResult:
    """Leave it to the host."""
    return ToolResult(deferred=DeferredRequest("job", "Working"))


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="rungent")
    return caplog


def parts(logged: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [
        {name: vars(record)[name] for name in FIELDS}
        for record in logged.records
        if "run part over" in record.getMessage()
    ]


def ends(logged: pytest.LogCaptureFixture) -> list[tuple[str, str | None]]:
    return [(part["status"], part["code"]) for part in parts(logged)]


async def test_a_run_that_ends_is_one_line(
    autojump_clock: MockClock, logged: pytest.LogCaptureFixture
) -> None:
    async with stage([asking(ToolCall("none", {})), [Delay(2), ModelCompleted("ok")]]) as on:
        run_id = await on.start("canary-input")
        await on.log(run_id)
        run = await on.run(run_id)
    [part] = parts(logged)
    worker = part.pop("worker")
    assert worker.startswith("wrk_")
    assert part == {
        "run_id": run_id,
        "session_id": on.session.id,
        "agent": run.agent_name,
        "status": "completed",
        "code": None,
        "duration_seconds": pytest.approx(2),
        "steps": 2,
    }
    assert f"run_id={run_id}" in logged.text
    assert "canary" not in logged.text


async def test_a_failure_says_its_code(
    autojump_clock: MockClock, logged: pytest.LogCaptureFixture
) -> None:
    async with stage([ModelFailure("model_rejected")]) as on:
        events = await on.play()
    assert ends(logged) == [("failed", events[-1].data["code"])]


async def test_each_part_of_a_run_that_pauses_is_a_line(
    autojump_clock: MockClock, logged: pytest.LogCaptureFixture
) -> None:
    agent = Agent("helper", "-", tools=[defers])
    async with stage([QUESTION, asking(ToolCall("defers", {})), "ok"], agent=agent) as on:
        run_id = await on.start()
        [*_, asked] = await on.until(run_id, "interaction.requested")
        await trio.testing.wait_all_tasks_blocked()
        interaction = asked.data["id"]
        await on.runtime.submit_response(run_id, interaction, "Rome", identity=OWNER)
        await on.until(run_id, "external_task.started")
        await trio.testing.wait_all_tasks_blocked()
        await on.runtime.resume_deferred(run_id, "job", ToolResult(), identity=OWNER)
        await on.log(run_id)
    assert ends(logged) == [
        ("waiting_input", None),
        ("waiting_external", None),
        ("completed", None),
    ]
    assert [part["steps"] for part in parts(logged)] == [1, 2, 3]


async def test_a_cancel_is_one_line_whether_somebody_drives_or_not(
    autojump_clock: MockClock, logged: pytest.LogCaptureFixture
) -> None:
    async with stage([[Delay(100)], QUESTION]) as on:
        running = await on.start()
        await on.until(running, "model.started")
        await trio.sleep(3)
        await on.runtime.cancel_run(running, identity=OWNER)
        await on.runtime.cancel_run(running, identity=OWNER)
        await trio.testing.wait_all_tasks_blocked()
        assert ends(logged) == [("cancelled", None)]
        assert parts(logged)[0]["duration_seconds"] == pytest.approx(3)
        logged.clear()
        waiting = await on.start()
        await on.until(waiting, "interaction.requested")
        await trio.testing.wait_all_tasks_blocked()
        await on.runtime.cancel_run(waiting, identity=OWNER)
        assert ends(logged) == [("waiting_input", None), ("cancelled", None)]
        assert parts(logged)[1]["duration_seconds"] == 0


async def test_a_replaced_run_is_a_line(
    autojump_clock: MockClock, logged: pytest.LogCaptureFixture
) -> None:
    async with stage([QUESTION, "ok"]) as on:
        waiting = await on.start()
        await on.until(waiting, "interaction.requested")
        await trio.testing.wait_all_tasks_blocked()
        await on.log(await on.start(if_active="cancel_waiting"))
    assert sorted(ends(logged)) == [
        ("cancelled", None),
        ("completed", None),
        ("waiting_input", None),
    ]


async def test_a_run_that_is_left_to_others_says_so(
    autojump_clock: MockClock, logged: pytest.LogCaptureFixture
) -> None:
    async with stage([[Delay(100)]]) as on:
        run_id = await on.start()
        await on.until(run_id, "model.started")
        await on.runtime.stop()
    assert ends(logged) == [("running", "released")]


def test_a_record_is_one_json_object_with_its_extra_fields() -> None:
    record = logging.makeLogRecord(
        {
            "name": "rungent",
            "levelname": "INFO",
            "msg": "two\nlines %s",
            "args": ("ü",),
            "created": 1.5,
            "run_id": "run_1",
            "strange": {1, float("nan")} - {1},
            "level": "not mine",
        }
    )
    line = JsonFormatter().format(record)
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "1970-01-01T00:00:01.500000+00:00",
        "level": "info",
        "logger": "rungent",
        "message": "two\nlines ü",
        "run_id": "run_1",
        "strange": [None],
    }


def test_a_traceback_is_a_field_of_its_record() -> None:
    try:
        raise ValueError("reason")
    except ValueError:
        record = logging.makeLogRecord({"msg": "failed", "exc_info": sys.exc_info()})
    shown = json.loads(JsonFormatter().format(record))
    assert shown["message"] == "failed"
    assert shown["exception"].endswith("ValueError: reason")
