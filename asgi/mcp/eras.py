"""Which of the two protocol eras a request speaks, and what the newer one demands of it. No I/O.

Source: docs/mcp.md#protocol-versions.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, cast

from rungent.asgi.mcp.messages import Code, Refusal, Request

__all__ = [
    "BATCH_VERSION",
    "LEGACY_VERSIONS",
    "MODERN_VERSION",
    "SERVER_INFO_KEY",
    "VERSIONS",
    "Era",
    "Headers",
    "capabilities_of",
    "check_modern",
    "era_of",
    "version_of",
]

BATCH_VERSION = "2025-03-26"
LEGACY_VERSIONS = (BATCH_VERSION, "2025-06-18", "2025-11-25")
MODERN_VERSION = "2026-07-28"
VERSIONS = (*LEGACY_VERSIONS, MODERN_VERSION)

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"

VERSION_HEADER = "mcp-protocol-version"
METHOD_HEADER = "mcp-method"
NAME_HEADER = "mcp-name"

# Methods whose subject is repeated in a header, with the parameter that holds it.
NAMED = {
    "tools/call": "name",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}

Headers = Mapping[str, Sequence[str]]
"""Lower-case names; repeated headers keep all their values."""


class Era(Enum):
    """LEGACY begins with `initialize`; in MODERN every request describes itself."""

    LEGACY = "legacy"
    MODERN = "modern"


def version_of(headers: Headers) -> str | None:
    """The version header as it counts: None when absent, joined when repeated."""
    given = headers.get(VERSION_HEADER, ())
    return ", ".join(value.strip() for value in given) if given else None


def era_of(version: str | None, body: object) -> Era:
    """The era of a body that came with this version header. The body's own word counts first.

    Raises Refusal for a version that is in neither era.
    """
    if VERSION_KEY in _meta_of(body) or version == MODERN_VERSION:
        return Era.MODERN
    if version is None or version in LEGACY_VERSIONS:
        return Era.LEGACY
    raise _unsupported(version, VERSIONS)


def check_modern(request: Request, headers: Headers) -> None:
    """Raise Refusal unless the request describes itself completely and its headers agree."""
    meta = _meta_of({"params": request.params})
    version: object = meta.get(VERSION_KEY)
    if not isinstance(version, str) or not isinstance(meta.get(CAPABILITIES_KEY), dict):
        text = "_meta must hold the protocol version and the capabilities of the client."
        raise Refusal(Code.INVALID_PARAMS, text)
    _require_header(headers, VERSION_HEADER, version)
    _require_header(headers, METHOD_HEADER, request.method)
    subject = NAMED.get(request.method)
    if subject is not None:
        name: object = request.params.get(subject)
        if not isinstance(name, str):
            raise Refusal(Code.INVALID_PARAMS, f"{subject} must be a string.")
        _require_header(headers, NAME_HEADER, name)
    if version != MODERN_VERSION:
        # Only what a request like this one could switch to.
        raise _unsupported(version, (MODERN_VERSION,))


def capabilities_of(request: Request) -> Mapping[str, Any]:
    """What the client of a modern request declared; nothing for a legacy one."""
    found: object = _meta_of({"params": request.params}).get(CAPABILITIES_KEY)
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


def _meta_of(body: object) -> Mapping[str, Any]:
    for key in ("params", "_meta"):
        body = cast("Mapping[str, Any]", body).get(key) if isinstance(body, Mapping) else None
    return cast("Mapping[str, Any]", body) if isinstance(body, Mapping) else {}


def _require_header(headers: Headers, name: str, wanted: str) -> None:
    given = headers.get(name, ())
    if len(given) != 1 or (given[0].strip() != wanted and _decoded(given[0].strip()) != wanted):
        text = f"The header {name} must be present once and repeat the body."
        raise Refusal(Code.HEADER_MISMATCH, text)


def _decoded(value: str) -> str | None:
    """A header value that was encoded because headers hold no such characters."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return None
    try:
        packed = value.removeprefix("=?base64?").removesuffix("?=")
        return base64.b64decode(packed, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None


def _unsupported(requested: str, supported: Sequence[str]) -> Refusal:
    data = {"supported": list(supported), "requested": requested}
    return Refusal(Code.UNSUPPORTED_VERSION, "The protocol version is not supported.", data)
