"""Bytes become the same events however they are cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungent.llm import ModelFailure
from rungent.llm.sse import DocumentDecoder, EventDecoder, ServerEvent

MIXED = b"".join(
    (
        b"\xef\xbb\xbf: comment\r\n\r\nevent: note\rdata: one\r\n\r\n",
        b"data:two\ndata:  three\n\nid: 7\nretry: 10\ndata\n\n",
        "data: é\u2028🗼\x85\n\r\n".encode(),
        b"data: \xff\xfe\xe2\x82\r\rdata: last",
    )
)
MIXED_EVENTS = [
    ServerEvent("one", "note"),
    ServerEvent("two\n three"),
    ServerEvent("é\u2028🗼\x85"),
    ServerEvent("���"),
    ServerEvent("last"),
]


def decode(*pieces: bytes) -> list[ServerEvent]:
    decoder = EventDecoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events + decoder.close()


def cut(body: bytes, marks: list[int]) -> list[bytes]:
    edges = [0, *sorted(mark % (len(body) + 1) for mark in marks), len(body)]
    return [body[start:end] for start, end in pairwise(edges)]


def test_only_cr_lf_and_crlf_end_lines() -> None:
    assert decode(MIXED) == MIXED_EVENTS


@pytest.mark.parametrize("at", range(len(MIXED) + 1))
def test_cutting_the_bytes_anywhere_changes_nothing(at: int) -> None:
    assert decode(MIXED[:at], MIXED[at:]) == MIXED_EVENTS
    assert decode(MIXED[:at], b"", MIXED[at : at + 1], MIXED[at + 1 :]) == MIXED_EVENTS


@pytest.mark.parametrize(
    ("body", "events"),
    [
        (b"", []),
        (b"\n\n\n", []),
        (b":\n:only comments\n\n", []),
        (b"event: ping\ndata:\n\n", []),
        (b"event: ping\ndata:\ndata: \n\n", []),
        (b"event: ping\n\ndata: x\n\n", [ServerEvent("x")]),
        (b"data:x\n\ndata: y", [ServerEvent("x"), ServerEvent("y")]),
        (b"data: \xef\xbb\xbfx\n\n", [ServerEvent("\ufeffx")]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: x\n\n", []),
        (b"datax: 1\n data: 2\nDATA: 3\n\n", []),
        (b"event: a\nevent: b\ndata: x\n\ndata: y\n\n", [ServerEvent("x", "b"), ServerEvent("y")]),
        (b"data: a: b\n\n", [ServerEvent("a: b")]),
    ],
)
def test_fields_are_read_as_the_event_stream_grammar_says(
    body: bytes, events: list[ServerEvent]
) -> None:
    assert decode(body) == events
    assert decode(*(body[at : at + 1] for at in range(len(body)))) == events


@pytest.mark.parametrize("line", [b"data: [DONE]\n", b"data:[DONE] \r", b"data:  [DONE]\r\n"])
def test_done_needs_no_blank_line(line: bytes) -> None:
    (event,) = EventDecoder().feed(line)
    assert event.data.strip() == "[DONE]"


def test_done_after_other_data_is_not_the_end() -> None:
    assert EventDecoder().feed(b"data: {}\ndata: [DONE]\n\n") == [ServerEvent("{}\n[DONE]")]


def test_a_response_of_exactly_the_limit_is_read() -> None:
    body = b"data: 123\n\n"
    decoder = EventDecoder(max_bytes=len(body))
    assert decoder.feed(body) == [ServerEvent("123")]
    assert decoder.close() == []


@pytest.mark.parametrize("size", [1, 3, 100])
def test_events_within_the_limit_come_before_the_refusal(size: int) -> None:
    body = b"data: 1\n\ndata: 2\n\n"
    decoder = EventDecoder(max_bytes=12)
    events: list[ServerEvent] = []
    with pytest.raises(ModelFailure, match="invalid_response"):  # noqa: PT012
        for at in range(0, len(body), size):
            events += decoder.feed(body[at : at + size])
        decoder.close()
    assert events == [ServerEvent("1")]


def test_the_limit_of_a_response_is_16_mib() -> None:
    decoder = EventDecoder()
    mebibyte = b"x" * 1024 * 1024
    for _ in range(16):
        decoder.feed(mebibyte)
    assert decoder.feed(b"x") == []
    with pytest.raises(ModelFailure, match="invalid_response"):
        decoder.feed(b"x")


def test_a_document_is_one_event() -> None:
    decoder = DocumentDecoder()
    assert decoder.feed(b"\xef\xbb\xbf{\n") == decoder.feed(b"\n}") == []
    assert decoder.close() == [ServerEvent("{\n\n}")]


def test_a_document_over_the_limit_is_refused() -> None:
    decoder = DocumentDecoder(max_bytes=3)
    decoder.feed(b"123")
    with pytest.raises(ModelFailure, match="invalid_response"):
        decoder.feed(b"4")


@given(
    st.lists(
        st.sampled_from(
            [
                b"data:",
                b"event:",
                b" ",
                b"\r",
                b"\n",
                b"\r\n",
                b":",
                b"x",
                b"[DONE]",
                b"\xe2",
                b"\xef",
            ]
        )
        | st.binary(max_size=4)
    ).map(b"".join),
    st.lists(st.integers(0, 1000)),
)
def test_any_bytes_give_the_same_events_in_any_cut(body: bytes, marks: list[int]) -> None:
    assert decode(*cut(body, marks)) == decode(body)
