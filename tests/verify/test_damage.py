"""Every kind of damage is named, with the place where it shows first, and nothing that is stored."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import trio
from sqlalchemy import create_engine
from trio.testing import MockClock

from rungent import ToolCall, ToolContext, tool
from rungent.persistence.audit import audit_run
from tests.helpers import asking
from tests.verify.databases import Database, recording

SECRET = "the-private-argument"
EVENTS = "UPDATE rungent_events SET"
RUN = "UPDATE rungent_runs SET"
CLAIM = "UPDATE rungent_tool_calls SET"
SHIFT = (
    f"{EVENTS} seq = -seq - 1 WHERE seq >= :at",
    f"{EVENTS} seq = -seq WHERE seq < 0",
)


@tool(effect="read", approval="never")
async def look(ctx: ToolContext, secret: str) -> str:
    """Look."""
    await ctx.report_progress("Looking")
    return secret


@tool(effect="write", approval="never")
async def save(ctx: ToolContext, secret: str) -> str:
    """Save."""
    return secret


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with one completed run of thirteen and more events."""
    folder = tmp_path_factory.mktemp("recorded")
    trio.run(record, folder, clock=MockClock(autojump_threshold=0))
    return folder / "runs.db"


async def record(folder: Path) -> None:
    both = [ToolCall(name, {"secret": SECRET}) for name in ("look", "save")]
    script = [asking(*both, text="Both."), "Done."]
    async with recording(folder, script, tools=[look, save]) as (on, _):
        await on.play()


@pytest.fixture
def database(recorded: Path, tmp_path: Path) -> Database:
    """A copy of the file, to be damaged."""
    return Database(Path(shutil.copy(recorded, tmp_path)))


LOG = [
    "run.started",
    "model.started",
    "message.delta",
    "model.completed",
    "message.reset",
    "tool.started",
    "activity.updated",
    "activity.updated",
    "tool.completed",
    "tool.started",
    "tool.completed",
    "model.started",
    "message.delta",
    "model.completed",
    "message.completed",
    "run.completed",
]


def test_the_log_is_the_one_that_the_table_below_counts_on(database: Database) -> None:
    assert [row["type"] for row in database.rows("SELECT type FROM rungent_events")] == LOG
    assert database.violations() == [None]


