"""What readers rely on is there: every public name, every code, every threat with its test."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from rungent._lifecycle.statuses import TRANSITIONS
from rungent.records import RunStatus
from tests.docs.generated import PAGES
from tests.docs.pages import ROOT, code, page, prose, rows, section

PYTHON = {
    "rungent": """ActiveRunConflict Agent ApprovalPolicy Conflict DeferredRequest Event
        IdempotencyKeyReused Identity InteractionAlreadyResolved InteractionMismatch
        InteractionRequest InteractionResponse InvalidRequest InvalidResponse Message NotFound Run
        RunActivity RunNotRetryable RunNotWaiting RunReceipt RungentError Runtime RuntimeBusy
        Session ShuttingDown TaskMismatch Tool ToolCall ToolContext ToolContinuation ToolEffect
        ToolResult TrustedInteractionResponse Unauthenticated tool""",
    "rungent.asgi": "create_app create_blueprint serve",
    "rungent.asgi.embed": "Embedded",
    "rungent.fastapi": "create_mcp_router create_router",
    "rungent.mcp": "create_mcp_asgi create_mcp_blueprint",
    "rungent.llm": """Heartbeat Model ModelCompleted ModelFailure ModelRequest
        OpenAICompatibleModel RetryPolicy TextDelta ToolCall""",
    "rungent.store": "MemoryStore Store",
    "rungent.sqlalchemy": "RungentBase SQLAlchemyStore",
    "rungent.testing": """BaselineCase BaselineContext BaselineEnvironment BaselineReport
        BaselineResult BaselineSuite Delay ScriptedModel run_baseline virtual_now""",
}
METHODS = """serve stop create_session get_session list_sessions set_session_title
    list_session_runs get_run get_run_events create_run submit_response cancel_run retry_run
    stream_events stream_run stream_response report_external_progress resume_deferred
    recover_runs"""
OPTIONS = """max_model_steps model_wait_progress_after_seconds
    model_wait_progress_interval_seconds model_step_timeout_seconds
    model_step_total_timeout_seconds model_idle_timeout_seconds max_identical_tool_failures
    external_task_canceller event_listener now max_recoveries max_concurrent_runs
    max_queued_runs max_input_chars context_budget_tokens lease_seconds lease_renew_seconds
    recovery_interval_seconds follow_poll_seconds shutdown_grace_seconds dependency_provider
    error_catalog default_agent"""
SDK = """RungentClient createSession getSession setSessionTitle listSessions listRuns createRun
    streamRunEvents run respond listEvents cancel retry RungentApiError initialRungentState
    reduceRungentEvent failRungentState runId lastSeq status text content activities interaction
    error errorCode retryable usage maxReconnects afterSeq onEvent signal until idempotencyKey
    ifActive baseUrl fetch headers credentials interactionKind prompt outcome callId step retry
    maxRetries retryReason deduplicated"""
CODES = """model_step_limit_exceeded model_step_timeout model_unavailable model_rejected
    content_filtered empty_completion invalid_tool_arguments tool_retry_exhausted context_failed
    run_initialization_failed recovery_exhausted internal_error invalid_arguments timeout
    tool_error tool_rejected interaction_required invalid_interaction approval_unavailable
    rejected external_task_failed outcome_unknown unknown_tool invalid_progress cancelled
    missing_arguments deferred_unsupported network rate_limit server_error provider_error
    stream_incomplete invalid_response worker_lost unauthenticated not_found method_not_allowed
    active_run_conflict run_not_waiting interaction_mismatch interaction_already_resolved
    idempotency_key_reused run_not_retryable payload_too_large unsupported_media_type
    invalid_request runtime_busy shutting_down external_task_mismatch type_mismatch empty_answer
    too_long skip_not_allowed skip_with_answer duplicate_option unknown_option custom_not_allowed
    too_many_answers unknown_question missing_answer invalid_decision −32700 −32600 −32601
    −32602 −32603 −32020 −32022"""


@pytest.mark.parametrize("name", PAGES)
def test_generated_pages_are_what_the_code_says(name: str) -> None:
    """`python -m tests.docs` writes them anew."""
    assert page(name) == PAGES[name]()


@pytest.mark.parametrize("module", PYTHON)
def test_every_promised_name_has_its_entry_in_the_python_reference(module: str) -> None:
    entries = set(
        re.findall(r"^### (\w+)$", section("docs/reference/python.md", module), re.MULTILINE)
    )
    assert set(PYTHON[module].split()) <= entries


def test_every_promised_method_and_option_of_the_runtime_is_described() -> None:
    reference = section("docs/reference/python.md", "rungent")
    for name in METHODS.split():
        assert f"#### Runtime.{name}\n" in reference, name
    text = page("docs/runtime.md")
    for name in OPTIONS.split():
        assert f"`{name}`" in text, name


def test_every_promised_name_of_the_sdk_is_described() -> None:
    described = set(re.findall(r"\w+", page("docs/sdk.md")))
    assert set(SDK.split()) <= described


def test_every_machine_code_has_a_cause_and_a_remedy() -> None:
    explained = {
        code(row[0]) or row[0]
        for name in ("docs/codes.md", "docs/interactions.md")
        for row in rows(prose(name))
        if len(row) >= 3 and len(row[-1]) > 3 and len(row[-2]) > 3
    }
    assert set(CODES.split()) <= explained


def statuses_of(log: Path) -> list[RunStatus]:
    """The statuses that a run goes through, as its log shows them."""
    shown: list[RunStatus] = []
    for line in log.read_text(encoding="utf-8").split("\n")[:-1]:
        event = json.loads(line)
        kind, data = event["type"], event["data"]
        resumed = kind in {
            "interaction.resolved",
            "external_task.completed",
            "external_task.failed",
        }
        if kind.startswith("run."):
            shown.append(RunStatus(data["status"]))
        elif resumed and data.get("outcome") != "cancelled":
            shown.append(RunStatus.RUNNING)
    return shown


def test_runs_go_through_the_statuses_of_the_table_and_through_all_of_them() -> None:
    met = {
        pair
        for log in (ROOT / "tests" / "golden").glob("*.jsonl")
        for pair in pairwise(statuses_of(log))
    }
    # A log begins when the run is claimed, so it does not show the queue.
    unseen = {pair for pair in TRANSITIONS if pair[0] in {None, RunStatus.QUEUED}}
    assert met == set(TRANSITIONS) - unseen


def test_the_page_about_runs_lists_the_transitions() -> None:
    listed: set[tuple[RunStatus | None, RunStatus]] = set()
    for row in rows(section("docs/runs.md", "States")):
        if len(row) == 4 and (goal := code(row[2])):
            sources = re.findall(r"`(\w+)`", row[0]) or [None]
            listed |= {(RunStatus(s) if s else None, RunStatus(goal)) for s in sources}
    assert {pair for pair in listed if pair[0] is not pair[1]} == set(TRANSITIONS)


def test_every_threat_names_tests_that_exist() -> None:
    table = [row for row in rows(section("docs/security.md", "Threats")) if len(row) == 3]
    existing = {
        name
        for folder in ("tests", "testing")
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))
    }
    assert len(table) > 15
    for threat, defence, tests in table:
        named = re.findall(r"`(test_\w+)`", tests)
        assert defence, threat
        assert named, threat
        assert set(named) <= existing, threat


def test_the_benchmark_finds_its_place_on_the_page() -> None:
    text = page("docs/performance.md")
    begin, end = text.index("<!-- figures:begin -->"), text.index("<!-- figures:end -->")
    assert begin < end
