"""Questions of tools as forms of the client, and the forms as answers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungent import Agent, InteractionRequest, ToolContext, ToolContinuation, ToolResult, tool
from rungent.asgi.mcp.elicitation import answer_in, can_elicit, elicitation
from rungent.interactions import InteractionSpec, Option, Question, validate_answer
from tests.mcp.calling import CAN_ASK, envelope, wire


def agent_asking(request: Any, *, approval: bool = False) -> Agent:
    """One tool asks `request`; its continuation shows the answer."""

    @tool(effect="read", approval="never")
    async def ask(ctx: ToolContext) -> ToolResult:
        """Ask."""
        return ToolResult(interaction=request)

    @tool(
        effect="write",
        approval="always" if approval else "never",
        confirmation="Use {note}?" if approval else None,
        requires_interaction_response=True,
    )
    async def use(ctx: ToolContext, note: str = "") -> Any:
        """Use the answer."""
        assert ctx.interaction_response is not None
        return [ctx.interaction_response.model_dump(mode="json"), ctx.run_id, ctx.call_id]

    return Agent(name="asking", instructions="-", tools=[ask, use])


THEN = ToolContinuation("use", {"note": "n"})
AB = [{"id": "a", "label": "A"}, {"id": "b", "label": "B", "description": "the other"}]


async def shown_and_answered(request: InteractionRequest, content: Any, action: str) -> Any:
    """The form, and the result once it was filled in."""
    async with wire(agent_asking(request)) as w:
        first = await w.call("ask", CAN_ASK)
        (key, form), *_ = first["inputRequests"].items()
        assert (key, form["method"], form["params"]["mode"]) == (
            "use",
            "elicitation/create",
            "form",
        )
        response = {"action": action, "content": content}
        state = first["requestState"]
        result = await w.call("ask", CAN_ASK, requestState=state, inputResponses={key: response})
    return form["params"], result


@pytest.mark.parametrize(
    ("request_", "content", "value"),
    [
        (InteractionRequest("text", "Why?", continuation=THEN), {"answer": " so "}, "so"),
        (
            InteractionRequest("choice", "?", options=AB, continuation=THEN),
            {"selected": "b"},
            {"selected": ["b"]},
        ),
        (
            InteractionRequest("choice", "?", options=AB, multiple=True, continuation=THEN),
            {"selected": ["b", "a"]},
            {"selected": ["a", "b"]},
        ),
        (
            InteractionRequest("choice", "?", options=AB, allow_custom=True, continuation=THEN),
            {"selected": "", "custom": "C"},
            {"selected": [], "custom": "C"},
        ),
        (
            InteractionRequest("choice", "?", options=AB, allow_skip=True, continuation=THEN),
            {"skipped": True},
            {"selected": [], "skipped": True},
        ),
        (
            InteractionRequest(
                "form",
                "?",
                questions=[
                    {"id": "who", "prompt": "Who?", "kind": "text"},
                    {"id": "what", "prompt": "What?", "kind": "choice", "options": AB,
                     "allow_custom": True, "required": False},
                    {"id": "what_custom", "prompt": "Else?", "kind": "text", "required": False},
                ],
                continuation=THEN,
            ),
            {"who": "me", "what_custom_": "D", "more": 1},
            {"answers": {"who": "me", "what": {"selected": [], "custom": "D"}}},
        ),
    ],
)  # fmt: skip
async def test_a_filled_form_is_the_answer_that_http_clients_would_send(
    request_: InteractionRequest, content: Any, value: Any
) -> None:
    form, result = await shown_and_answered(request_, content, "accept")
    assert form["message"] == request_.prompt
    trusted, run_id, call_id = envelope(result)["data"]
    assert trusted["value"] == value
    assert trusted["prompt"] == request_.prompt
    assert run_id.startswith("run_")
    assert call_id == "1"


async def test_a_form_is_flat_and_says_what_it_takes() -> None:
    request = InteractionRequest(
        "choice", "?", options=AB, allow_custom=True, allow_skip=True, skip_label="Later",
        continuation=THEN,
    )  # fmt: skip
    form, _ = await shown_and_answered(request, {"selected": "a"}, "accept")
    assert form["requestedSchema"] == {
        "type": "object",
        "properties": {
            "selected": {
                "type": "string",
                "title": "Answer",
                "oneOf": [
                    {"const": "a", "title": "A"},
                    {"const": "b", "title": "B – the other"},
                ],
            },
            "custom": {"type": "string", "title": "Own answer", "maxLength": 1000},
            "skipped": {"type": "boolean", "title": "Later", "default": False},
        },
        "required": [],
    }


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_question_that_is_sent_away_rejects_the_call(action: str) -> None:
    request = InteractionRequest("text", "Why?", continuation=THEN)
    _, result = await shown_and_answered(request, None, action)
    assert envelope(result)["code"] == "rejected"


async def test_declining_skips_what_may_be_skipped() -> None:
    request = InteractionRequest("choice", "?", options=AB, allow_skip=True, continuation=THEN)
    _, result = await shown_and_answered(request, None, "decline")
    assert envelope(result)["data"][0]["value"] == {"selected": [], "skipped": True}


async def test_a_continuation_that_needs_approval_asks_once_more() -> None:
    request = InteractionRequest("text", "Why?", continuation=THEN)
    async with wire(agent_asking(request, approval=True)) as w:
        first = await w.call("ask", CAN_ASK)
        response = {"use": {"action": "accept", "content": {"answer": "so"}}}
        second = await w.call(
            "ask", CAN_ASK, requestState=first["requestState"], inputResponses=response
        )
        asked = second["inputRequests"]["approval"]["params"]["message"]
        response = {"approval": {"action": "accept", "content": {"decision": "approve"}}}
        third = await w.call(
            "ask", CAN_ASK, requestState=second["requestState"], inputResponses=response
        )
    assert asked == "Use n?"
    assert envelope(third)["data"][0]["value"] == "so"


@pytest.mark.parametrize(
    "request_",
    [
        InteractionRequest("text", "", continuation=THEN),
        InteractionRequest("text", "1. A\n2. B", continuation=THEN),
        InteractionRequest("text", "?", continuation=ToolContinuation("ask")),
        InteractionRequest("text", "?", continuation=ToolContinuation("none")),
        InteractionRequest("text", "?", continuation=ToolContinuation("use", {"x": 1})),
        InteractionRequest("text", "?", continuation=ToolContinuation("use", 5)),  # type: ignore[arg-type]
        InteractionRequest("text", "?", continuation=None),  # type: ignore[arg-type]
    ],
)
async def test_a_question_that_breaks_a_rule_is_not_asked(request_: InteractionRequest) -> None:
    async with wire(agent_asking(request_)) as w:
        read = envelope(await w.call("ask", CAN_ASK))
    assert (read["code"], read["retryable"]) == ("invalid_interaction", False)


@pytest.mark.parametrize(
    ("able", "can"),
    [
        ({}, False),
        ({"elicitation": None}, False),
        ({"elicitation": True}, False),
        ({"elicitation": {}}, True),
        ({"elicitation": {"form": {}}}, True),
        ({"elicitation": {"form": {}, "url": {}}}, True),
        ({"elicitation": {"url": {}}}, False),
    ],
)
async def test_only_clients_that_show_forms_are_asked(able: Any, can: bool) -> None:
    assert can_elicit(able) is can
    async with wire() as w:
        result = await w.call("ask", able)
    assert (result["resultType"] == "input_required") is can


# What a checked question may hold.
names = st.text(
    st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=8
).filter(str.strip)
options = st.lists(st.builds(Option, id=names, label=names), min_size=1, max_size=4).map(
    lambda found: tuple({option.id: option for option in found}.values())
)
questions = st.one_of(
    st.builds(Question, id=names, prompt=names, kind=st.just("text"), required=st.booleans()),
    st.builds(
        Question,
        id=names,
        prompt=names,
        kind=st.just("choice"),
        options=options,
        multiple=st.booleans(),
        allow_custom=st.booleans(),
        required=st.booleans(),
    ),
)
forms = st.lists(questions, min_size=1, max_size=4).map(
    lambda found: InteractionSpec(
        kind="form", prompt="?", questions=tuple({q.id: q for q in found}.values())
    )
)


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(forms, st.data())
def test_whatever_a_form_may_hold_is_an_answer(spec: InteractionSpec, data: st.DataObject) -> None:
    """A client fills every field in as its schema says; nothing of it is lost or refused."""
    schema = elicitation(spec)["params"]["requestedSchema"]
    content: dict[str, Any] = {}
    for name, field in schema["properties"].items():
        if "oneOf" in field:
            content[name] = data.draw(st.sampled_from([c["const"] for c in field["oneOf"]]))
        elif "items" in field:
            content[name] = [choice["const"] for choice in field["items"]["anyOf"]]
        elif field["title"] != "Own answer":
            content[name] = "text"
    value = answer_in(spec, {"action": "accept", "content": content})
    normalised: Any = validate_answer(spec, value)
    assert set(normalised["answers"]) == {question.id for question in spec.questions}
