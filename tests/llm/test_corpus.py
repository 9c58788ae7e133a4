"""Every recorded provider answer has its outcome, however its bytes are cut."""

import httpx
import pytest

from rungent.llm.classify import classify_status

from .attempts import Pieces, answering, attempt, failure_of, model_at, read_without_io
from .corpus import HttpCase, StreamCase, check, http_cases, stream_cases

STREAMS = stream_cases()
ANSWERS = http_cases()
SIZES = [pytest.param(1 << 30, id="whole"), pytest.param(7, id="7"), pytest.param(1, id="1")]


def test_the_corpus_is_complete() -> None:
    assert len(STREAMS) == 92
    assert len(ANSWERS) == 34


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", STREAMS, ids=lambda case: case.name)
def test_stream_is_understood_without_io(case: StreamCase, size: int) -> None:
    outcome = read_without_io(case.pieces(size), case.content_type, reset=case.reset)
    check(outcome, case.expect)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", STREAMS, ids=lambda case: case.name)
async def test_stream_is_understood_over_http(case: StreamCase, size: int) -> None:
    error = httpx.ReadError("reset") if case.reset else None
    body = Pieces(case.pieces(size), error)
    outcome = await attempt(model_at(answering(body, case.content_type)))
    check(outcome, case.expect)
    assert body.closed


@pytest.mark.parametrize("case", ANSWERS, ids=lambda case: case.name)
async def test_status_is_classified(case: HttpCase) -> None:
    model = model_at(lambda _: httpx.Response(case.status, headers=case.headers, content=case.body))
    failure = await failure_of(model)
    assert failure.terminal == (case.expect["outcome"] == "fail")
    expected = (
        "model_rejected"
        if failure.terminal
        else {408: "timeout", 429: "rate_limit"}.get(case.status, "server_error")
    )
    assert failure.reason == expected
    delay = case.expect.get("delay", "backoff")
    assert failure.retry_after == (None if delay == "backoff" else delay)


def test_no_status_case_needs_more_than_its_headers_and_body() -> None:
    """The classification itself knows no HTTP library."""
    import datetime

    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    for case in ANSWERS:
        headers = httpx.Headers(case.headers)
        failure = classify_status(case.status, headers, case.body, now)
        assert failure.terminal == (case.expect["outcome"] == "fail"), case.name
