"""One request: its body, bounded and strict, its query, its headers.

Bodies are read before anything is refused, because a server cannot use a connection again while
half a body is still on it. Source: docs/http.md#requests.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast
from urllib.parse import quote, urlencode

import trio
from pydantic import ValidationError
from quart import Request
from werkzeug.exceptions import RequestEntityTooLarge, RequestTimeout

from rungent.asgi.host import Host
from rungent.asgi.problems import PayloadTooLarge, UnsupportedMediaType
from rungent.asgi.schemas import Body, validation_errors
from rungent.errors import InvalidRequest
from rungent.identity import Identity
from rungent.records import Run, Session
from rungent.store.feed import Until
from rungent.text import storable, to_json_value

__all__ = [
    "DEFAULT_PAGE",
    "DISCARD_BYTES",
    "KEY_LIMIT",
    "MAX_NUMBER",
    "MAX_PAGE",
    "Call",
    "next_link",
    "parse_json",
    "read_body",
]

DISCARD_BYTES = 64 * 1_048_576
MAX_DEPTH = 64
MAX_PAGE = 500
DEFAULT_PAGE = 100
KEY_LIMIT = 200
MAX_SEQ = 2**31 - 1
MAX_NUMBER = 10**20 - 1

_NUMBER = re.compile("[0-9]{1,20}")
ModelT = TypeVar("ModelT", bound=Body)


@dataclass(frozen=True, slots=True)
class Call:
    """A request whose method and identity were checked. `body` is None when it was too long."""

    host: Host
    request: Request
    identity: Identity
    body: bytes | None

    def json(self, model: type[ModelT], *, optional: bool = False) -> ModelT:
        """The body as this model; an absent body is an empty object if `optional`.

        Raises UnsupportedMediaType, PayloadTooLarge or InvalidRequest, checked in this order.
        """
        present = self.body is None or self.body != b""
        if present and self.request.mimetype != "application/json":
            raise UnsupportedMediaType()
        if self.body is None:
            raise PayloadTooLarge()
        value: object = parse_json(self.body) if present or not optional else {}
        try:
            return model.model_validate(value)
        except ValidationError as error:
            raise validation_errors(error) from None

    async def deps(self, session: Session, run: Run | None = None) -> Mapping[str, Any] | None:
        """The host's dependencies for a drive of this session."""
        return await self.host.deps(self.request, session, run)

    def limit(self) -> int:
        """The page size: 1–500, default 100."""
        number = self._number("limit", DEFAULT_PAGE)
        if not 1 <= number <= MAX_PAGE:
            raise _invalid("query", "limit", f"limit must be 1 to {MAX_PAGE}")
        return number

    def cursor(self) -> str | None:
        """The opaque cursor, unchecked."""
        return self.request.args.get("cursor")

    def after_seq(self) -> int:
        """The event number after which to begin; default 0."""
        # No log is that long, and databases have no larger numbers.
        return min(self._number("after_seq", 0), MAX_SEQ)

    def first_seq(self) -> int:
        """Where a stream begins: `after_seq`, else a usable `Last-Event-ID`, else 0."""
        if "after_seq" in self.request.args:
            return self.after_seq()
        last = self.request.headers.get("Last-Event-ID", "").strip()
        return min(int(last), MAX_SEQ) if _NUMBER.fullmatch(last) else 0

    def until(self) -> Until | None:
        """How far to follow a run."""
        until = self.request.args.get("until")
        if until is None or until == "terminal":
            return None if until is None else "terminal"
        raise _invalid("query", "until", "until must be terminal")

    def idempotency_key(self) -> str | None:
        """The trimmed `Idempotency-Key`, or None."""
        key = self.request.headers.get("Idempotency-Key")
        if key is None:
            return None
        key = storable(key).strip()
        if not 1 <= len(key) <= KEY_LIMIT:
            text = f"Idempotency-Key must have 1 to {KEY_LIMIT} characters"
            raise _invalid("header", "idempotency-key", text)
        return key

    def _number(self, name: str, default: int) -> int:
        text = self.request.args.get(name)
        if text is None:
            return default
        if not _NUMBER.fullmatch(text):
            raise _invalid("query", name, f"{name} must be a whole number of 0 or more")
        return int(text)


async def read_body(request: Request, limit: int) -> bytes | None:
    """The whole body, or None if it is longer than `limit`.

    A longer body is read to its end and thrown away, as far as that is bearable. What was read
    stays readable for the host. Raises the framework's RequestTimeout when the body does not
    arrive in the application's `BODY_TIMEOUT`.
    """
    kept, total = bytearray(), 0
    timeout = request.body_timeout
    try:
        with trio.fail_after(math.inf if timeout is None else timeout):
            async for chunk in request.body:
                total += len(chunk)
                if total <= limit:
                    kept += chunk
                elif total > max(limit, DISCARD_BYTES):
                    break
    except RequestEntityTooLarge:
        # The application's own limit was announced to be passed; nothing of it can be read.
        return None
    except trio.TooSlowError:
        raise RequestTimeout() from None
    if total > limit:
        return None
    request.body.append(bytes(kept))
    return bytes(kept)


def parse_json(body: bytes) -> object:
    """The JSON value of a body, its texts made storable.

    Raises InvalidRequest for anything that is not strict JSON in UTF-8: also NaN, infinities,
    numbers that only fit as infinity, and nesting deeper than 64 levels. Of repeated keys the
    last one counts.
    """
    try:
        value: object = json.loads(
            body.decode("utf-8"), parse_constant=_refuse, parse_float=_finite
        )
    except (ValueError, RecursionError):
        raise InvalidRequest.at(
            "body", message="The body must be valid JSON.", kind="json_invalid"
        ) from None
    if _deeper_than(value, MAX_DEPTH):
        raise InvalidRequest.at(
            "body", message="The body is nested too deeply.", kind="json_too_deep"
        )
    return to_json_value(value)


def next_link(request: Request, **params: str | int) -> dict[str, str]:
    """The header that announces the next page of this request's resource."""
    path = quote(request.root_path + request.path)
    return {"Link": f'<{path}?{urlencode(params)}>; rel="next"'}


def _refuse(constant: str) -> object:
    raise ValueError("not JSON: " + constant)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("out of range")
    return number


def _deeper_than(value: object, depth: int) -> bool:
    """Level by level, because recursion is what such a value wants to exhaust."""
    level = [value]
    while level and depth >= 0:
        depth -= 1
        level = [child for parent in level for child in _children(parent)]
    return bool(level)


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(cast("dict[str, object]", value).values())
    return cast("list[object]", value) if isinstance(value, list) else []


def _invalid(place: str, name: str, message: str) -> InvalidRequest:
    return InvalidRequest.at(place, name, message=message, kind="value_error")
