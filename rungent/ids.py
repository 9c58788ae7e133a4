"""Identifiers and wall-clock time: the only sources of randomness and dates in the runtime."""

from __future__ import annotations

import os
import random
import string
from collections.abc import Callable, Container, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Literal

__all__ = ["IdPrefix", "Now", "ids_from", "new_call_id", "new_id", "system_now"]

IdPrefix = Literal["ses_", "run_", "evt_", "msg_", "int_", "wrk_", "mcp_"]
Now = Callable[[], datetime]

_UUID_VERSION_4 = 0x4 << 76 | 0x2 << 62
_UUID_RANDOM = ~(0xF << 76 | 0x3 << 62)
_CALL_ALPHABET = string.ascii_letters + string.digits
_CALL_LENGTH = 9
_SYSTEM = random.SystemRandom()
_source: ContextVar[random.Random] = ContextVar("rungent_ids", default=_SYSTEM)
_BLOCK = 64
_HEAD_BYTES = 6
_TAIL_BYTES = 10
# Random numbers of the system that no id was made of yet: asking for each costs more than the id.
_spare: list[int] = []
# A forked process must not make the ids of its parent.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_spare.clear)


@contextmanager
def ids_from(source: random.Random) -> Generator[None]:
    """Draw the ids made inside the block from `source`: for plays that must be repeatable."""
    before = _source.set(source)
    try:
        yield
    finally:
        _source.reset(before)


def new_id(prefix: IdPrefix) -> str:
    """An opaque id: the prefix and the 32 hex digits of a random UUID.

    Ids made shortly after one another begin alike, which keeps them together in a database's
    indexes; at least 74 bits are random in each. Source: docs/persistence.md#identifiers.
    """
    # What uuid.uuid4().hex is, at a fraction of its price.
    source = _source.get()
    number = _system_number() if source is _SYSTEM else source.getrandbits(128)
    return f"{prefix}{number & _UUID_RANDOM | _UUID_VERSION_4:032x}"


def _system_number() -> int:
    """Random bits of the system, in any thread: an index has one block of them on one page."""
    try:
        return _spare.pop()
    except IndexError:
        block = os.urandom(_HEAD_BYTES + _TAIL_BYTES * _BLOCK)
        head = block[:_HEAD_BYTES]
        places = range(_HEAD_BYTES, len(block), _TAIL_BYTES)
        first, *more = [int.from_bytes(head + block[at : at + _TAIL_BYTES]) for at in places]
        _spare.extend(more)
        return first


def new_call_id(taken: Container[str] = ()) -> str:
    """A tool-call id of nine characters `[A-Za-z0-9]` that is not in `taken`."""
    source = _source.get()
    while True:
        # Many more bits than the alphabet needs: every character is as likely as the others.
        number, made = source.getrandbits(128), ""
        for _ in range(_CALL_LENGTH):
            number, place = divmod(number, len(_CALL_ALPHABET))
            made += _CALL_ALPHABET[place]
        if made not in taken:
            return made


def system_now() -> datetime:
    """The wall clock as an aware UTC datetime."""
    return datetime.now(UTC)
