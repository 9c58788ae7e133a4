"""One HTTP request to the endpoint: the checks in their order, then the messages in its body.

Knows no web framework: a rim turns its requests into `Head` and body, and `Reply` into responses.
Source: docs/mcp.md#transport.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from rungent.asgi.host import called
from rungent.asgi.mcp.eras import (
    BATCH_VERSION,
    Era,
    Headers,
    check_modern,
    era_of,
    version_of,
)
from rungent.asgi.mcp.messages import (
    Code,
    JsonObject,
    MessageId,
    Notification,
    Refusal,
    Request,
    error_message,
    parse_message,
    result_message,
)
from rungent.asgi.mcp.methods import Methods
from rungent.asgi.mcp.settings import McpSettings
from rungent.asgi.requests import parse_json
from rungent.errors import InvalidRequest, Unauthenticated
from rungent.identity import Identity
from rungent.text import dump_json

__all__ = ["Endpoint", "Head", "Reply"]

logger = logging.getLogger("rungent")

METHODS = "POST, OPTIONS"
MAX_BATCH = 100
CORS_HEADERS = "Authorization, Content-Type, MCP-Protocol-Version, Mcp-Method, Mcp-Name"

_STATUS = {Code.METHOD_NOT_FOUND: 404, Code.INTERNAL_ERROR: 500}


@dataclass(frozen=True, slots=True)
class Head:
    """Method and headers of a request, names in lower case."""

    method: str
    headers: Headers

    def first(self, name: str) -> str | None:
        """The first header of this name."""
        return next(iter(self.headers.get(name, ())), None)


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole response. A body is JSON."""

    status: int
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def encoded(self) -> bytes:
        """The body as bytes; nothing for none."""
        return b"" if self.body is None else dump_json(cast("JsonObject", self.body)).encode()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Answers requests under one host's settings."""

    settings: McpSettings

    async def answer(self, head: Head, body: bytes | None, request: object) -> Reply:
        """The reply to one request; `body` is None when it was too long.

        Never raises but for the framework's own exceptions that callbacks raise, and when it
        is cancelled, which cancels the tool. `request` is what callbacks get.
        """
        origin = head.first("origin")
        if origin is not None and not self.settings.allows(origin):
            return Reply(403, {"error": "forbidden_origin"})
        reply = await self._guarded(head, body, request)
        if origin is None:
            return reply
        return Reply(reply.status, reply.body, {**reply.headers, **_cors(origin)})

    async def _guarded(self, head: Head, body: bytes | None, request: object) -> Reply:
        if head.method == "OPTIONS":
            return Reply(204)
        try:
            identity = await self._identify(request)
            if isinstance(identity, Unauthenticated):
                return self._unauthorized(identity, request)
        except self.settings.passing:
            raise
        except Exception:
            logger.exception("identifying an MCP client failed")
            return _broken(None)
        refused = _precheck(head, body)
        if refused is not None:
            return refused
        assert body is not None, "a body that is too long was refused"
        try:
            value = parse_json(body)
        except InvalidRequest:
            return _refused(Refusal(Code.PARSE_ERROR, "The body is not valid JSON."), Era.MODERN)
        return await self._answer_value(head, value, identity, request)

    async def _identify(self, request: object) -> Identity | Unauthenticated:
        """Who asks, or why nobody does. Whatever else the host raises passes."""
        try:
            identity = await called(self.settings.identity_resolver, request)
        except Unauthenticated as error:
            return error
        except PermissionError:
            return Unauthenticated()
        if identity is None:
            return Unauthenticated()
        if not isinstance(cast("object", identity), Identity):
            raise TypeError("the identity resolver must return an Identity or None")
        return identity

    def _unauthorized(self, error: Unauthenticated, request: object) -> Reply:
        """Refused, with the way to a sign-in (RFC 9728)."""
        header = error.www_authenticate
        if header is None:
            url = self.settings.resource_metadata_url
            header = f'Bearer realm="{_quoted(self.settings.server_name)}"'
            if url is not None:
                header += f', resource_metadata="{url(request) if callable(url) else url}"'
        return Reply(401, {"error": "unauthorized"}, {"WWW-Authenticate": header})

    async def _answer_value(
        self, head: Head, value: object, identity: Identity, request: object
    ) -> Reply:
        version = version_of(head.headers)
        try:
            era = era_of(version, value)
        except Refusal as refusal:
            return _refused(_identified(refusal, value), Era.MODERN)
        if not isinstance(value, list):
            return await self._answer_message(era, head, value, identity, request)
        batch = cast("list[object]", value)
        if len(batch) > MAX_BATCH:
            # A small message can have a large answer, and all answers are one body.
            text = f"A batch holds at most {MAX_BATCH} messages."
            return _refused(Refusal(Code.INVALID_REQUEST, text), Era.MODERN)
        if era is Era.MODERN or version not in (None, BATCH_VERSION) or not batch:
            text = "The body is one message." if batch else "A batch holds messages."
            return _refused(Refusal(Code.INVALID_REQUEST, text), Era.MODERN)
        replies = [
            await self._answer_message(Era.LEGACY, head, item, identity, request) for item in batch
        ]
        bodies = [reply.body for reply in replies if reply.body is not None]
        return Reply(200, bodies) if bodies else Reply(202)

    async def _answer_message(
        self, era: Era, head: Head, value: object, identity: Identity, request: object
    ) -> Reply:
        message_id = None
        try:
            message = parse_message(value)
            if isinstance(message, Notification):
                return Reply(202)
            if not isinstance(message, Request):
                if era is Era.LEGACY:
                    return Reply(202)
                raise Refusal(Code.INVALID_REQUEST, "This server asks nothing of its clients.")
            message_id = message.id
            if era is Era.MODERN:
                check_modern(message, head.headers)
            methods = Methods(self.settings)

            async def deps() -> Mapping[str, Any]:
                return await self._deps(request)

            result = await methods.result(era, message, identity, deps)
            return Reply(200, result_message(message.id, result))
        except Refusal as refusal:
            return _refused(_identified(refusal, value), era)
        except self.settings.passing:
            raise
        except Exception:
            logger.exception("answering an MCP request failed")
            return _broken(message_id)

    async def _deps(self, request: object) -> Mapping[str, Any]:
        if self.settings.context_factory is None:
            return {}
        deps = await called(self.settings.context_factory, request)
        if not isinstance(cast("object", deps), Mapping):
            raise TypeError("the context factory must return a mapping")
        return deps


