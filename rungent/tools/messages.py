"""The one rule for short texts that a user sees: progress, activity and task messages."""

from __future__ import annotations

from rungent.text import storable

__all__ = ["MESSAGE_LIMIT", "public_text"]

MESSAGE_LIMIT = 280


def public_text(value: object, what: str = "message") -> str:
    """`value` trimmed and storable. Raises ValueError unless it is a text of 1–280 characters."""
    if isinstance(value, str):
        text = storable(str.__str__(value)).strip()
        if 1 <= len(text) <= MESSAGE_LIMIT:
            return text
    raise ValueError(f"{what} must be a text of 1 to {MESSAGE_LIMIT} characters")
