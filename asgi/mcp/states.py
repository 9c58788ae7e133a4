"""Request states: signed, expiring notes that a client carries from one round to the next.

A note is signed, not encrypted. That it counts once is remembered on the server.
Source: docs/mcp.md#request-states.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol, cast

import trio

from rungent.ids import Now
from rungent.text import dump_json

__all__ = ["InvalidState", "RequestStates", "UsedInProcess", "UsedStates"]

KEY_BYTES = 32
USED_LIMIT = 100_000


class InvalidState(Exception):
    """A state that this server did not make, made for somebody else, or made too long ago."""


class UsedStates(Protocol):
    """Remembers which states were used, until they expire anyway.

    With several worker processes the host provides one that they share.
    Source: docs/mcp.md#request-states.
    """

    async def claim(self, nonce: str, expires_at: datetime) -> bool:
        """True for exactly one caller per nonce, over all processes. Nothing else may be True.

        May be forgotten after `expires_at`. A cancelled caller may have claimed or not.
        """
        ...


class UsedInProcess:
    """The used states of one process, at most 100 000 that did not expire; more are refused."""

    def __init__(self, now: Now, limit: int = USED_LIMIT) -> None:
        self._now = now
        self._limit = limit
        self._used: dict[str, datetime] = {}

    async def claim(self, nonce: str, expires_at: datetime) -> bool:
        """True for the first caller per nonce."""
        await trio.lowlevel.checkpoint()
        if nonce in self._used:
            return False
        if len(self._used) >= self._limit:
            now = self._now()
            self._used = {key: end for key, end in self._used.items() if end > now}
        if len(self._used) >= self._limit:
            return False
        self._used[nonce] = expires_at
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestStates:
    """Makes, reads and uses up states. The first key signs, every key is accepted.

    `audience` keeps states of other endpoints out that share the keys. Raises ValueError for a
    key below 32 bytes and a life that is not above 0.
    """

    keys: Sequence[bytes]
    audience: str
    ttl_seconds: float
    used: UsedStates
    now: Now

    def __post_init__(self) -> None:
        if not self.ttl_seconds > 0:
            raise ValueError("state_ttl_seconds must be above 0")
        given = tuple(self.keys) or (secrets.token_bytes(KEY_BYTES),)
        for key in cast("tuple[object, ...]", given):
            if not isinstance(key, bytes) or len(key) < KEY_BYTES:
                raise ValueError(f"a state key must have at least {KEY_BYTES} bytes")
        object.__setattr__(self, "keys", given)

    def seal(self, content: Mapping[str, Any]) -> str:
        """A state for `content`, which must be made of JSON types."""
        end = self.now() + timedelta(seconds=self.ttl_seconds)
        note = {
            "aud": self.audience,
            "end": end.timestamp(),
            "nonce": secrets.token_hex(16),
            "content": dict(content),
        }
        payload = dump_json(note).encode()
        return f"{_packed(payload)}.{_packed(_signature(self.keys[0], payload))}"

    def read(self, state: str) -> dict[str, Any]:
        """The note, its signature, audience and age checked. Raises InvalidState."""
        head, _, tail = state.partition(".")
        payload, signature = _unpacked(head), _unpacked(tail)
        valid = [hmac.compare_digest(signature, _signature(key, payload)) for key in self.keys]
        if not any(valid):
            raise InvalidState("signature")
        note: dict[str, Any] = json.loads(payload)
        if note["aud"] != self.audience:
            raise InvalidState("audience")
        if not self.now().timestamp() < note["end"]:
            raise InvalidState("expired")
        return note

    async def use(self, note: Mapping[str, Any]) -> None:
        """Use a note up. Raises InvalidState for one that was used before."""
        end = datetime.fromtimestamp(note["end"], tz=self.now().tzinfo)
        if await self.used.claim(note["nonce"], end) is not True:
            raise InvalidState("used")


def _signature(key: bytes, payload: bytes) -> bytes:
    return hmac.new(key, b"rungent mcp request state 1\n" + payload, hashlib.sha256).digest()


def _packed(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _unpacked(text: str) -> bytes:
    """The only data that is packed like this. Raises InvalidState."""
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raise InvalidState("encoding") from None
    if _packed(data) != text:
        raise InvalidState("encoding")
    return data
