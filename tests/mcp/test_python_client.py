"""The official Python client on trio, over a real socket, in each of its modes."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

import mcp_types as types
import pytest
import trio
from mcp import Client
from mcp.client import ClaimContext, ClientExtension, ResultClaim
from mcp.shared.exceptions import MCPError
from typing_extensions import override

from rungent import Identity
from rungent.mcp import McpTasks, create_mcp_asgi
from tests.mcp.desk import AGENT, ASKED, DONE, Desk
from tests.mcp.serving import served

MODES = ("auto", "legacy", "2026-07-28")
ADA = Identity("ada")


@asynccontextmanager
async def desk_at(**options: Any) -> AsyncGenerator[tuple[str, Desk]]:
    desk = Desk()
    app = create_mcp_asgi(
        AGENT,
        identity_resolver=lambda request: ADA,
        context_factory=lambda request: {"desk": desk},
        **options,
    )
    with trio.fail_after(300):
        async with served(app) as url:
            yield url + "/", desk


def envelope(result: types.CallToolResult) -> dict[str, Any]:
    """What the model reads."""
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    read: dict[str, Any] = json.loads(content.text)
    return read


@pytest.mark.parametrize("mode", MODES)
async def test_the_client_lists_and_calls_tools(mode: str) -> None:
    async with desk_at() as (url, _), Client(url, mode=mode) as client:
        listed = await client.list_tools()
        result = await client.call_tool("add", {"a": 2, "b": 3})
    shown = {tool.name: tool for tool in listed.tools}
    assert list(shown) == ["add", "fail", "wait", "book", "ask", "ship"]
    assert shown["add"].input_schema["required"] == ["a", "b"]
    assert shown["add"].annotations is not None
    assert shown["add"].annotations.read_only_hint is True
    assert envelope(result) == {"tool_status": "success", "data": 5}
    assert result.is_error is False


@pytest.mark.parametrize("mode", MODES)
async def test_failures_are_results_and_unknown_tools_are_errors(mode: str) -> None:
    async with desk_at() as (url, _), Client(url, mode=mode) as client:
        broken = await client.call_tool("fail", {})
        invalid = await client.call_tool("add", {"a": "x"})
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("none", {})
    assert broken.is_error
    assert envelope(broken)["code"] == "tool_error"
    assert invalid.is_error
    assert envelope(invalid)["code"] == "invalid_arguments"
    assert unknown.value.error.code == types.INVALID_PARAMS


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_goes_away_cancels_its_call(mode: str) -> None:
    async with desk_at() as (url, desk):
        async with Client(url, mode=mode) as client, trio.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "wait")
            await desk.waiting.wait()
            nursery.cancel_scope.cancel()
        await desk.cancelled.wait()


def asker(
    action: Literal["accept", "decline", "cancel"], **content: Any
) -> tuple[Any, list[types.ElicitRequestFormParams]]:
    """A client whose user always does the same, and what it was asked."""
    asked: list[types.ElicitRequestFormParams] = []

    async def answer(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        await trio.lowlevel.checkpoint()
        assert isinstance(params, types.ElicitRequestFormParams)
        asked.append(params)
        return types.ElicitResult(action=action, content=content or None)

    return answer, asked


@pytest.mark.parametrize("mode", ["auto", "2026-07-28"])
@pytest.mark.parametrize("approval", ["annotate", "elicit"])
async def test_a_client_that_can_ask_is_asked_before_anything_is_done(
    mode: str, approval: str
) -> None:
    answer, asked = asker("accept", decision="approve")
    async with (
        desk_at(approval=approval) as (url, desk),
        Client(url, mode=mode, elicitation_callback=answer) as client,
    ):
        result = await client.call_tool("book", {"city": "Rome"})
    assert [params.message for params in asked] == ["Book Rome?"]
    assert envelope(result)["data"] == DONE
    assert desk.booked == ["Rome"]


@pytest.mark.parametrize(
    ("action", "content"),
    [("accept", {"decision": "reject"}), ("decline", {}), ("cancel", {})],
)
async def test_whoever_does_not_approve_declined(action: Any, content: dict[str, str]) -> None:
    answer, _ = asker(action, **content)
    async with desk_at() as (url, desk), Client(url, elicitation_callback=answer) as client:
        result = await client.call_tool("book", {"city": "Rome"})
    assert result.is_error
    assert envelope(result)["code"] == "rejected"
    assert desk.booked == []


async def test_a_question_of_a_tool_is_asked_and_its_continuation_gets_the_answer() -> None:
    answer, asked = asker("accept", selected="b")
    async with desk_at() as (url, _), Client(url, elicitation_callback=answer) as client:
        result = await client.call_tool("ask", {})
    assert [params.message for params in asked] == [ASKED]
    assert envelope(result)["data"] == {"selected": ["b"], "note": "frozen"}


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_cannot_ask_is_refused_where_consent_is_wanted(mode: str) -> None:
    async with desk_at(approval="elicit") as (url, desk), Client(url, mode=mode) as client:
        if mode == "legacy":
            result = await client.call_tool("book", {"city": "Rome"})
            assert envelope(result)["code"] == "interaction_required"
        else:
            with pytest.raises(MCPError) as refused:
                await client.call_tool("book", {"city": "Rome"})
            assert refused.value.error.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
            assert refused.value.error.data == {"requiredCapabilities": {"elicitation": {}}}
    assert desk.booked == []


async def test_a_question_to_a_client_that_cannot_ask_is_a_failed_call() -> None:
    async with desk_at() as (url, _), Client(url) as client:
        result = await client.call_tool("ask", {})
    assert envelope(result)["code"] == "missing_arguments"
    assert envelope(result)["message"] == ASKED


class TaskStarted(types.Result):
    """Deferred work, as the tasks extension announces it."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str


