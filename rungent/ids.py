"""Identifiers and wall-clock time: the only sources of randomness and dates in the runtime."""

from __future__ import annotations

import os
import secrets
import string
from collections.abc import Callable, Container
from datetime import UTC, datetime
from typing import Literal

__all__ = ["IdPrefix", "Now", "new_call_id", "new_id", "system_now"]

IdPrefix = Literal["ses_", "run_", "evt_", "msg_", "int_", "wrk_", "mcp_"]
Now = Callable[[], datetime]

_UUID_VERSION_4 = 0x4 << 76 | 0x2 << 62
_UUID_RANDOM = ~(0xF << 76 | 0x3 << 62)
_CALL_ALPHABET = string.ascii_letters + string.digits
_CALL_LENGTH = 9


def new_id(prefix: IdPrefix) -> str:
    """An opaque id: the prefix and the 32 hex digits of a random UUID."""
    # What uuid.uuid4().hex is, at a third of its price.
    number = int.from_bytes(os.urandom(16), "big")
    return f"{prefix}{number & _UUID_RANDOM | _UUID_VERSION_4:032x}"


def new_call_id(taken: Container[str] = ()) -> str:
    """A tool-call id of nine characters `[A-Za-z0-9]` that is not in `taken`."""
    while True:
        made = "".join(secrets.choice(_CALL_ALPHABET) for _ in range(_CALL_LENGTH))
        if made not in taken:
            return made


def system_now() -> datetime:
    """The wall clock as an aware UTC datetime."""
    return datetime.now(UTC)
