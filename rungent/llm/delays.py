"""Read how long a provider asks to wait before the next attempt.

Unreadable, negative and non-finite values count as not given: a wrong header must neither
stop the retries nor make them endless. Source: docs/model-adapter.md
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from pydantic import JsonValue

__all__ = ["provider_delay", "retry_delay_in"]

_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")


def provider_delay(headers: Mapping[str, str], body: JsonValue, now: datetime) -> float | None:
    """Seconds >= 0 that the answer asks for, or None.

    The first of these that can be read: `retry-after-ms`, `Retry-After` as seconds or as an
    HTTP date, a `retryDelay` anywhere in the JSON body. `headers` looks names up
    regardless of case; `now` is aware.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    stated = headers.get("retry-after", "")
    for delay in (_number(stated), _until(stated, now), retry_delay_in(body)):
        if delay is not None:
            return delay
    return None


def retry_delay_in(body: JsonValue) -> float | None:
    """The first `retryDelay` such as `"34.4s"` in `body`, in seconds."""
    found: JsonValue = None
    left = [body]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            found = value.get("retryDelay")
            delay = _number(found.removesuffix("s")) if isinstance(found, str) else None
            if delay is not None:
                return delay
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(reversed(value))
    return None


def _number(text: str) -> float | None:
    text = text.strip()
    number = float(text) if _NUMBER.fullmatch(text) else math.inf
    return number if math.isfinite(number) else None


def _until(text: str, now: datetime) -> float | None:
    """Seconds from `now` to the HTTP date in `text`; 0 for a date in the past."""
    try:
        date = parsedate_to_datetime(text.strip())
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        return max(0.0, (date - now).total_seconds())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
