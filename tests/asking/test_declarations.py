"""Mistakes show where a tool is declared or asks, not when somebody clicks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from rungent import Agent, Identity, InvalidResponse, ToolContext, ToolResult, tool
from rungent.tools.answers import AnswerSchema
from rungent.tools.asking import AgainAsk, Ask, token_hash
from tests.asking.channel import Decision, ask_channel

ME = Identity("ada", "acme")


def context(made: Any, **changes: Any) -> ToolContext:
    values: dict[str, Any] = {
        "identity": ME,
        "session_id": "ses_1",
        "run_id": "run_1",
        "call_id": "c1",
    }
    return ToolContext.create(asks=made.interactive.rules, **values | changes)


def asker(**options: Any) -> Any:
    @tool(effect="external", approval="never", **options)
    async def asker(ctx: ToolContext, message: str) -> ToolResult:  # noqa: ASYNC124 - a tool
        """Ask."""
        raise NotImplementedError

    return asker


def anybody(*given: object) -> bool:
    return bool(given)


async def no_context(answer: Decision) -> None: ...
async def no_model(ctx: ToolContext, answer: dict[str, Any]) -> None: ...
async def other_argument(ctx: ToolContext, answer: Decision, message: int) -> None: ...
async def unnamed(ctx: ToolContext, answer: Decision, *rest: str) -> None: ...
async def no_schema(ctx: ToolContext, answer: Decision, at: Callable[[], int]) -> None: ...
def not_async(ctx: ToolContext, answer: Decision) -> None: ...


USELESS: list[Any] = [no_context, no_model, other_argument, unnamed, no_schema, not_async]


@pytest.mark.parametrize("function", USELESS)
def test_a_continuation_that_could_not_be_called_is_refused(function: Any) -> None:
    with pytest.raises(TypeError):
        asker().answered(function)


async def going_on(ctx: ToolContext, answer: Decision, *, message: str, at: int) -> None: ...
async def over(ctx: ToolContext, reason: str, *, at: int = 1) -> None: ...
async def other_state(ctx: ToolContext, reason: str, *, at: str) -> None: ...
async def no_reason(ctx: ToolContext, reason: int) -> None: ...


def test_each_part_is_declared_once_and_both_agree_about_the_state() -> None:
    made = asker()
    assert made.answered(going_on) is going_on
    made.closed(over)
    for declare, again in ((made.answered, going_on), (made.closed, over)):
        with pytest.raises(TypeError):
            declare(again)
    for bad in (other_state, no_reason):
        both = asker()
        both.answered(going_on)
        with pytest.raises(TypeError):
            both.closed(bad)


def test_parts_without_the_others_are_refused() -> None:
    lonely = asker()
    lonely.closed(over)
    with pytest.raises(TypeError):
        Agent("helper", "Help.", tools=[lonely])
    with pytest.raises(TypeError):
        Agent("helper", "Help.", tools=[asker(responders=anybody)])
    with pytest.raises(TypeError):
        asker(announce=anybody)
    with pytest.raises(TypeError):
        asker(expires_in=timedelta(1))
    with pytest.raises(TypeError):
        asker(responders=["bob"])

    @tool(effect="read", approval="never", parallel=True)
    async def beside(ctx: ToolContext) -> None:
        """Read."""

    with pytest.raises(TypeError):
        beside.answered(going_on)


def test_the_continuation_is_no_tool() -> None:
    agent = Agent("helper", "Help.", tools=[ask_channel()])
    assert [one.name for one in agent.tools] == ["ask_channel"]
    assert "answered" not in str(agent.tools[0].schema)


def test_a_token_is_22_characters_and_valid_at_once() -> None:
    ask = context(ask_channel()).ask(Decision, prompt=" Yes? ")
    assert ask.prompt == "Yes?"
    tokens = {ask.action(approved=True) for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(token) == 22 and token.isascii() for token in tokens)
    for wrong, reason in (
        ({}, "missing_answer"),
        ({"approved": 1}, "type_mismatch"),
        ({"approved": True, "by": "me"}, "unknown_field"),
    ):
        with pytest.raises(InvalidResponse) as refused:
            ask.action(**wrong)
        assert refused.value.reason == reason
    kept = ask.keep(message_id="m1")
    assert {one.token_hash for one in kept.buttons} == {token_hash(one) for one in tokens}
    for late in (lambda: ask.action(approved=True), lambda: ask.keep(message_id="m1")):
        with pytest.raises(RuntimeError):
            late()


@pytest.mark.parametrize("state", [{}, {"message_id": 1}, {"message_id": "m1", "more": 1}])
def test_state_that_does_not_fit_is_refused_before_it_is_stored(state: Any) -> None:
    with pytest.raises(ValueError, match="state"):
        context(ask_channel()).ask(Decision, prompt="Yes?").keep(**state)


BAD: list[tuple[Any, type[Exception]]] = [
    ({"prompt": " "}, ValueError),
    ({"prompt": "x" * 4001}, ValueError),
    ({"expires_in": timedelta()}, ValueError),
    ({"expires_in": timedelta(days=4000)}, ValueError),
    ({"expires_in": 60}, TypeError),
    ({"responders": []}, ValueError),
    ({"responders": "bob"}, TypeError),
    ({"responders": [1]}, TypeError),
    ({"responders": anybody}, TypeError),
    ({"max_answers": 0}, ValueError),
    ({"max_answers": True}, ValueError),
]


@pytest.mark.parametrize(("options", "error"), BAD)
def test_a_question_with_bad_values_is_refused(options: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        context(ask_channel()).ask(Decision, **{"prompt": "Yes?"} | options)


def test_only_the_call_of_an_asking_tool_asks_and_only_a_continuation_asks_again() -> None:
    made = ask_channel()
    plain, answered = context(asker()), context(made, answered_by=ME, answers=1)
    for ctx in (plain, answered, context(made, call_id=None)):
        with pytest.raises(RuntimeError):
            ctx.ask(Decision, prompt="Yes?")
    for ctx in (plain, context(made)):
        with pytest.raises(RuntimeError):
            ctx.again(message_id="m1")
    assert answered.again(message_id="m2") == AgainAsk({"message_id": "m2"})
    assert answered.idempotency_key == "run_1:c1:1"

    class Other(BaseModel):
        approved: bool

    with pytest.raises(TypeError):
        context(made).ask(Other, prompt="Yes?")


def test_a_text_is_a_subject_of_the_owners_tenant() -> None:
    ask: Ask = context(ask_channel()).ask(
        Decision, prompt="Yes?", responders=["bob", Identity("cleo"), "bob"]
    )
    kept = ask.keep(message_id="m1")
    assert kept.responders == (Identity("bob", "acme"), Identity("cleo"))


class Guest(BaseModel):
    name: Annotated[str, Field(min_length=1, max_length=5)]
    meal: Literal["fish", "rice"] = "rice"
    tags: list[int] = []


class Open(BaseModel, extra="allow"):
    name: str


@pytest.mark.parametrize(
    ("value", "reason", "path"),
    [
        (None, "type_mismatch", []),
        ([], "type_mismatch", []),
        ({}, "missing_answer", ["name"]),
        ({"name": 1}, "type_mismatch", ["name"]),
        ({"name": ""}, "invalid_value", ["name"]),
        ({"name": "x" * 6}, "too_long", ["name"]),
        ({"name": "a", "tags": [1, "2"]}, "type_mismatch", ["tags", 1]),
        ({"name": "a", "meal": "beef"}, "invalid_value", ["meal"]),
        ({"name": "a", "age": 3}, "unknown_field", ["age"]),
    ],
)
def test_the_first_broken_rule_is_told_with_its_place_and_without_the_value(
    value: Any, reason: str, path: list[Any]
) -> None:
    with pytest.raises(InvalidResponse) as refused:
        AnswerSchema(Guest).check(value)
    assert (refused.value.reason, refused.value.path) == (reason, path)


def test_a_valid_answer_has_one_normal_form() -> None:
    checked = AnswerSchema(Guest).check({"tags": [2], "name": "Ada"})
    assert checked.normal == {"meal": "rice", "name": "Ada", "tags": [2]}
    assert AnswerSchema(Guest).check(checked.normal) == checked
    assert AnswerSchema(Guest).schema["additionalProperties"] is False
    more = AnswerSchema(Open).check({"name": "Ada", "age": 3})
    assert more.normal == {"age": 3, "name": "Ada"}
