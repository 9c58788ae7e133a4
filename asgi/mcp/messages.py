"""JSON-RPC messages as values: what a client sent, and what it is answered. No I/O.

Source: docs/mcp.md#errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, cast

__all__ = [
    "Code",
    "JsonObject",
    "Message",
    "MessageId",
    "Notification",
    "PostedResponse",
    "Refusal",
    "Request",
    "error_message",
    "parse_message",
    "result_message",
]

JsonObject = dict[str, Any]
MessageId = str | int | float


class Code(IntEnum):
    """The JSON-RPC error codes that are ever sent."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    HEADER_MISMATCH = -32020
    MISSING_CAPABILITY = -32021
    UNSUPPORTED_VERSION = -32022


class Refusal(Exception):
    """A message that is answered with a JSON-RPC error. Texts name no input values.

    `message_id` is the id of the refused message, as far as it has a valid one.
    """

    def __init__(
        self,
        code: Code,
        text: str,
        data: JsonObject | None = None,
        *,
        message_id: MessageId | None = None,
        has_id: bool = False,
    ) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.data = data
        self.message_id = message_id
        self.has_id = has_id


@dataclass(frozen=True, slots=True)
class Request:
    """A call that is owed an answer."""

    id: MessageId
    method: str
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Notification:
    """A message without an id. It is acknowledged, and never executes anything."""


@dataclass(frozen=True, slots=True)
class PostedResponse:
    """An answer to a request of ours; this server makes none."""


Message = Request | Notification | PostedResponse


def parse_message(value: object) -> Message:
    """The message in a JSON value. Raises Refusal for anything else."""
    if not isinstance(value, dict):
        raise Refusal(Code.INVALID_REQUEST, "A message is one JSON object.")
    message = cast("JsonObject", value)
    has_id = "id" in message
    message_id = _message_id(message.get("id"))
    if has_id and message_id is None:
        text = "The id of a request is a string or a number."
        raise Refusal(Code.INVALID_REQUEST, text, has_id=True)
    method: object = message.get("method")
    if message.get("jsonrpc") != "2.0" or ("method" in message and not isinstance(method, str)):
        text = "This is no JSON-RPC 2.0 message."
        raise Refusal(Code.INVALID_REQUEST, text, message_id=message_id, has_id=has_id)
    if not isinstance(method, str):
        if "result" in message or "error" in message:
            return PostedResponse()
        text = "A message names its method."
        raise Refusal(Code.INVALID_REQUEST, text, message_id=message_id, has_id=has_id)
    if message_id is None:
        return Notification()
    params: object = message.get("params")
    if params is not None and not isinstance(params, dict):
        text = "The parameters are an object."
        raise Refusal(Code.INVALID_PARAMS, text, message_id=message_id, has_id=True)
    return Request(message_id, method, cast("JsonObject", params or {}))


def result_message(message_id: MessageId, result: Mapping[str, Any]) -> JsonObject:
    """The answer to a request that succeeded."""
    return {"jsonrpc": "2.0", "id": message_id, "result": dict(result)}


def error_message(refusal: Refusal) -> JsonObject:
    """The answer to a message that was refused; its id is null where none is known."""
    error: JsonObject = {"code": int(refusal.code), "message": refusal.text}
    if refusal.data is not None:
        error["data"] = refusal.data
    return {"jsonrpc": "2.0", "id": refusal.message_id, "error": error}


def _message_id(value: object) -> MessageId | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return value
