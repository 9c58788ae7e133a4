"""The host that the official conformance suite asks for: its tools, as far as we offer such.

The names and texts are those that the scenarios of the suite look for.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Annotated, Any

import trio
from pydantic import Field

from rungent import (
    Agent,
    DeferredRequest,
    Identity,
    InteractionRequest,
    TaskMismatch,
    ToolContext,
    ToolContinuation,
    ToolResult,
    tool,
)
from rungent.mcp import McpTasks, create_mcp_asgi
from rungent.tools import ArgumentModel
from tests.mcp.serving import address, free_socket, served

VISITOR = Identity("visitor")

SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


class GivenSchema(ArgumentModel):
    """Arguments with a schema from elsewhere, to see that nothing of it is lost on the way."""

    @property
    def schema(self) -> dict[str, Any]:
        return SCHEMA_2020_12


@tool(effect="read", approval="never")
async def test_simple_text(ctx: ToolContext) -> str:
    """Say something."""
    return "This is a simple text response for testing."


@tool(effect="read", approval="never")
async def test_error_handling(ctx: ToolContext) -> ToolResult:
    """Fail."""
    return ToolResult(data={"ok": False}, message="This tool always fails.")


@tool(effect="read", approval="never")
async def json_schema_2020_12_tool(ctx: ToolContext) -> str:
    """Tool with JSON Schema 2020-12 features"""
    return "fine"


schema_tool = replace(json_schema_2020_12_tool, arguments=GivenSchema([], {}))


@tool(effect="read", approval="never")
async def greet(ctx: ToolContext, name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"


def ask(prompt: str, question: str, then: str, *, required: bool = True) -> ToolResult:
    """A form of one text question, whose answer `then` gets."""
    asked = {"id": question, "prompt": question, "kind": "text", "required": required}
    return ToolResult(
        interaction=InteractionRequest(
            "form", prompt, questions=[asked], continuation=ToolContinuation(then)
        )
    )


def answers(ctx: ToolContext) -> dict[str, Any]:
    """What the user filled in."""
    assert ctx.interaction_response is not None
    value: Any = ctx.interaction_response.value
    return dict(value["answers"])


@tool(effect="read", approval="never")
async def test_input_required_result_elicitation(ctx: ToolContext) -> ToolResult:
    """Ask for a name."""
    return ask("What is your name?", "name", "user_name")


@tool(effect="read", approval="never", requires_interaction_response=True)
async def user_name(ctx: ToolContext) -> str:
    """Greet whoever answered."""
    return f"Hello, {answers(ctx)['name']}!"


@tool(effect="read", approval="never")
async def test_input_required_result_request_state(ctx: ToolContext) -> ToolResult:
    """Ask for a confirmation."""
    return ask("Please confirm", "remark", "confirm", required=False)


@tool(effect="read", approval="never")
async def test_input_required_result_tampered_state(ctx: ToolContext) -> ToolResult:
    """Ask for a confirmation, whose state will be changed."""
    return ask("Please confirm", "remark", "confirm", required=False)


@tool(effect="read", approval="never", requires_interaction_response=True)
async def confirm(ctx: ToolContext) -> str:
    """Take the confirmation."""
    return "state-ok"


@tool(effect="read", approval="never")
async def test_input_required_result_multi_round(ctx: ToolContext) -> ToolResult:
    """Ask twice."""
    return ask("What is your name?", "name", "step1")


@tool(effect="read", approval="never", requires_interaction_response=True)
async def step1(ctx: ToolContext) -> ToolResult:
    """Ask once more."""
    return ask("Which colour do you like?", "color", "step2")


@tool(effect="read", approval="never", requires_interaction_response=True)
async def step2(ctx: ToolContext) -> str:
    """Take the last answer."""
    return f"So it is {answers(ctx)['color']}."


def worker_of(ctx: ToolContext) -> Worker:
    """What the host provides."""
    worker = ctx.deps["worker"]
    assert isinstance(worker, Worker)
    return worker


@tool(effect="external", approval="never")
async def slow_compute(
    ctx: ToolContext, seconds: Annotated[float, Field(ge=0)] = 0, label: str = ""
) -> ToolResult:
    """Compute for a while."""
    if seconds == 0:
        return ToolResult(data={"label": label})
    return worker_of(ctx).start(seconds, {"label": label})


@tool(effect="external", approval="never")
async def failing_job(ctx: ToolContext) -> ToolResult:
    """Work whose result is a failure."""
    return worker_of(ctx).start(0.1, {"ok": False})


@tool(effect="external", approval="never")
async def protocol_error_job(ctx: ToolContext) -> ToolResult:
    """Work that gets lost."""
    return worker_of(ctx).start(0.1, None)


@tool(effect="external", approval="never")
async def test_tool_with_task(ctx: ToolContext) -> ToolResult:
    """Ask for a name, then work for a while."""
    return ask("What is your name?", "name", "named_task")


@tool(effect="external", approval="never", requires_interaction_response=True)
async def named_task(ctx: ToolContext) -> ToolResult:
    """Work under the given name."""
    return worker_of(ctx).start(0.1, {"name": answers(ctx)["name"]})


AGENT = Agent(
    name="conformance",
    instructions="-",
    tools=[
        test_simple_text,
        test_error_handling,
        schema_tool,
        greet,
        test_input_required_result_elicitation,
        user_name,
        test_input_required_result_request_state,
        test_input_required_result_tampered_state,
        confirm,
        test_input_required_result_multi_round,
        step1,
        step2,
        slow_compute,
        failing_job,
        protocol_error_job,
        test_tool_with_task,
        named_task,
    ],
)


class Worker:
    """The host's own work, which it ends when it is done."""

    def __init__(self, tasks: McpTasks, nursery: trio.Nursery) -> None:
        self._tasks = tasks
        self._nursery = nursery
        self._count = 0

    def start(self, seconds: float, data: object) -> ToolResult:
        """Begin work that ends with `data`, or gets lost with None."""
        self._count += 1
        name = f"job-{self._count}"
        self._nursery.start_soon(self._work, name, seconds, data)
        return ToolResult(deferred=DeferredRequest(name, "Working."))

    async def _work(self, name: str, seconds: float, data: object) -> None:
        # How long the suite asks for: it is another process, whose clock is real.
        with trio.move_on_after(seconds):
            await trio.sleep_forever()
        with suppress(TaskMismatch):  # the client gave it up meanwhile
            if data is None:
                await self._tasks.fail(name, identity=VISITOR)
            else:
                await self._tasks.complete(name, data, identity=VISITOR)


@asynccontextmanager
async def conformance_host() -> AsyncGenerator[str]:
    """The served host; its address."""
    tasks = McpTasks(deferring_tools=("failing_job", "protocol_error_job", "test_tool_with_task"))
    listening = free_socket()
    async with trio.open_nursery() as nursery:
        worker = Worker(tasks, nursery)
        app = create_mcp_asgi(
            AGENT,
            identity_resolver=lambda request: VISITOR,
            context_factory=lambda request: {"worker": worker},
            allowed_origins=[address(listening)],
            tasks=tasks,
        )
        async with served(app, listening) as url:
            yield url + "/"
        nursery.cancel_scope.cancel()
