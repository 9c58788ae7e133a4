"""Calls of a lost worker whose tool can find out what they did."""

from __future__ import annotations

import json

import pytest

from rungent import ToolCall, ToolResult
from rungent._lifecycle.actions import CallModel, Park, Reconcile, RunTools
from rungent._lifecycle.outcomes import (
    NothingDone,
    ProgressReported,
    ToolFinished,
    ToolInDoubt,
)
from rungent.records import RunStatus
from tests.lifecycle.world import World, facts_of, replied


def lost(*, recoveries: int = 5) -> World:
    """A run whose worker is gone in the middle of a call that can be reconciled."""
    world = World(facts_of(recoveries=recoveries))
    world.proceed()
    world.proceed(replied(ToolCall("post", {"n": 1}, "id1"), ToolCall("look", {"n": 1}, "id2")))
    world.apply(ProgressReported("id1", "Half.", {"at": 1}))
    world.crash()
    return world


def reconciling(world: World) -> Reconcile:
    pending = world.proceed()
    assert isinstance(pending, Reconcile)
    assert pending.invocation.call.id == "id1"
    assert pending.invocation.arguments.values == {"n": 1}
    return pending


def test_looking_what_became_of_a_call_changes_nothing() -> None:
    world = lost()
    before = world.stored
    reconciling(world)
    assert world.stored == before
    assert world.ledger["id1"].state == "started"


@pytest.mark.parametrize(
    ("data", "state", "ended"), [(1, "succeeded", "completed"), ({"ok": False}, "failed", "failed")]
)
def test_what_was_found_settles_the_call_without_another_execution(
    data: object, state: str, ended: str
) -> None:
    world = lost()
    reconciling(world)
    pending = world.proceed(ToolFinished("id1", ToolResult(data=data, message="Found.")))
    assert isinstance(pending, RunTools)
    assert pending.invocations[0].call.id == "id2"
    assert (world.ledger["id1"].state, world.ledger["id1"].attempts) == (state, 1)
    assert world.types()[-3:] == ["activity.updated", f"tool.{ended}", "tool.started"]
    assert world.last("activity.updated")["status"] == ended


def test_a_call_that_had_no_effect_is_executed_again_as_the_same_call_with_the_same_row() -> None:
    world = lost()
    reconciling(world)
    pending = world.proceed(NothingDone("id1"))
    assert isinstance(pending, RunTools)
    assert [invocation.call.id for invocation in pending.invocations] == ["id1"]
    assert (world.ledger["id1"].state, world.ledger["id1"].attempts) == ("started", 2)
    assert world.types().count("tool.started") == 2
    assert world.types()[-1] == "tool.started"
    world.proceed(ToolFinished("id1", ToolResult()))
    assert world.last("activity.updated") | {"step": 0} == {
        "id": "id1:progress",
        "step": 0,
        "kind": "progress",
        "message": "Half.",
        "status": "completed",
        "public": {"at": 1},
    }


def test_the_second_execution_is_looked_after_as_the_first_was() -> None:
    world = lost()
    reconciling(world)
    world.proceed(NothingDone("id1"))
    world.crash()
    reconciling(world)
    world.proceed(NothingDone("id1"))
    assert world.ledger["id1"].attempts == 3


def test_a_call_that_nobody_knows_about_stays_in_doubt() -> None:
    world = lost()
    reconciling(world)
    pending = world.proceed(ToolInDoubt("id1"))
    assert isinstance(pending, RunTools)
    claim = world.ledger["id1"]
    assert (claim.state, claim.code) == ("in_doubt", "outcome_unknown")
    assert world.types()[-3:] == ["activity.updated", "tool.failed", "tool.started"]
    assert world.last("activity.updated")["status"] == "failed"
    assert world.last("tool.failed")["code"] == "outcome_unknown"
    assert json.loads(world.contents()[0])["retryable"] is False
    assert world.stored.state.streak is None


def test_workers_that_are_lost_while_they_look_are_counted() -> None:
    world = lost(recoveries=2)
    reconciling(world)
    world.crash()
    reconciling(world)
    world.crash()
    assert isinstance(world.proceed(), Park)
    assert world.stored.status is RunStatus.FAILED
    assert world.stored.failure_code == "recovery_exhausted"


def test_a_call_found_done_counts_as_done_for_repetitions() -> None:
    world = lost()
    reconciling(world)
    world.proceed(ToolFinished("id1", ToolResult(data=1)))
    world.proceed(ToolFinished("id2", ToolResult()))
    world.proceed(replied(ToolCall("post", {"n": 1}, "id3")))
    assert "id3" not in world.ledger


def test_a_settled_call_is_not_looked_after() -> None:
    world = lost()
    reconciling(world)
    world.proceed(ToolFinished("id1", ToolResult()))
    world.proceed(ToolFinished("id2", ToolResult()))
    world.crash()
    assert isinstance(world.proceed(), CallModel)
