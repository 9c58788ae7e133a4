"""Questions to the user: what may be asked, and which answers count."""

from __future__ import annotations

from rungent.interactions.answers import (
    AnswerOutcome,
    InteractionResponse,
    TrustedInteractionResponse,
    outcome_of,
    validate_answer,
)
from rungent.interactions.numbering import has_numbered_alternatives
from rungent.interactions.requests import (
    InteractionRequest,
    InvalidInteraction,
    ToolContinuation,
    parse_request,
)
from rungent.interactions.spec import (
    InteractionKind,
    InteractionSpec,
    Option,
    Question,
    QuestionKind,
    RequestKind,
    approval_spec,
    to_public,
)

__all__ = [
    "AnswerOutcome",
    "InteractionKind",
    "InteractionRequest",
    "InteractionResponse",
    "InteractionSpec",
    "InvalidInteraction",
    "Option",
    "Question",
    "QuestionKind",
    "RequestKind",
    "ToolContinuation",
    "TrustedInteractionResponse",
    "approval_spec",
    "has_numbered_alternatives",
    "outcome_of",
    "parse_request",
    "to_public",
    "validate_answer",
]
