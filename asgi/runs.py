"""Views of runs: create, retry, list, read their events, answer, cancel.

Source: docs/http.md#runs.
"""

from __future__ import annotations

import json

from quart import Response

from rungent.asgi.requests import Call, next_link
from rungent.asgi.schemas import (
    Answer,
    NewRun,
    action_json,
    cancelled_json,
    receipt_json,
    reply,
    retry_json,
    run_json,
)
from rungent.errors import InvalidRequest

__all__ = [
    "answer_run",
    "cancel_run",
    "click_action",
    "create_run",
    "list_events",
    "list_runs",
    "retry_run",
]

REPLAYED = {"Idempotency-Replayed": "true"}


async def list_runs(call: Call, session_id: str) -> Response:
    """A page of the session's runs, oldest first."""
    limit = call.limit()
    runs, cursor = await call.host.runtime.list_session_runs(
        session_id, identity=call.identity, limit=limit, cursor=call.cursor()
    )
    headers = {} if cursor is None else next_link(call.request, limit=limit, cursor=cursor)
    return reply([run_json(run) for run in runs], headers=headers)


async def create_run(call: Call, session_id: str) -> Response:
    """Start a run for a user message; it goes on when the caller goes away."""
    runtime = call.host.runtime
    body, key = call.json(NewRun), call.idempotency_key()
    longest = runtime.options.max_input_chars
    if len(body.input) > longest:
        # Checked here too: the shape comes before ownership and before the host's factory.
        message = f"input must have 1 to {longest} characters"
        raise InvalidRequest.at("body", "input", message=message)
    session = await runtime.find_session(session_id, identity=call.identity)
    receipt = await runtime.create_run(
        session_id,
        body.input,
        identity=call.identity,
        deps=await call.deps(session),
        idempotency_key=key,
        if_active=body.if_active,
    )
    return reply(receipt_json(receipt), 202, headers=REPLAYED if receipt.replayed else None)


async def list_events(call: Call, run_id: str) -> Response:
    """A page of the run's stored events after `after_seq`."""
    runtime, after, limit = call.host.runtime, call.after_seq(), call.limit()
    events = await runtime.get_run_events(
        run_id, identity=call.identity, after_seq=after, limit=limit
    )
    headers: dict[str, str] = {}
    if len(events) == limit:
        last, run = events[-1].seq, await runtime.get_run(run_id, identity=call.identity)
        if run.event_seq > last:
            headers = next_link(call.request, after_seq=last, limit=limit)
    return reply([json.loads(event.to_json()) for event in events], headers=headers)


async def answer_run(call: Call, run_id: str) -> Response:
    """Answer what the run asked; it goes on when the caller goes away."""
    runtime, body = call.host.runtime, call.json(Answer)
    run = await runtime.get_run(run_id, identity=call.identity)
    session = await runtime.find_session(run.session_id, identity=call.identity)
    receipt = await runtime.submit_response(
        run_id,
        body.interaction_id,
        body.value,
        identity=call.identity,
        deps=await call.deps(session, run),
    )
    return reply(receipt_json(receipt), 202)


async def click_action(call: Call, token: str) -> Response:
    """Answer with a button of a posted message; a body is ignored, and the outcome is a value."""
    return reply(action_json(await call.host.runtime.act(token, identity=call.identity)))


async def retry_run(call: Call, run_id: str) -> Response:
    """Start a new run for the message of a failed one; a body is ignored."""
    runtime, key = call.host.runtime, call.idempotency_key()
    run = await runtime.get_run(run_id, identity=call.identity)
    session = await runtime.find_session(run.session_id, identity=call.identity)
    receipt = await runtime.retry_run(
        run_id, identity=call.identity, deps=await call.deps(session), idempotency_key=key
    )
    return reply(retry_json(receipt), 202, headers=REPLAYED if receipt.replayed else None)


async def cancel_run(call: Call, run_id: str) -> Response:
    """End the run as cancelled; a run that has ended already stays as it is."""
    run = await call.host.runtime.cancel_run(run_id, identity=call.identity)
    return reply(cancelled_json(run))
