"""Events become one reply: errors first, then text, calls, finish and what goes back."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungent.llm import Heartbeat, ModelCompleted, ModelFailure, TextDelta
from rungent.llm.assembly import ReplyAssembler
from rungent.llm.sse import ServerEvent

from .attempts import assemble, call, calls_in, delta, read_without_io, reply, sse

DONE = ServerEvent("[DONE]")


def event(value: Any, name: str = "") -> ServerEvent:
    return ServerEvent(json.dumps(value), name)


def completed(*events: ServerEvent, finish: str = "stop") -> ModelCompleted:
    outcome = reply(*events, finish=finish)
    assert outcome.completed is not None, outcome.reason
    return outcome.completed


class TestText:
    def test_every_event_is_a_delta_or_a_sign_of_life(self) -> None:
        assembler = ReplyAssembler()
        assert assembler.feed(delta(role="assistant")) == [Heartbeat()]
        assert assembler.feed(delta(content="Hi")) == [TextDelta("Hi")]
        assert assembler.feed(delta(reasoning_content="hm")) == [Heartbeat()]
        assert assembler.feed(event({"usage": None})) == [Heartbeat()]
        assert assembler.feed(DONE) == []
        assert assembler.done

    @pytest.mark.parametrize(
        ("content", "text"),
        [
            ("a", "a"),
            (None, ""),
            (7, ""),
            ({"text": "a"}, ""),
            ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
            ([{"text": "a"}, "b", None, 7, {"type": "text", "text": None}], "ab"),
            ([{"type": "thinking", "thinking": [{"type": "text", "text": "secret"}]}], ""),
            ([{"type": "image_url", "text": "no"}], ""),
        ],
    )
    def test_text_is_a_string_or_the_text_parts_of_a_list(self, content: Any, text: str) -> None:
        assert completed(delta(content=content)).text == text

    @pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "thinking"])
    def test_reasoning_is_no_text(self, key: str) -> None:
        assert completed(delta(**{key: "secret"}), delta(content="Hi")).text == "Hi"

    def test_refusal_is_the_answer_when_there_is_no_content(self) -> None:
        assembler = ReplyAssembler()
        assert assembler.feed(delta(refusal="I can")) == [Heartbeat()]
        assert assembler.feed(delta("stop", refusal="not.")) == [Heartbeat()]
        late, last = assembler.finish()
        assert late == TextDelta("I cannot.")
        assert isinstance(last, ModelCompleted)
        assert last.text == "I cannot."

    def test_refusal_beside_content_is_dropped(self) -> None:
        assert completed(delta(content="Hi", refusal="no")).text == "Hi"

    def test_refusal_may_be_a_part_of_a_list(self) -> None:
        part = {"type": "refusal", "refusal": "no"}
        assert completed(delta(content=[part])).text == "no"

    def test_held_back_text_comes_before_the_completion(self) -> None:
        assembler = ReplyAssembler()
        assert assembler.feed(delta("stop", content="<thi")) == [Heartbeat()]
        late, last = assembler.finish()
        assert late == TextDelta("<thi")
        assert isinstance(last, ModelCompleted)
        assert last.text == "<thi"

    def test_think_stripping_can_be_switched_off(self) -> None:
        outcome = reply(delta(content="<think>a</think>b"), strip_think=False)
        assert outcome.deltas == ["<think>a</think>b"]


class TestChoices:
    @pytest.mark.parametrize(
        "value", [{}, {"choices": None}, {"choices": []}, {"choices": {}}, {"choices": [None, 1]}]
    )
    def test_an_event_without_choices_is_a_sign_of_life(self, value: Any) -> None:
        assert ReplyAssembler().feed(event(value)) == [Heartbeat()]

    @pytest.mark.parametrize(
        ("choices", "text"),
        [
            (
                [{"index": 1, "delta": {"content": "b"}}, {"index": 0, "delta": {"content": "a"}}],
                "a",
            ),
            ([{"delta": {"content": "a"}}], "a"),
            ([{"index": None, "delta": {"content": "a"}}], "a"),
            ([{"index": 1, "delta": {"content": "b"}}], ""),
            ([{"index": 0, "message": {"content": "a"}}], "a"),
            ([{"index": 0, "delta": None, "message": {"content": "a"}}], "a"),
            ([{"index": 0, "delta": {}, "message": {"content": "a"}}], ""),
            ([{"index": 0}], ""),
        ],
    )
    def test_one_choice_counts(self, choices: Any, text: str) -> None:
        assert completed(event({"choices": choices})).text == text

    def test_a_document_is_one_event(self) -> None:
        message = {"content": "Hi", "tool_calls": None}
        body = {"choices": [{"message": message, "finish_reason": "stop"}]}
        outcome = read_without_io([json.dumps(body).encode()], "application/json")
        assert outcome.deltas == ["Hi"]

    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            (b"", "invalid_response"),
            (b"[]", "invalid_response"),
            (b"<html>", "invalid_response"),
            (b"{}", "stream_incomplete"),
            (b'{"error": {"code": 503}}', "provider_error"),
            (b'{"error": {"code": 400}}', "model_rejected"),
        ],
    )
    def test_a_document_that_is_no_completion_is_a_failure(self, body: bytes, reason: str) -> None:
        assert read_without_io([body], "application/json").reason == reason


class TestErrors:
    @pytest.mark.parametrize(
        ("error", "reason", "terminal"),
        [
            ({"code": 400}, "model_rejected", True),
            ({"code": "400"}, "model_rejected", True),
            ({"code": 499}, "model_rejected", True),
            ({"code": 408}, "provider_error", False),
            ({"code": 429}, "provider_error", False),
            ({"code": "429"}, "provider_error", False),
            ({"code": 500}, "provider_error", False),
            ({"code": None}, "provider_error", False),
            ({"code": "rate_limit"}, "provider_error", False),
            ({"code": "4" * 5000}, "provider_error", False),
            ({"code": "٤٠٠"}, "provider_error", False),
            ({"code": True}, "provider_error", False),
            ({"code": []}, "provider_error", False),
            ({"code": "tool_use_failed", "status_code": 400}, "invalid_tool_arguments", False),
            ({"message": "x"}, "provider_error", False),
            ("overloaded", "provider_error", False),
            (403, "model_rejected", True),
            (502, "provider_error", False),
            (["x"], "provider_error", False),
            (True, "provider_error", False),
        ],
    )
    @pytest.mark.parametrize("name", ["", "error"])
    def test_an_error_comes_before_everything_else(
        self, error: Any, reason: str, terminal: bool, name: str
    ) -> None:
        choices = [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}]
        outcome = assemble([event({"error": error, "choices": choices}, name), DONE])
        assert (outcome.kind, outcome.reason) == ("fail" if terminal else "retry", reason)
        assert outcome.deltas == []

    @pytest.mark.parametrize("error", [None, False, 0, "", {}, []])
    def test_an_empty_error_is_none(self, error: Any) -> None:
        assert ReplyAssembler().feed(event({"error": error})) == [Heartbeat()]

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            ('{"code": 401}', "model_rejected"),
            ('{"code": "422"}', "model_rejected"),
            ('{"message": "overloaded"}', "provider_error"),
            ("{}", "provider_error"),
            ("overloaded", "provider_error"),
            ("[]", "provider_error"),
        ],
    )
    def test_an_event_named_error_is_one_whatever_it_holds(self, data: str, reason: str) -> None:
        assert assemble([ServerEvent(data, "error")]).reason == reason

    def test_a_delay_in_the_error_is_passed_on(self) -> None:
        details = [{"retryDelay": "2s"}]
        with pytest.raises(ModelFailure) as caught:
            ReplyAssembler().feed(event({"error": {"code": 429, "details": details}}))
        assert caught.value.retry_after == 2

    @pytest.mark.parametrize("data", ["[]", "1", "null", '"x"', "{", "nope", "[" * 100_000])
    def test_an_event_that_is_no_object_is_invalid(self, data: str) -> None:
        assert assemble([ServerEvent(data)]).reason == "invalid_response"

    def test_the_failure_of_an_unreadable_event_holds_nothing_of_it(self) -> None:
        with pytest.raises(ModelFailure) as caught:
            ReplyAssembler().feed(ServerEvent("private detail"))
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None

    @pytest.mark.parametrize("finish", ["error", "insufficient_system_resource"])
    def test_an_interrupted_finish_is_a_provider_error(self, finish: str) -> None:
        assert reply(delta(content="x"), finish=finish).reason == "provider_error"


class TestFinish:
    @pytest.mark.parametrize("finish", [None, "", 7, True])
    def test_without_finish_or_done_the_reply_is_incomplete(self, finish: Any) -> None:
        assert assemble([delta(finish, content="x")]).reason == "stream_incomplete"

    def test_done_is_enough(self) -> None:
        assert assemble([delta(content="x"), DONE]).kind == "ok"

    def test_nothing_after_done_counts(self) -> None:
        assert assemble([delta(content="x"), DONE, event({"error": "late"})]).kind == "ok"

    def test_reading_goes_on_after_a_finish(self) -> None:
        usage = {"prompt_tokens": 1, "completion_tokens": 2}
        made = completed(delta("stop", content="a"), delta(content="b"), event({"usage": usage}))
        assert made.text == "ab"
        assert made.usage == {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}

    @pytest.mark.parametrize(
        ("finish", "exposed"),
        [("stop", "stop"), ("length", "length"), ("eos", "stop"), ("tool_calls", "stop")],
    )
    def test_finish_of_a_text(self, finish: str, exposed: str) -> None:
        assert completed(delta(content="x"), finish=finish).finish_reason == exposed

    @pytest.mark.parametrize("finish", ["stop", "tool_calls", "function_call", "eos"])
    def test_finish_of_calls_is_tool_calls_whatever_was_said(self, finish: str) -> None:
        made = completed(delta(content="x"), call("t", "{}", index=0), finish=finish)
        assert (made.finish_reason, made.text) == ("tool_calls", "x")

    def test_length_with_any_call_is_a_malformed_call(self) -> None:
        outcome = reply(call("t", "{}", index=0), finish="length")
        assert outcome.reason == "invalid_tool_arguments"

    def test_length_anywhere_counts(self) -> None:
        assert reply(call("t", "{}", finish="length")).reason == "invalid_tool_arguments"

    @pytest.mark.parametrize("events", [[], [delta(content="x")], [call("t", "{}")]])
    def test_content_filter_is_terminal(self, events: list[ServerEvent]) -> None:
        outcome = reply(*events, finish="content_filter")
        assert (outcome.kind, outcome.reason) == ("fail", "content_filtered")

    @pytest.mark.parametrize(
        ("usage", "expected"),
        [
            ({"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 9}, (1, 2, 9)),
            ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": None}, (0, 0, 0)),
            ({"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": "9"}, (1, 2, 3)),
            ({"prompt_tokens": 1}, None),
            ({"prompt_tokens": -1, "completion_tokens": 2}, None),
            ({"prompt_tokens": 1.0, "completion_tokens": 2}, None),
            ({"prompt_tokens": True, "completion_tokens": 2}, None),
            ({}, None),
            (None, None),
            (7, None),
        ],
    )
    def test_usage_needs_two_counts(
        self, usage: Any, expected: tuple[int, int, int] | None
    ) -> None:
        made = completed(event({"usage": usage})).usage
        assert (tuple(made.values()) if made else None) == expected

    def test_the_last_usage_wins_and_null_is_none(self) -> None:
        first = {"prompt_tokens": 1, "completion_tokens": 1}
        last = {"prompt_tokens": 2, "completion_tokens": 2}
        events = [event({"usage": value}) for value in (first, last, None, {})]
        made = completed(*events).usage
        assert made == {"input_tokens": 2, "output_tokens": 2, "total_tokens": 4}


class TestCalls:
    def test_fragments_of_one_index_are_one_call(self) -> None:
        outcome = reply(call("t", '{"a"', index=3, id="c"), call(None, ": 1}", index=3))
        assert calls_in(outcome) == [("t", {"a": 1})]
        assert outcome.completed is not None
        assert outcome.completed.tool_calls[0].id == "c"

    def test_order_is_that_of_appearance(self) -> None:
        outcome = reply(call("b", "{}", index=5), call("a", "{}", index=1))
        assert calls_in(outcome) == [("b", {}), ("a", {})]

    def test_one_index_with_two_ids_is_two_calls_also_when_interleaved(self) -> None:
        outcome = reply(
            call("a", "{", index=0, id="1"),
            call("b", "{", index=0, id="2"),
            call(None, '"x": 1', index=0, id="1"),
            call(None, "}", index=0),
            call(None, "}", index=0, id="2"),
        )
        assert calls_in(outcome) == [("a", {"x": 1}), ("b", {})]

    def test_an_id_that_comes_late_opens_no_call(self) -> None:
        outcome = reply(call("a", "{", index=0), call(None, "}", index=0, id="1"))
        assert calls_in(outcome) == [("a", {})]

    @pytest.mark.parametrize("empty", ["", None, 7])
    def test_nothing_overwrites_an_id(self, empty: Any) -> None:
        made = completed(call("a", "{", index=0, id="1"), call("", "}", index=0, id=empty))
        assert made.tool_calls[0].id == "1"

    def test_without_index_the_id_decides_and_without_id_the_last_call(self) -> None:
        outcome = reply(
            call("a", "{", id="1"),
            call("b", "{", id="2"),
            call(None, "}", id="1"),
            call(None, "}"),
        )
        assert calls_in(outcome) == [("a", {}), ("b", {})]

    def test_a_name_after_complete_arguments_opens_a_call(self) -> None:
        assert calls_in(reply(call("a", "{}"), call("b", "{}"))) == [("a", {}), ("b", {})]
        assert calls_in(reply(call("a", '{"x"'), call("a", ": 1}"))) == [("a", {"x": 1})]
        assert calls_in(reply(call("a"), call(None, "{}"))) == [("a", {})]

    def test_the_same_id_at_two_indexes_is_two_calls(self) -> None:
        made = completed(call("a", "{}", index=0, id="1"), call("b", "{}", index=1, id="1"))
        assert [made_call.id for made_call in made.tool_calls] == ["1", "1"]

    @pytest.mark.parametrize(
        ("names", "name"),
        [
            (["a", "a", "a"], "a"),
            (["mo", "ve"], "move"),
            (["go", "go_home"], "gogo_home"),
            ([None, "", "a"], "a"),
            ([" a ", "a"], "a"),
            (["a", 7], "a"),
        ],
    )
    def test_a_name_is_put_together(self, names: list[Any], name: str) -> None:
        fragments = [call(part, None, index=0, id="c") for part in names]
        assert calls_in(reply(*fragments)) == [(name, {})]

    @pytest.mark.parametrize("name", [None, "", "  "])
    def test_a_call_without_name_is_malformed(self, name: Any) -> None:
        assert reply(call(name, '{"a": 1}', index=0)).reason == "invalid_tool_arguments"

    def test_a_malformed_call_is_named(self) -> None:
        with pytest.raises(ModelFailure) as caught:
            TestCalls._finish(call("good", "{}", index=0), call("bad", "{", index=1))
        assert caught.value.tool_name == "bad"
        with pytest.raises(ModelFailure) as caught:
            TestCalls._finish(call("a", "{}", index=0), call("b", "{}", index=1, finish="length"))
        assert caught.value.tool_name == "b"

    @staticmethod
    def _finish(*events: ServerEvent) -> None:
        assembler = ReplyAssembler()
        for one in (*events, DONE):
            assembler.feed(one)
        assembler.finish()

    @pytest.mark.parametrize(
        ("parts", "arguments"),
        [
            ([{"a": 1}], {"a": 1}),
            ([dict[str, int](), '{"a": 1}'], {"a": 1}),
            (['{"b"', {"a": 1}], {"a": 1}),
            ([{"a": 1}, None, ""], {"a": 1}),
            ([None, '{"a": "\ud83d', '\uddfc"}'], {"a": "🗼"}),
        ],
    )
    def test_arguments_are_strings_or_an_object(self, parts: list[Any], arguments: Any) -> None:
        fragments = [call("t", part, index=0) for part in parts]
        assert calls_in(reply(*fragments)) == [("t", arguments)]

    @pytest.mark.parametrize("depth", [50, 300, 900, 990, 100_000])
    @pytest.mark.parametrize(
        "fragment",
        [
            '{"function": {"name": "t", "arguments": DEEP}}',
            '{"function": {"name": "t"}, "extra": DEEP}',
        ],
    )
    def test_deep_nesting_is_read_or_refused(self, fragment: str, depth: int) -> None:
        deep = fragment.replace("DEEP", '{"a":' * depth + "1" + "}" * depth)
        body = f'{{"choices": [{{"delta": {{"tool_calls": [{deep}]}}, "finish_reason": "stop"}}]}}'
        outcome = assemble([ServerEvent(body)])
        assert outcome.reason in ("", "invalid_response", "invalid_tool_arguments")

    @pytest.mark.parametrize("arguments", [[], [1], 7, True, {"a": float("inf")}])
    def test_other_arguments_are_malformed(self, arguments: Any) -> None:
        assert reply(call("t", arguments, index=0)).reason == "invalid_tool_arguments"

    def test_an_empty_fragment_is_no_call(self) -> None:
        empty = delta(tool_calls=[{"index": 0, "id": None, "function": {"name": None}}, None, 7])
        assert reply(empty, delta(content="Hi")).kind == "ok"

    def test_a_legacy_call_is_one_call(self) -> None:
        outcome = reply(
            delta(function_call={"name": "t", "arguments": '{"a"'}),
            delta(function_call={"arguments": ": 1}"}),
        )
        assert calls_in(outcome) == [("t", {"a": 1})]

    def test_a_call_in_both_forms_is_made_once(self) -> None:
        both = delta(
            function_call={"name": "t", "arguments": "{}"},
            tool_calls=[{"index": 0, "id": "c", "function": {"name": "t", "arguments": "{}"}}],
        )
        assert calls_in(reply(both)) == [("t", {})]

    def test_an_empty_legacy_call_is_none(self) -> None:
        assert reply(delta(content="Hi", function_call={"name": ""})).kind == "ok"

    def test_names_and_ids_are_storable(self) -> None:
        (made,) = completed(call("a\x00", "{}", id="c\ud83d")).tool_calls
        assert (made.name, made.id) == ("a\ufffd", "c\ufffd")


class TestEcho:
    def test_nothing_to_send_back_is_none(self) -> None:
        assert completed(delta(content="Hi", reasoning="", reasoning_content=None)).echo is None

    def test_reasoning_goes_back_as_a_whole_message_would_hold_it(self) -> None:
        made = completed(
            delta(reasoning_content="be", reasoning_details=[{"type": "t", "text": "be"}]),
            delta(reasoning_content="cause", reasoning_details=[{"type": "t", "text": "cause"}]),
            delta(reasoning_details=[{"type": "t", "text": None, "signature": "s"}]),
            delta(reasoning_details=[{"type": "encrypted", "data": "x"}, "odd"]),
            delta(thinking={"budget": 1}),
        )
        assert made.echo is not None
        assert made.echo.message == {
            "reasoning_content": "because",
            "reasoning_details": [
                {"type": "t", "text": "because"},
                {"type": "t", "text": None, "signature": "s"},
                {"type": "encrypted", "data": "x"},
                "odd",
            ],
            "thinking": {"budget": 1},
        }

    def test_unknown_keys_go_back_with_their_call(self) -> None:
        made = completed(
            call("a", "{}", index=0, type="function"),
            call("b", "{}", index=1, extra_content={"s": 1}, note=None),
            call(None, None, index=1, extra_content={"s": 2}),
        )
        assert made.echo is not None
        assert made.echo.calls == ({}, {"extra_content": {"s": 2}})
        assert made.echo.message == {}

    def test_an_echo_can_be_sent(self) -> None:
        value = {"n": float("nan"), "s": ["\ud83d"]}
        made = completed(
            delta(reasoning_content="\ud83d"),
            delta(reasoning_content="\uddfc"),
            call("a", "{}", index=0, extra=value),
        )
        assert made.echo is not None
        assert made.echo.message == {"reasoning_content": "🗼"}
        assert made.echo.calls == ({"extra": {"n": None, "s": ["\ufffd"]}},)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats() | st.sampled_from(["", "a", "{}"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "index",
                    "delta",
                    "message",
                    "content",
                    "text",
                    "type",
                    "refusal",
                    "tool_calls",
                    "id",
                    "function",
                    "name",
                    "arguments",
                    "function_call",
                    "finish_reason",
                    "error",
                    "code",
                    "usage",
                    "prompt_tokens",
                    "completion_tokens",
                    "reasoning",
                    "reasoning_details",
                    "extra",
                    "retryDelay",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@st.composite
def shaped_events(draw: st.DrawFn) -> list[Any]:
    """Events that look like chunks as far as the choices, and like anything below."""
    values = draw(st.lists(_JSON, max_size=4))
    finish = draw(st.sampled_from([None, "stop", "length", "tool_calls"]))
    calls = draw(st.lists(_JSON, max_size=3))
    return [
        *({"choices": [{"index": 0, "delta": value, "finish_reason": finish}]} for value in values),
        {"choices": [{"delta": {"tool_calls": calls}}]},
        *draw(st.lists(_JSON, max_size=1)),
    ]


@given(shaped_events(), st.integers(1, 9))
def test_any_json_gives_one_outcome_in_any_cut(values: list[Any], size: int) -> None:
    body = sse(*values)
    whole = read_without_io([body])
    pieces = read_without_io(body[at : at + size] for at in range(0, len(body), size))
    # As text, since NaN differs from itself.
    assert repr(pieces) == repr(whole)


@given(st.binary(), st.sampled_from(["text/event-stream", "application/json"]), st.booleans())
def test_any_bytes_are_a_reply_or_a_model_failure(
    body: bytes, content_type: str, reset: bool
) -> None:
    read_without_io([b"data: ", body], content_type, reset=reset)
    read_without_io([body], content_type, reset=reset)
