"""An independent judge of retry behaviour: whole runs against a server that scripts faults."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from rungent import Agent, Event, Identity, Runtime, ToolContext, tool
from rungent.llm import OpenAICompatibleModel
from rungent.store import MemoryStore

USER = Identity("judge")
# The judge is a real server in a thread: these waits are on its answers, never on a clock.
DEADLINE_SECONDS = 60


@tool(effect="read", approval="never")
async def lookup(ctx: ToolContext, city: str) -> str:
    """Look a city up."""
    return f"{city} is there"


async def run(llmock: Any, **options: Any) -> list[Event]:
    """One run against the judge's server, followed to its end."""
    model = OpenAICompatibleModel(
        api_key="judged",
        base_url=llmock.base_url("openai"),
        model="gpt-4o",
        retry_backoff_seconds=0.05,
        **options,
    )
    agent = Agent(name="judged", instructions="Answer.", tools=[lookup])
    runtime = Runtime(agents=[agent], model=model, store=MemoryStore())
    with trio.fail_after(DEADLINE_SECONDS):
        async with runtime:
            session = await runtime.create_session(identity=USER)
            return [event async for event in runtime.stream_run(session.id, "Hi", identity=USER)]


async def assert_faultless(llmock: Any) -> None:
    verdict = await trio.to_thread.run_sync(llmock.verdict)
    verdict.assert_ok(strict=True)


def reasons(events: list[Event]) -> list[str]:
    return [event.data["reason"] for event in events if event.type == "model.retrying"]


RETRIED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("rate_limit", {"times": 2, "retry_after": 0.2}, {}, "rate_limit"),
    ("fail", {"status": 503, "times": 2}, {}, "server_error"),
    ("fail", {"status": 503, "times": 1, "retry_after": 0.2}, {}, "server_error"),
    ("disconnect", {"after_chunks": 1, "times": 1}, {}, "stream_incomplete"),
    ("truncate", {"after_chunks": 1, "times": 1}, {}, "stream_incomplete"),
    ("corrupt", {"after_chunks": 1, "times": 1}, {}, "invalid_response"),
    ("stall", {"after_chunks": 1, "seconds": 5, "times": 1}, {"timeout_seconds": 0.3}, "timeout"),
]


@pytest.mark.parametrize(("fault", "settings", "options", "reason"), RETRIED)
async def test_transient_faults_are_retried_without_a_fault_of_ours(
    llmock: Any, fault: str, settings: dict[str, Any], options: dict[str, Any], reason: str
) -> None:
    getattr(llmock, fault)(**settings)
    events = await run(llmock, **options)
    assert reasons(events) == [reason] * settings["times"]
    assert events[-1].type == "run.completed"
    await assert_faultless(llmock)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_refusals_are_never_retried(llmock: Any, status: int) -> None:
    llmock.fail(status)
    events = await run(llmock)
    assert reasons(events) == []
    assert events[-1].data["code"] == "model_rejected"
    await assert_faultless(llmock)


async def test_a_lasting_outage_ends_the_run_within_its_budget(llmock: Any) -> None:
    llmock.outage()
    events = await run(llmock)
    assert reasons(events) == ["server_error"] * 3
    assert events[-1].data["code"] == "model_unavailable"
    await assert_faultless(llmock)


async def test_broken_arguments_are_asked_for_again_and_never_executed(llmock: Any) -> None:
    llmock.break_tool_call("malformed_arguments")
    events = await run(llmock)
    assert "invalid_tool_arguments" in reasons(events)
    assert "tool.started" not in {event.type for event in events}
    await assert_faultless(llmock)


async def test_a_tool_call_is_answered_before_the_next_step(llmock: Any) -> None:
    llmock.call_tool("lookup", {"city": "Kyoto"})
    events = await run(llmock)
    assert [event.data["name"] for event in events if event.type == "tool.completed"] == ["lookup"]
    assert events[-1].type == "run.completed"
    await assert_faultless(llmock)
