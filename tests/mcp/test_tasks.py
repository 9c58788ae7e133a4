"""Deferred work as tasks of the extension."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import trio

from rungent import (
    DeferredRequest,
    Identity,
    InteractionRequest,
    NotFound,
    TaskMismatch,
    ToolContinuation,
    ToolResult,
)
from rungent.mcp import McpTasks
from tests.mcp.calling import CAN_WAIT, Wire, code_of, envelope, wire
from tests.mcp.test_states import Clock

ADA, BOB = Identity("ada"), Identity("bob")
JOB = "parcel-1"


async def begun(w: Wire) -> Any:
    return await w.call("ship", CAN_WAIT)


async def about(w: Wire, method: str = "tasks/get", **headers: str) -> Any:
    return await w.modern(method, {"taskId": JOB}, CAN_WAIT, **headers)


async def test_a_task_is_announced_and_followed_to_its_result() -> None:
    tasks = McpTasks(ttl_seconds=60)
    async with wire(tasks=tasks) as w:
        started = await begun(w)
        await tasks.report_progress(JOB, " Half way ", identity=ADA)
        working = (await about(w)).json()["result"]
        await tasks.complete(JOB, {"shipped": 1}, identity=ADA)
        done = (await about(w)).json()["result"]
    assert (started["resultType"], started["taskId"], started["status"]) == ("task", JOB, "working")
    assert (started["statusMessage"], started["ttlMs"]) == ("On its way.", 60_000)
    assert (working["statusMessage"], "result" in working) == ("Half way", False)
    assert (done["resultType"], done["status"]) == ("complete", "completed")
    assert envelope(done["result"]) == {"tool_status": "success", "data": {"shipped": 1}}


async def test_a_failing_result_is_a_result_and_lost_work_is_none() -> None:
    tasks = McpTasks()
    async with wire(tasks=tasks) as w:
        await begun(w)
        failing = ToolResult(data={"ok": False}, message="Lost at sea.")
        await tasks.complete(JOB, failing, identity=ADA)
        failed = (await about(w)).json()["result"]
    read = envelope(failed["result"])
    assert (read["code"], read["message"]) == ("external_task_failed", "Lost at sea.")
    tasks = McpTasks()
    async with wire(tasks=tasks) as w:
        await begun(w)
        await tasks.fail(JOB, identity=ADA)
        lost = (await about(w)).json()["result"]
    assert (lost["status"], lost["error"]["code"], "result" in lost) == ("failed", -32603, False)


async def test_a_task_of_another_owner_is_like_one_that_does_not_exist() -> None:
    tasks = McpTasks()
    async with wire(tasks=tasks) as w:
        await begun(w)
        foreign = [await about(w, m, x_user="bob") for m in ("tasks/get", "tasks/cancel")]
        unknown = await w.modern("tasks/get", {"taskId": "none"}, CAN_WAIT)
        with pytest.raises(NotFound):
            await tasks.complete(JOB, 1, identity=BOB)
        assert (await about(w)).json()["result"]["status"] == "working"
    assert {a.body for a in (*foreign, unknown)} == {unknown.body}
    assert (unknown.status, code_of(unknown)) == (400, -32602)


async def test_a_client_gives_up_and_the_host_learns_of_it() -> None:
    told: list[tuple[DeferredRequest, Identity]] = []

    async def stop(request: DeferredRequest, identity: Identity) -> None:
        await trio.lowlevel.checkpoint()
        told.append((request, identity))
        raise RuntimeError("canary")

    tasks = McpTasks(canceller=stop)
    async with wire(tasks=tasks) as w:
        await begun(w)
        acknowledged = [(await about(w, "tasks/cancel")).json()["result"] for _ in range(2)]
        after = (await about(w)).json()["result"]
        with pytest.raises(TaskMismatch):
            await tasks.complete(JOB, 1, identity=ADA)
    assert [set(ack) for ack in acknowledged] == [{"resultType", "_meta"}] * 2
    assert after["status"] == "cancelled"
    assert [(request.task_id, identity) for request, identity in told] == [(JOB, ADA)]


async def test_answers_to_a_task_are_acknowledged_and_change_nothing() -> None:
    async with wire(tasks=McpTasks()) as w:
        await begun(w)
        assert (await about(w, "tasks/update")).json()["result"]["resultType"] == "complete"
        assert (await about(w)).json()["result"]["status"] == "working"


async def test_the_extension_is_declared_on_both_sides() -> None:
    async with wire(tasks=McpTasks()) as w:
        found = (await w.modern("server/discover")).json()["result"]["capabilities"]
        refused = await w.modern("tasks/get", {"taskId": JOB})
    assert found["extensions"] == {"io.modelcontextprotocol/tasks": {}}
    assert (refused.status, code_of(refused)) == (400, -32021)
    assert refused.json()["error"]["data"] == {"requiredCapabilities": CAN_WAIT}


async def test_work_is_not_begun_for_clients_that_could_not_wait_for_it() -> None:
    async with wire(tasks=McpTasks(deferring_tools=["add"])) as w:
        params = {"name": "add", "arguments": {"a": 1, "b": 2}}
        new = await w.modern("tools/call", params)
        old = await w.legacy("tools/call", params)
    assert code_of(new) == -32021
    assert envelope(old.json()["result"])["code"] == "deferred_unsupported"
    assert w.desk.contexts == []


async def test_a_name_is_taken_until_it_is_forgotten() -> None:
    clock = Clock()
    async with wire(tasks=McpTasks(ttl_seconds=60, now=clock)) as w:
        await begun(w)
        assert envelope(await begun(w))["code"] == "tool_error"
        clock.moment += timedelta(seconds=60)
        assert (await about(w)).status == 400
        assert (await begun(w))["status"] == "working"


async def test_there_is_a_bound_on_tasks() -> None:
    async with wire(tasks=McpTasks(max_tasks=1)) as w:
        await begun(w)
        other = await w.modern("tools/call", {"name": "ship"}, CAN_WAIT, x_user="bob")
    assert envelope(other.json()["result"])["code"] == "tool_error"


async def test_the_host_is_told_what_it_does_wrong() -> None:
    tasks = McpTasks()
    asking = InteractionRequest("text", "?", continuation=ToolContinuation("x"))
    with pytest.raises(ValueError, match="neither"):
        await tasks.complete(JOB, ToolResult(interaction=asking), identity=ADA)
    with pytest.raises(ValueError, match="280"):
        await tasks.report_progress(JOB, "", identity=ADA)
    with pytest.raises(NotFound):
        await tasks.fail(JOB, identity=ADA)
    with pytest.raises(ValueError, match="above 0"):
        McpTasks(max_tasks=0)
