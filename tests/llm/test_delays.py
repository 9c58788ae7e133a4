"""A provider's wish to wait is read in each of its forms, and nonsense is not a wish."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungent.llm.delays import provider_delay, retry_delay_in

NOW = datetime(2026, 11, 8, 8, 49, 30, tzinfo=UTC)


def delay(body: Any = None, **headers: str) -> float | None:
    given_headers = httpx.Headers({name.replace("_", "-"): v for name, v in headers.items()})
    return provider_delay(given_headers, body, NOW)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2", 2),
        ("0", 0),
        (" 0.5 ", 0.5),
        (".5", 0.5),
        ("120", 120),
        ("Sun, 08 Nov 2026 08:49:37 GMT", 7),
        ("Sunday, 08-Nov-26 08:49:37 GMT", 7),
        ("Sun Nov  8 08:49:37 2026", 7),
        ("Sun, 08 Nov 2026 08:49:37 -0000", 7),
        ("Sun, 08 Nov 2026 09:49:37 +0100", 7),
        ("Sun, 08 Nov 2026 08:49:00 GMT", 0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str, seconds: float) -> None:
    assert delay(retry_after=value) == seconds


@pytest.mark.parametrize(
    "value",
    [
        *("", " ", "-5", "nan", "inf", "-inf", "1e400", "later", "1_000", "0x10", "٣", "2 s"),
        *("Sun, 99 Nov 2026 08:49:37 GMT", "Sun, 08 Nov 99999 08:49:37 GMT", "9" * 400),
    ],
)
def test_unreadable_values_are_ignored(value: str) -> None:
    assert provider_delay({"retry-after": value}, None, NOW) is None
    assert provider_delay({"retry-after-ms": value, "retry-after": "3"}, None, NOW) == 3


def test_milliseconds_come_first_then_the_header_then_the_body() -> None:
    body = [{"error": {"details": [{"retryDelay": "34.4s"}]}}]
    assert delay(body, retry_after_ms="1500", retry_after="2") == 1.5
    assert delay(body, retry_after_ms="soon", retry_after="2") == 2
    assert delay(body, retry_after_ms="soon", retry_after="later") == 34.4
    assert delay(body) == 34.4
    assert delay() is None


@pytest.mark.parametrize(
    "body",
    [
        None,
        "1s",
        {"retryDelay": None},
        {"retryDelay": "-1s"},
        {"retryDelay": ""},
        {"retryDelay": "s"},
        {"retryDelay": 5},
        {"retryDelay": "NaNs"},
        {"delay": "1s"},
    ],
)
def test_a_body_without_a_readable_delay_has_none(body: Any) -> None:
    assert retry_delay_in(body) is None


@given(st.text(), st.text())
def test_no_header_makes_it_raise(first: str, second: str) -> None:
    found = provider_delay({"retry-after-ms": first, "retry-after": second}, None, NOW)
    assert found is None or found >= 0
