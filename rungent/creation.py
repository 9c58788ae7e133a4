"""Creating sessions and runs: checks of what callers give, and the rows that come of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

from pydantic import JsonValue

from rungent._drive.claims import started
from rungent._drive.seal import seal, seal_message
from rungent._lifecycle.transition import MessageDraft, Transition
from rungent.errors import InvalidRequest
from rungent.identity import Identity
from rungent.ids import Now, new_id
from rungent.records import Lease, Run, RunState, RunStatus, Session
from rungent.store.port import Commit
from rungent.text import canonical_json, dump_json, storable, to_json_value

__all__ = [
    "IfActive",
    "Message",
    "Retry",
    "Source",
    "checked_key",
    "checked_request",
    "checked_resource",
    "checked_title",
    "new_run",
    "new_session",
    "request_digest",
]

IfActive = Literal["reject", "cancel_waiting"]
TITLE_LIMIT = 200
KEY_LIMIT = 200
RESOURCE_LIMIT_BYTES = 16 * 1024
# Given, because pydantic would copy the default of its model for each run.
_FRESH = RunState()


def checked_title(title: object) -> str | None:
    """The trimmed title of 1–200 characters, or None. InvalidRequest for anything else."""
    if title is None:
        return None
    text = storable(title).strip() if isinstance(title, str) else ""
    if not 1 <= len(text) <= TITLE_LIMIT:
        raise InvalidRequest.at(
            "body", "title", message=f"title must have 1 to {TITLE_LIMIT} characters"
        )
    return text


def checked_resource(resource: object) -> dict[str, JsonValue]:
    """The resource as a JSON object of at most 16 KiB, `{}` for None. InvalidRequest otherwise."""
    if resource is None:
        return {}
    value = to_json_value(cast("object", resource)) if isinstance(resource, Mapping) else None
    if not isinstance(value, dict):
        raise InvalidRequest.at("body", "resource", message="resource must be a JSON object")
    if len(dump_json(value).encode()) > RESOURCE_LIMIT_BYTES:
        raise InvalidRequest.at("body", "resource", message="resource must be at most 16 KiB")
    return value


def _checked_input(content: object, limit: int) -> str:
    """The trimmed input of 1 to `limit` characters. InvalidRequest for anything else."""
    text = storable(content).strip() if isinstance(content, str) else ""
    if not 1 <= len(text) <= limit:
        raise InvalidRequest.at("body", "input", message=f"input must have 1 to {limit} characters")
    return text


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for, as a run of this id.

    `replaces` says that it takes the place of a waiting run; `digest` is given with a key.
    """

    run_id: str
    text: str
    replaces: bool
    key: str | None
    digest: str | None


def checked_request(content: object, if_active: object, key: object, limit: int) -> Request:
    """A request to create a run for a message of up to `limit` characters, or InvalidRequest."""
    text, mode, checked = _checked_input(content, limit), _checked_mode(if_active), checked_key(key)
    digest = request_digest(checked, "create", {"input": text, "if_active": mode})
    return Request(new_id("run_"), text, mode == "cancel_waiting", checked, digest)


def _checked_mode(if_active: object) -> IfActive:
    if if_active == "reject":
        return "reject"
    if if_active == "cancel_waiting":
        return "cancel_waiting"
    allowed = ", ".join(get_args(IfActive))
    raise InvalidRequest.at("body", "if_active", message=f"if_active must be one of {allowed}")


def checked_key(key: object) -> str | None:
    """The trimmed idempotency key of 1–200 characters, or None. InvalidRequest otherwise."""
    if key is None:
        return None
    text = storable(key).strip() if isinstance(key, str) else ""
    if not 1 <= len(text) <= KEY_LIMIT:
        raise InvalidRequest.at(
            "header",
            "idempotency-key",
            message=f"Idempotency-Key must have 1 to {KEY_LIMIT} characters",
        )
    return text


def request_digest(key: str | None, operation: str, fields: Mapping[str, JsonValue]) -> str | None:
    """What makes two requests under one idempotency key the same request; None without a key."""
    if key is None:
        return None
    return hashlib.sha256(canonical_json({"operation": operation, **fields}).encode()).hexdigest()


def new_session(
    identity: Identity,
    agent_name: str,
    *,
    title: str | None,
    resource: dict[str, JsonValue],
    now: Now,
) -> Session:
    """A session that `identity` owns."""
    moment = now()
    return Session(
        id=new_id("ses_"),
        agent_name=agent_name,
        subject_id=identity.subject_id,
        tenant_id=identity.tenant_id,
        title=title,
        resource=resource,
        created_at=moment,
        updated_at=moment,
    )


@dataclass(frozen=True, slots=True)
class Message:
    """A run of this id for a new user message."""

    content: str
    run_id: str


@dataclass(frozen=True, slots=True)
class Retry:
    """A run for the user message of an earlier one."""

    run: Run


Source = Message | Retry


def new_run(
    session: Session,
    source: Source,
    *,
    lease: Lease,
    claim: bool,
    key: str | None,
    digest: str | None,
    now: Now,
) -> Commit:
    """The commit that creates a run: claimed, or queued and reserved by the lease.

    A new user message is stored with it; a retry reuses the stored one.
    """
    moment = now()
    retried = source.run if isinstance(source, Retry) else None
    content = source.content if isinstance(source, Message) else source.run.input
    message_id = new_id("msg_") if retried is None else retried.input_message_id
    run = Run(
        id=new_id("run_") if isinstance(source, Retry) else source.run_id,
        session_id=session.id,
        agent_name=session.agent_name,
        status=RunStatus.QUEUED,
        input=content,
        input_message_id=message_id,
        idempotency_key=key,
        request_digest=digest,
        retried_from=None if retried is None else retried.id,
        state=_FRESH,
        lease=lease,
        created_at=moment,
        updated_at=moment,
    )
    transition = started(run, lease) if claim else Transition(run)
    commit = seal(transition, moment, created=True)
    if retried is not None:
        return commit
    said = seal_message(MessageDraft("user", content, public=True), run, moment, id=message_id)
    return replace(commit, messages=(said,))
