"""The catalog: every machine code with its default public text, replaceable by the host.

Public texts reach users and models; they never name a limit, an argument or an exception.
Source: docs/codes.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from rungent.text import storable

__all__ = ["DEFAULT_TEXTS", "Catalog"]

RUN_FAILURES: Mapping[str, tuple[str, bool]] = {
    "model_step_limit_exceeded": ("The assistant stopped before it was finished.", True),
    "model_step_timeout": ("The assistant took too long.", True),
    "model_unavailable": ("The assistant is not available right now.", True),
    "model_rejected": ("The assistant cannot process this request.", False),
    "content_filtered": ("The answer was blocked by a content filter.", False),
    "empty_completion": ("The assistant gave no answer.", True),
    "invalid_tool_arguments": ("The assistant could not complete an action.", True),
    "tool_retry_exhausted": ("An action failed several times.", False),
    "context_failed": ("The request could not be prepared.", True),
    "run_initialization_failed": ("The run could not be started.", True),
    "recovery_exhausted": ("The run was interrupted too often.", True),
    "internal_error": ("Something went wrong.", True),
}
"""Code of a failed run: (text, retryable)."""

TOOL_FAILURES: Mapping[str, tuple[str, bool]] = {
    "invalid_arguments": ("The arguments are not valid.", True),
    "timeout": ("The operation took too long.", True),
    "tool_error": ("The operation failed.", True),
    "tool_rejected": ("The operation was not carried out.", True),
    "interaction_required": ("An answer from the user is needed first.", False),
    "invalid_interaction": ("The question is not valid.", True),
    "approval_unavailable": ("The confirmation could not be prepared.", True),
    "expired": ("Nobody answered in time.", False),
    "rejected": ("The user declined the operation.", False),
    "external_task_failed": ("The task did not succeed.", True),
    "outcome_unknown": ("It is unknown whether the operation took effect.", False),
    "unknown_tool": ("There is no such tool.", False),
    "invalid_progress": ("The progress message is not valid.", True),
    "cancelled": ("The run ended before this call was settled.", False),
    "missing_arguments": ("More information is needed.", True),
    "deferred_unsupported": ("This operation cannot be completed here.", False),
}
"""Code of a failed call: (text, retryable by the model)."""

OTHER_TEXTS: Mapping[str, str] = {
    "model_waiting": "Still working.",
    "model_continued": "Continuing.",
    "deduplicated": "This was already done; it was not repeated.",
    "external_task_cancelled": "The task was cancelled.",
    "approve_label": "Approve",
    "reject_label": "Reject",
}

DEFAULT_TEXTS: Mapping[str, str] = MappingProxyType(
    {code: text for code, (text, _) in {**RUN_FAILURES, **TOOL_FAILURES}.items()}
    | dict(OTHER_TEXTS)
)
"""Every catalog key with its default text."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """The texts of one runtime: the defaults with the host's replacements."""

    texts: Mapping[str, str]

    @classmethod
    def of(cls, replacements: Mapping[str, str]) -> Catalog:
        """Defaults overlaid with `replacements`.

        Raises ValueError for an unknown key or a text that is blank or longer than 280
        characters (catalog texts appear in progress rows).
        """
        for key, text in replacements.items():
            if key not in DEFAULT_TEXTS:
                raise ValueError(f"unknown catalog key: {key!r}")
            if not _is_public_text(text):
                raise ValueError(f"the catalog text of {key!r} must have 1 to 280 characters")
        cleaned = {key: storable(text.strip()) for key, text in replacements.items()}
        return cls(MappingProxyType({**DEFAULT_TEXTS, **cleaned}))

    def text(self, key: str) -> str:
        """The public text of a code or key."""
        return self.texts[key]


def _is_public_text(text: object) -> bool:
    return isinstance(text, str) and 1 <= len(text.strip()) <= 280


def run_failure_retryable(code: str) -> bool:
    """Whether a run that failed with `code` may be retried."""
    return RUN_FAILURES[code][1]


def tool_failure_retryable(code: str) -> bool:
    """Whether the model may try again after a call failed with `code`."""
    return TOOL_FAILURES[code][1]
