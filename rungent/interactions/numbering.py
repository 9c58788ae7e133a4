"""Finds numbered alternatives that hide inside a free-text prompt.

A list such as "1. Paris / 2. Rome" in a text question should have been a choice. Clock times,
decimals, dates and years begin lines too, so a marker needs a delimiter that no digit follows
and text behind it, and only a first *and* a second marker make a list.
Source: docs/interactions.md.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["has_numbered_alternatives"]

_MARKER = re.compile(
    r"\s*\(?"
    r"(?:(?P<digits>\d+)[.):、．：]|(?P<letter>[A-Za-z])[.)])"
    r"(?!\d)\s*\S"
)


def has_numbered_alternatives(text: str) -> bool:
    """True when marker lines of one family (digits or letters) run from the first to the second.

    The delimiter, the case of letters and leading zeros make no difference, and the two lines
    need not be neighbours.
    """
    seen_first: set[str] = set()
    for line in text.splitlines():
        marker = _marker(line)
        if marker is None:
            continue
        family, ordinal = marker
        if ordinal == "1":
            seen_first.add(family)
        elif ordinal == "2" and family in seen_first:
            return True
    return False


def _marker(line: str) -> tuple[str, str] | None:
    """The family and ordinal of a marker line. The ordinal of A is "1", of B "2"."""
    found = _MARKER.match(line)
    if found is None:
        return None
    letter = found["letter"]
    if letter is not None:
        return "letter", str(ord(letter.upper()) - ord("A") + 1)
    # Digit by digit: `int` refuses very long numbers, and full-width digits count as well.
    plain = "".join(str(unicodedata.decimal(digit)) for digit in found["digits"])
    return "digit", plain.lstrip("0")