def _precheck(head: Head, body: bytes | None) -> Reply | None:
    """What is wrong with a request before its body is looked at."""
    if head.method != "POST":
        return Reply(405, {"error": "method_not_allowed"}, {"Allow": METHODS})
    kind = (head.first("content-type") or "").partition(";")[0].strip().lower()
    if kind != "application/json":
        return Reply(415, {"error": "unsupported_media_type"})
    if "accept" in head.headers and not _accepts_json(", ".join(head.headers["accept"])):
        return Reply(406, {"error": "not_acceptable"})
    return Reply(413, {"error": "payload_too_large"}) if body is None else None


def _accepts_json(accept: str) -> bool:
    for item in accept.split(","):
        kind, *params = (part.strip().lower() for part in item.split(";"))
        if kind in ("application/json", "application/*", "*/*"):
            weights = [p.removeprefix("q=").strip() for p in params if p.startswith("q=")]
            if not weights or weights[0].strip("0.") != "":
                return True
    return False


def _quoted(text: str) -> str:
    """What may stand between the quotes of a header, which holds no other characters."""
    plain = re.sub("[^ -~]", "?", text)
    return plain.replace("\\", "\\\\").replace('"', '\\"')


def _cors(origin: str) -> dict[str, str]:
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": METHODS,
        "Access-Control-Allow-Headers": CORS_HEADERS,
        "Access-Control-Expose-Headers": "WWW-Authenticate",
        "Vary": "Origin",
    }


def _identified(refusal: Refusal, value: object) -> Refusal:
    """The refusal with the id of the message it is about."""
    if refusal.message_id is None and not refusal.has_id and isinstance(value, dict):
        found: object = cast("JsonObject", value).get("id")
        if isinstance(found, str | int | float) and not isinstance(found, bool):
            refusal.message_id, refusal.has_id = found, True
    return refusal


def _refused(refusal: Refusal, era: Era) -> Reply:
    """Legacy clients read errors of their requests in a 200, modern ones get a status."""
    if era is Era.LEGACY and (refusal.has_id or refusal.message_id is not None):
        return Reply(200, error_message(refusal))
    return Reply(_STATUS.get(refusal.code, 400), error_message(refusal))


def _broken(message_id: MessageId | None) -> Reply:
    refusal = Refusal(Code.INTERNAL_ERROR, "Something went wrong.", message_id=message_id)
    return Reply(500, error_message(refusal))
