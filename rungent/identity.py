"""Who asks: the identity that a host resolves, and the ownership rule."""

from __future__ import annotations

from dataclasses import dataclass

from rungent.text import storable

__all__ = ["Identity"]

SUBJECT_LIMIT = 256


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller as the host knows it.

    `subject_id` has 1–256 characters; `tenant_id` has at most 256 or is None. Two identities
    own the same things only when both fields are equal; None equals only None.

    Raises ValueError when a field is too long, empty, not a string, or holds U+0000 or a lone
    surrogate.
    """

    subject_id: str
    tenant_id: str | None = None

    def __post_init__(self) -> None:
        if not _is_text(self.subject_id, at_least=1):
            raise ValueError(f"subject_id must have 1 to {SUBJECT_LIMIT} characters")
        if self.tenant_id is not None and not _is_text(self.tenant_id, at_least=0):
            raise ValueError(f"tenant_id must have at most {SUBJECT_LIMIT} characters")


def _is_text(value: object, *, at_least: int) -> bool:
    """Whether a host gave a storable string of a permitted length."""
    if not isinstance(value, str) or storable(value) != value:
        return False
    return at_least <= len(value) <= SUBJECT_LIMIT