class TaskDetails(types.Result):
    """Deferred work, as the tasks extension describes it."""

    status: str
    result: dict[str, Any] | None = None


class TaskParams(types.RequestParams):
    """Names a task."""

    task_id: str


class GetTask(types.Request[TaskParams, Literal["tasks/get"]]):
    """Asks about a task. The client repeats its name in a header."""

    method: Literal["tasks/get"] = "tasks/get"
    params: TaskParams
    name_param = "taskId"


class Tasks(ClientExtension):
    """The tasks extension on the client's side: ask until the work is done."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self, desk: Desk, tasks: McpTasks) -> None:
        self._desk = desk
        self._tasks = tasks
        self.seen: list[str] = []

    @override
    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=TaskStarted, resolve=self._resolve)]

    async def _resolve(self, started: TaskStarted, ctx: ClaimContext) -> types.CallToolResult:
        self.seen.append(started.status)
        request = GetTask(params=TaskParams(task_id=started.task_id))
        self.seen.append((await ctx.session.send_request(request, TaskDetails)).status)
        await self._tasks.complete(started.task_id, {"shipped": 1}, identity=ADA)
        details = await ctx.session.send_request(request, TaskDetails)
        self.seen.append(details.status)
        return types.CallToolResult.model_validate(details.result)


@pytest.mark.parametrize("mode", ["auto", "2026-07-28"])
async def test_deferred_work_is_a_task_for_a_client_that_knows_tasks(mode: str) -> None:
    tasks = McpTasks()
    async with desk_at(tasks=tasks) as (url, desk):
        extension = Tasks(desk, tasks)
        async with Client(url, mode=mode, extensions=[extension]) as client:
            result = await client.call_tool("ship", {})
    assert extension.seen == ["working", "working", "completed"]
    assert envelope(result) == {"tool_status": "success", "data": {"shipped": 1}}


@pytest.mark.parametrize("mode", MODES)
async def test_deferred_work_is_not_possible_for_other_clients(mode: str) -> None:
    async with desk_at(tasks=McpTasks()) as (url, _), Client(url, mode=mode) as client:
        result = await client.call_tool("ship", {})
    assert envelope(result)["code"] == "deferred_unsupported"
