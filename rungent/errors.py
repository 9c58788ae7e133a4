"""The error tree: every failure a caller can meet, each with a stable machine code.

```text
RungentError(code, message)
├── InvalidRequest (ValueError)      invalid_request     .errors
├── InvalidResponse (ValueError)     invalid_response    .reason .path
├── NotFound (LookupError)           not_found           also for things of another owner
├── NotAllowed                       not_allowed         somebody else is to answer
├── Unauthenticated                  unauthenticated     raised by hosts
├── Conflict (ValueError)
│   ├── ActiveRunConflict            active_run_conflict           .run_id .status
│   ├── RunNotWaiting                run_not_waiting               .status
│   ├── InteractionMismatch          interaction_mismatch          .interaction_id
│   ├── InteractionAlreadyResolved   interaction_already_resolved  .outcome
│   ├── IdempotencyKeyReused         idempotency_key_reused        .run_id
│   ├── RunNotRetryable              run_not_retryable             .status
│   └── TaskMismatch                 external_task_mismatch
├── RuntimeBusy                      runtime_busy        .retry_after
├── ShuttingDown                     shutting_down       .retry_after
└── StaleRun                         stale_run           a store condition was lost
```

An error that reaches a caller changed nothing. Messages are written for developers and
name no input values. Source: docs/errors.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

__all__ = [
    "ActiveRunConflict",
    "Conflict",
    "IdempotencyKeyReused",
    "InteractionAlreadyResolved",
    "InteractionMismatch",
    "InvalidRequest",
    "InvalidResponse",
    "NotAllowed",
    "NotFound",
    "RunNotRetryable",
    "RunNotWaiting",
    "RungentError",
    "RuntimeBusy",
    "ShuttingDown",
    "StaleRun",
    "TaskMismatch",
    "Unauthenticated",
]


class RungentError(Exception):
    """Root of all errors that Rungent raises on purpose. `code` is stable and machine-readable."""

    code: ClassVar[str] = "internal_error"

    def __init__(self, message: str = "") -> None:
        super().__init__(message or self.code)
        self.message = message or self.code


class InvalidRequest(RungentError, ValueError):
    """Input of the wrong shape or size. `errors` lists `{loc, msg, type}` without input values."""

    code = "invalid_request"

    def __init__(self, message: str = "", *, errors: Sequence[dict[str, object]] = ()) -> None:
        super().__init__(message)
        self.errors = list(errors)

    @classmethod
    def at(cls, *loc: str | int, message: str, kind: str = "value_error") -> InvalidRequest:
        """One error at one place, for example `InvalidRequest.at("body", "input", message=…)`."""
        return cls(message, errors=[{"loc": list(loc), "msg": message, "type": kind}])


class InvalidResponse(RungentError, ValueError):
    """An answer that breaks the rules of its interaction; the run keeps waiting."""

    code = "invalid_response"

    def __init__(self, reason: str, message: str = "", *, path: Sequence[str | int] = ()) -> None:
        super().__init__(message or reason)
        self.reason = reason
        self.path = list(path)


class NotFound(RungentError, LookupError):
    """An id that does not exist, or that belongs to another owner: callers cannot tell which."""

    code = "not_found"


class NotAllowed(RungentError):
    """An answer by the owner of a session to a question that other people are to answer."""

    code = "not_allowed"


class Unauthenticated(RungentError):
    """Raised by a host's identity resolver to refuse a request with status 401."""

    code = "unauthenticated"

    def __init__(self, message: str = "", *, www_authenticate: str | None = None) -> None:
        super().__init__(message)
        self.www_authenticate = www_authenticate


class Conflict(RungentError, ValueError):
    """A request that the present state does not allow. Nothing changed."""

    code = "conflict"


class ActiveRunConflict(Conflict):
    """The session already has an active run, named by `run_id` with its `status`."""

    code = "active_run_conflict"

    def __init__(self, run_id: str, status: str) -> None:
        super().__init__("The session has an active run.")
        self.run_id = run_id
        self.status = status


class RunNotWaiting(Conflict):
    """An answer or completion reached a run that waits for none."""

    code = "run_not_waiting"

    def __init__(self, status: str) -> None:
        super().__init__("The run is not waiting for this.")
        self.status = status


class InteractionMismatch(Conflict):
    """An answer to another interaction than the pending one, which `interaction_id` names."""

    code = "interaction_mismatch"

    def __init__(self, interaction_id: str) -> None:
        super().__init__("Another interaction is pending.")
        self.interaction_id = interaction_id


class InteractionAlreadyResolved(Conflict):
    """A different answer after the interaction was resolved with `outcome`."""

    code = "interaction_already_resolved"

    def __init__(self, outcome: str) -> None:
        super().__init__("The interaction was already resolved.")
        self.outcome = outcome


class IdempotencyKeyReused(Conflict):
    """The key already belongs to the different request that made `run_id`."""

    code = "idempotency_key_reused"

    def __init__(self, run_id: str) -> None:
        super().__init__("The idempotency key was used for another request.")
        self.run_id = run_id


class RunNotRetryable(Conflict):
    """Only the newest run of a session can be retried, and only after a retryable failure."""

    code = "run_not_retryable"

    def __init__(self, status: str) -> None:
        super().__init__("The run cannot be retried.")
        self.status = status


class TaskMismatch(Conflict):
    """A completion or progress report for a task that the run does not wait for."""

    code = "external_task_mismatch"


class RuntimeBusy(RungentError):
    """Too many runs are queued already. Try again after `retry_after` seconds."""

    code = "runtime_busy"

    def __init__(self, message: str = "", *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ShuttingDown(RungentError):
    """The runtime is stopping or not serving. Try again after `retry_after` seconds."""

    code = "shutting_down"

    def __init__(self, message: str = "", *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StaleRun(RungentError):
    """A store condition was lost: somebody else advanced the run. Never leaves the runtime."""

    code = "stale_run"
