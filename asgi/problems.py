"""Errors on the wire: one table from error class to status, extra fields and headers.

Source: docs/http.md#errors.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from quart import Response

from rungent.asgi.schemas import FieldError, reply
from rungent.errors import (
    ActiveRunConflict,
    IdempotencyKeyReused,
    InteractionAlreadyResolved,
    InteractionMismatch,
    InvalidRequest,
    InvalidResponse,
    NotAllowed,
    NotFound,
    RungentError,
    RunNotRetryable,
    RunNotWaiting,
    RuntimeBusy,
    ShuttingDown,
    Unauthenticated,
)
from rungent.records import RunStatus
from rungent.text import dump_json

__all__ = [
    "INTERNAL",
    "PROBLEMS",
    "MethodNotAllowed",
    "PayloadTooLarge",
    "Problem",
    "UnsupportedMediaType",
    "internal_error",
    "problem",
    "problem_body",
    "refuse",
]


class MethodNotAllowed(RungentError):
    """The path exists, but not with this method. `allow` lists those it has."""

    code = "method_not_allowed"

    def __init__(self, allow: Iterable[str]) -> None:
        super().__init__()
        self.allow = ", ".join(sorted(allow))


class PayloadTooLarge(RungentError):
    """The request body is longer than the adapter accepts."""

    code = "payload_too_large"


class UnsupportedMediaType(RungentError):
    """A body that is not declared as JSON."""

    code = "unsupported_media_type"


@dataclass(frozen=True, slots=True)
class Problem:
    """How one class of errors is answered.

    `fields` are attributes of the error that go into the body, with their types. `text` replaces
    the error's own message where that could tell a stranger something.
    """

    status: int
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    text: str | None = None


Outcome = Literal["answered", "approved", "rejected", "skipped", "cancelled", "expired"]
PROBLEMS: dict[type[RungentError], Problem] = {
    Unauthenticated: Problem(401, text="Authentication is required."),
    NotAllowed: Problem(403, text="Somebody else is to answer this."),
    NotFound: Problem(404, text="There is no such thing here."),
    MethodNotAllowed: Problem(405, text="The method is not allowed here."),
    ActiveRunConflict: Problem(409, {"run_id": str, "status": RunStatus}),
    RunNotWaiting: Problem(409, {"status": RunStatus}),
    InteractionMismatch: Problem(409, {"interaction_id": str}),
    InteractionAlreadyResolved: Problem(409, {"outcome": Outcome}),
    IdempotencyKeyReused: Problem(409, {"run_id": str}),
    RunNotRetryable: Problem(409, {"status": RunStatus}),
    PayloadTooLarge: Problem(413, text="The request body is too large."),
    UnsupportedMediaType: Problem(415, text="The request body must be application/json."),
    InvalidRequest: Problem(422, {"errors": list[FieldError]}),
    InvalidResponse: Problem(422, {"reason": str, "path": list[str | int]}),
    RuntimeBusy: Problem(429),
    ShuttingDown: Problem(503, text="The service is not available right now."),
}
"""Every error that clients may see; whatever is missing here is an internal error."""

INTERNAL = Problem(500, text="Something went wrong.")


def problem(error: Exception) -> Response | None:
    """The answer to an expected error; None for one that nobody expected."""
    if not isinstance(error, RungentError):
        return None
    known = next((PROBLEMS[kind] for kind in type(error).__mro__ if kind in PROBLEMS), None)
    return None if known is None else _answer(error, known)


def internal_error() -> Response:
    """The answer to everything else: a fixed text."""
    return _answer(RungentError(), INTERNAL)


def problem_body(error: RungentError, known: Problem) -> dict[str, object]:
    """The JSON body of an error."""
    detail: dict[str, object] = {"code": error.code, "message": known.text or error.message}
    detail |= {name: getattr(error, name) for name in known.fields}
    return {"detail": detail}


async def refuse(error: RungentError, send: Callable[[Any], Awaitable[None]]) -> None:
    """Answer a request with this error where there is no framework to do it."""
    known = PROBLEMS[type(error)]
    body = dump_json(problem_body(error, known)).encode()
    headers = {"Content-Type": "application/json", **_headers(error)}
    pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    pairs.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": known.status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


def _answer(error: RungentError, known: Problem) -> Response:
    return reply(problem_body(error, known), known.status, headers=_headers(error))


def _headers(error: RungentError) -> dict[str, str]:
    if isinstance(error, MethodNotAllowed):
        return {"Allow": error.allow}
    if isinstance(error, RuntimeBusy | ShuttingDown):
        # The header holds whole seconds, and 0 would invite an immediate repetition.
        return {"Retry-After": str(max(1, math.ceil(error.retry_after)))}
    if isinstance(error, Unauthenticated) and error.www_authenticate is not None:
        return {"WWW-Authenticate": error.www_authenticate}
    return {}