DAMAGES = {
    "first event gone": (
        ["DELETE FROM rungent_events WHERE seq = 1"],
        "seq 2: model.started: expected seq 1 (a prune that was interrupted? run it again)",
    ),
    "event gone": (
        ["DELETE FROM rungent_events WHERE seq = 7"],
        "seq 8: activity.updated: expected seq 7",
    ),
    "last event gone": (
        ["DELETE FROM rungent_events WHERE seq = 16"],
        "seq 15: the log has no end, but the run is completed",
    ),
    "event before the first": (
        [f"{EVENTS} seq = 0 WHERE seq = 1"],
        "seq 0: run.started: expected seq 1",
    ),
    "second end": (
        [
            (
                "INSERT INTO rungent_events SELECT run_id, 17, 'evt_twice', type, data, created_at "
                "FROM rungent_events WHERE seq = 16"
            )
        ],
        "seq 17: run.completed: the log has ended already",
    ),
    "unknown key": (
        [f"{EVENTS} data = json_set(data, '$.arguments', '{SECRET}') WHERE seq = 10"],
        "seq 10: tool.started: payload: arguments: Extra inputs are not permitted",
    ),
    "missing key": (
        [f"{EVENTS} data = json_remove(data, '$.effect') WHERE seq = 10"],
        "seq 10: tool.started: payload: effect: Field required",
    ),
    "wrong value": (
        [f"{EVENTS} data = json_set(data, '$.step', '{SECRET}') WHERE seq = 2"],
        "seq 2: model.started: payload: step: Input should be a valid integer",
    ),
    "payload of another kind": (
        [f"{EVENTS} data = '[\"{SECRET}\"]' WHERE seq = 2"],
        "seq 2: model.started: payload: Input should be a valid dictionary",
    ),
    "unknown type": (
        [f"{EVENTS} type = 'tool.invented' WHERE seq = 10"],
        "seq 10: tool.invented: unknown type",
    ),
    "text differs": (
        [f"{EVENTS} data = json_set(data, '$.content', '{SECRET}') WHERE seq = 15"],
        "seq 15: message.completed: not the deltas since the last reset",
    ),
    "call of nobody": (
        [f"{EVENTS} data = json_set(data, '$.call_id', 'call_x') WHERE seq = 11"],
        "seq 11: tool.completed: the call is not open",
    ),
    "step out of order": (
        [f"{EVENTS} data = json_set(data, '$.step', 3) WHERE seq = 12"],
        "seq 12: model.started: expected step 2",
    ),
    "status": (
        [f"{RUN} status = 'failed'"],
        "row: status is failed, but completed in the log",
    ),
    "status of an active run": (
        [f"{RUN} status = 'running'"],
        "row: status is running, but completed in the log",
    ),
    "invented status": ([f"{RUN} status = 'asleep'"], "row: a stored value cannot be read"),
    "event_seq": ([f"{RUN} event_seq = 99"], "row: event_seq is 99, but 16 in the log"),
    "model_steps": ([f"{RUN} model_steps = 7"], "row: model_steps is 7, but 2 in the log"),
    "failure": (
        [f"{RUN} failure_code = 'internal_error', failure_retryable = 1"],
        "row: failure is ('internal_error', True), but (None, None) in the log",
    ),
    "lease": (
        [f"{RUN} lease_owner = 'wrk_x', lease_expires_at = updated_at"],
        "row: completed with a lease",
    ),
    "state": (
        [f"{RUN} state = json_set(state, '$.recoveries', '{SECRET}')"],
        (
            "row: RunState: recoveries: Input should be a valid integer, "
            "unable to parse string as an integer"
        ),
    ),
    "no JSON": ([f"{RUN} state = '{{{SECRET}'"], "row: a stored value cannot be read"),
    "ledger row gone": (
        ["DELETE FROM rungent_tool_calls WHERE tool_name = 'save'"],
        "call CALL_2: tool.started without a ledger row",
    ),
    "ledger row without events": (
        [f"{CLAIM} call_id = 'call_x' WHERE tool_name = 'save'"],
        "call call_x: a ledger row without tool.started",
    ),
    "ledger state": (
        [f"{CLAIM} state = 'in_doubt' WHERE tool_name = 'save'"],
        "call CALL_2: in_doubt in the ledger, succeeded by the log",
    ),
    "ledger without end": (
        [f"{CLAIM} settled_at = NULL WHERE tool_name = 'save'"],
        "call CALL_2: succeeded in the ledger without end",
    ),
    "ledger attempts": (
        [f"{CLAIM} attempts = 2 WHERE tool_name = 'save'"],
        "call CALL_2: 2 attempts in the ledger, 1 in the log",
    ),
    "more attempts than claims": (
        [f"{CLAIM} fencing_token = 0 WHERE tool_name = 'save'"],
        "call CALL_2: was executed more often than the run was claimed",
    ),
    "ledger token": (
        [f"{CLAIM} fencing_token = 9 WHERE tool_name = 'save'"],
        "call CALL_2: the ledger's fencing token is newer than the run's",
    ),
    "ledger tool": (
        [f"{CLAIM} tool_name = 'look' WHERE tool_name = 'save'"],
        "call CALL_2: another tool or effect in the ledger than in the log",
    ),
    "idempotency key": (
        [f"{CLAIM} idempotency_key = 'x' WHERE tool_name = 'save'"],
        "call CALL_2: the idempotency key is not made of run and call",
    ),
    "executed twice without a loss": (
        [
            *SHIFT,
            (
                "INSERT INTO rungent_events SELECT run_id, :at, 'evt_twice', type, data, created_at "
                "FROM rungent_events WHERE seq = 10"
            ),
            f"{RUN} event_seq = 17",
            f"{CLAIM} attempts = 2 WHERE tool_name = 'save'",
        ],
        "call CALL_2: was executed more often than the run was claimed",
    ),
    "interaction from nowhere": (
        [
            (
                "INSERT INTO rungent_interactions (id, run_id, tool_call_id, kind, request, status, "
                "created_at) SELECT 'int_x', id, 'call_x', 'text', '{}', 'pending', created_at "
                "FROM rungent_runs"
            )
        ],
        "int_x: an interaction row without interaction.requested",
    ),
    "task from nowhere": (
        [
            (
                "INSERT INTO rungent_external_tasks (run_id, task_id, call_id, state, message, "
                "created_at) SELECT id, 'job', 'call_x', 'waiting', 'm', created_at FROM rungent_runs"
            )
        ],
        "task job: a task row without external_task.started",
    ),
    "tool message gone": (
        ["DELETE FROM rungent_messages WHERE position = 3"],
        "message 4: expected message 3; one is missing or another run's",
    ),
    "tool message gone, the rest moved up": (
        [
            "DELETE FROM rungent_messages WHERE position = 4",
            "UPDATE rungent_messages SET position = 4 WHERE position = 5",
        ],
        "message 4: call CALL_2 has no tool message before it",
    ),
    "tool messages exchanged": (
        [
            "UPDATE rungent_messages SET position = 9 WHERE position = 3",
            "UPDATE rungent_messages SET position = 3 WHERE position = 4",
            "UPDATE rungent_messages SET position = 4 WHERE position = 9",
        ],
        "message 3: answers call CALL_2, expected CALL_1",
    ),
    "second tool message": (
        [
            (
                "UPDATE rungent_messages SET role = 'tool', "
                'payload = \'{"tool_call_id": "call_x"}\' WHERE position = 5'
            )
        ],
        "message 5: answers call call_x, which is not open",
    ),
    "final answer gone": (
        ["DELETE FROM rungent_messages WHERE position = 5"],
        "transcript: has no final answer",
    ),
    "another final answer": (
        [f"UPDATE rungent_messages SET content = '{SECRET}' WHERE position = 5"],
        "transcript: the final answer differs from message.completed",
    ),
    "hidden final answer": (
        ["UPDATE rungent_messages SET public = 0 WHERE position = 5"],
        "message 5: is a final answer that is not public",
    ),
    "user message gone": (
        ["DELETE FROM rungent_messages"],
        "transcript: the user message is missing",
    ),
    "another user message": (
        [f"{RUN} input_message_id = 'msg_x'"],
        "message 1: is not the run's input message",
    ),
    "message of no kind": (
        [f"UPDATE rungent_messages SET role = '{SECRET}' WHERE position = 5"],
        "row: Message: role: Input should be 'user', 'assistant' or 'tool'",
    ),
    "call without tool message": (
        [
            "DELETE FROM rungent_messages WHERE position = 5",
            (
                "UPDATE rungent_messages SET content = '', role = 'assistant', "
                'payload = \'{"tool_calls": [{"name": "save", "arguments": {}, "id": "call_9"}]}\' '
                "WHERE position = 5"
            ),
            "DELETE FROM rungent_messages WHERE position = 4",
        ],
        "call CALL_2: has no tool message",
    ),
    "calls of another transcript": (
        [
            "DELETE FROM rungent_messages WHERE position BETWEEN 2 AND 4",
            "UPDATE rungent_messages SET position = 2 WHERE position = 5",
        ],
        "call CALL_1: is in the log, but not in the transcript",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named_with_its_place(damage: str, database: Database) -> None:
    statements, expected = DAMAGES[damage]
    calls = database.rows("SELECT call_id FROM rungent_tool_calls ORDER BY tool_name")
    for statement in statements:
        database.change(statement, **({"at": 11} if ":at" in statement else {}))
    (found,) = database.violations()
    assert found is not None
    for number, row in enumerate(calls, 1):
        found = found.replace(row["call_id"], f"CALL_{number}")
    assert found == expected
    assert SECRET not in found


def test_a_pruned_run_is_healthy_and_its_transcript_still_checked(database: Database) -> None:
    for table in ("events", "tool_calls"):
        database.change(f"DELETE FROM rungent_{table}")
    assert database.violations() == [None]
    database.change("DELETE FROM rungent_messages WHERE position = 4")
    (found,) = database.violations()
    assert found is not None
    assert found.startswith("message 5: expected message 4")


def test_an_active_run_without_its_log_is_not_taken_for_a_pruned_one(database: Database) -> None:
    database.change("DELETE FROM rungent_events", f"{RUN} status = 'running'")
    assert database.violations() == ["row: status is running, but queued in the log"]


def test_a_run_that_goes_away_meanwhile_is_no_violation(database: Database) -> None:
    engine = create_engine(database.url)
    assert audit_run(engine, "run_gone") is None
    engine.dispose()
