"""A tool sees its call, reports progress, and can change nothing behind the runtime's back."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from pydantic import JsonValue

from tests.tools.samples import context


class Reports(list[tuple[str, JsonValue]]):
    async def __call__(self, message: str, public: JsonValue) -> None:
        self.append((message, public))


def test_the_idempotency_key_joins_run_and_call() -> None:
    assert context().idempotency_key == "run_1:call_1"
    assert context(call_id=None).idempotency_key is None


async def test_progress_is_trimmed_and_public_data_made_json() -> None:
    reports = Reports()
    ctx = context(report=reports)
    await ctx.report_progress("  Half\x00way ")
    await ctx.report_progress("x" * 280, public={"done": (1, float("inf"))})
    assert reports == [("Half�way", None), ("x" * 280, {"done": [1, None]})]


@pytest.mark.parametrize("message", ["", "  ", "x" * 281, None, 5, b"x"])
async def test_a_message_outside_the_rules_is_a_value_error(message: Any) -> None:
    reports = Reports()
    with pytest.raises(ValueError, match="1 to 280"):
        await context(report=reports).report_progress(message)
    assert reports == []


@pytest.mark.parametrize("more", [{"call_id": None, "report": Reports()}, {"report": None}])
async def test_progress_outside_a_call_is_a_runtime_error(more: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError):
        await context(**more).report_progress("Hello")


def test_the_resource_is_a_private_copy() -> None:
    original: dict[str, Any] = {"trip": {"city": "Rome"}}
    ctx = context(resource=original)
    with pytest.raises(TypeError):
        ctx.resource["trip"] = 1  # type: ignore[index]
    trip: Any = ctx.resource["trip"]
    trip["city"] = "Paris"
    assert original == {"trip": {"city": "Rome"}}


def test_a_context_is_frozen_and_hides_nothing_it_was_given() -> None:
    deps = {"db": object()}
    ctx = context(deps=deps, current_input="Hi")
    assert (ctx.deps, ctx.current_input, ctx.interaction_response) == (deps, "Hi", None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        ctx.run_id = "run_2"  # type: ignore[misc]
