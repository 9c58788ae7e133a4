"""Views of sessions: create, list, read, rename.

Source: docs/http.md#sessions.
"""

from __future__ import annotations

from quart import Response

from rungent.asgi.requests import Call, next_link
from rungent.asgi.schemas import (
    NewSession,
    TitleChange,
    reply,
    session_json,
    session_with_messages_json,
)

__all__ = ["create_session", "get_session", "list_sessions", "rename_session"]


async def create_session(call: Call) -> Response:
    """A new session of the caller."""
    body = call.json(NewSession, optional=True)
    session = await call.host.runtime.create_session(
        identity=call.identity, agent=body.agent, title=body.title, resource=body.resource
    )
    return reply(session_json(session))


async def list_sessions(call: Call) -> Response:
    """A page of the caller's sessions, newest `updated_at` first."""
    limit = call.limit()
    sessions, cursor = await call.host.runtime.list_sessions(
        identity=call.identity, limit=limit, cursor=call.cursor()
    )
    headers = {} if cursor is None else next_link(call.request, limit=limit, cursor=cursor)
    return reply([session_json(session) for session in sessions], headers=headers)


async def get_session(call: Call, session_id: str) -> Response:
    """The session and its public messages, oldest first."""
    session, messages = await call.host.runtime.get_session(session_id, identity=call.identity)
    return reply(session_with_messages_json(session, messages))


async def rename_session(call: Call, session_id: str) -> Response:
    """The session with its new title, or with none."""
    body = call.json(TitleChange)
    session = await call.host.runtime.set_session_title(
        session_id, body.title, identity=call.identity
    )
    return reply(session_json(session))
