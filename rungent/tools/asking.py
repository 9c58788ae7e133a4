"""A question that a running tool puts together: its schema, its buttons and its state.

Nothing of it exists anywhere before the tool returns it. Source: docs/interactive-tools.md.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import cast

from pydantic import BaseModel, JsonValue

from rungent.errors import InvalidResponse
from rungent.identity import Identity
from rungent.ids import new_id
from rungent.interactions.requests import PROMPT_LIMIT
from rungent.text import storable
from rungent.tools.answers import AnswerSchema
from rungent.tools.arguments import ArgumentErrors, ArgumentModel
from rungent.tools.normal_form import NoNormalForm, plain_arguments

__all__ = [
    "LONGEST_WAIT",
    "AgainAsk",
    "Ask",
    "AskRules",
    "Button",
    "KeptAsk",
    "checked_expiry",
    "checked_responders",
    "new_ask",
    "token_hash",
]

TOKEN_BYTES = 16
TOKEN_LENGTH = 22
RESPONDERS_LIMIT = 1000
ANSWERS_LIMIT = 1000
LONGEST_WAIT = timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class AskRules:
    """What a tool declared about its question: the answer, and what it keeps meanwhile.

    `state` is None where anything that is JSON may be kept.
    """

    answer: AnswerSchema
    state: ArgumentModel | None

    def checked_state(self, given: dict[str, object]) -> dict[str, JsonValue]:
        """The state in JSON form. Raises ValueError for what is missing, unknown or no JSON."""
        try:
            if self.state is not None:
                return self.state.check(given).normalised
            return cast("dict[str, JsonValue]", plain_arguments(given))
        except ArgumentErrors as wrong:
            raise ValueError(f"the state does not fit: {wrong.details}") from None
        except NoNormalForm as wrong:
            raise ValueError("the state has no JSON form") from wrong


@dataclass(frozen=True, slots=True)
class Button:
    """The hash of a token, and the answer that the token stands for."""

    token_hash: str
    params: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class KeptAsk:
    """A finished question: what `Ask.keep` returns, for `ToolResult(interaction=…)`."""

    id: str
    call_id: str
    prompt: str
    schema: dict[str, JsonValue]
    state: dict[str, JsonValue]
    buttons: tuple[Button, ...]
    expires_in: timedelta | None
    responders: tuple[Identity, ...] | None
    max_answers: int


@dataclass(frozen=True, slots=True)
class AgainAsk:
    """Another round of the same question: what `ctx.again` returns."""

    state: dict[str, JsonValue]


@dataclass(slots=True)
class Ask:
    """A question that is being put together. Made by `ctx.ask`, or for an announcement.

    `id` is that of the interaction. Source: docs/interactive-tools.md.
    """

    id: str
    prompt: str
    _rules: AskRules = field(repr=False)
    _call_id: str
    _expires_in: timedelta | None = None
    _responders: tuple[Identity, ...] | None = None
    _max_answers: int = 1
    _buttons: list[Button] = field(default_factory=list[Button], repr=False)
    _kept: bool = False

    def action(self, **params: object) -> str:
        """A token that answers with these fields, for a button: 22 characters, hard to guess.

        Only its hash is stored. Raises InvalidResponse (a ValueError) unless the fields are a
        whole and valid answer, RuntimeError once the question was kept.
        """
        self._require_open()
        answer = self._rules.answer.check(dict(params))
        if not isinstance(answer.normal, dict):
            raise InvalidResponse("type_mismatch", "A button answers with the fields of an object.")
        token = base64.urlsafe_b64encode(secrets.token_bytes(TOKEN_BYTES)).decode().rstrip("=")
        self._buttons.append(Button(hash_of(token), answer.normal))
        return token

    def keep(self, **state: object) -> KeptAsk:
        """The finished question with the private state that comes back with the answer.

        Raises ValueError for a state that does not fit the parameters that will get it, and
        RuntimeError when it is called twice.
        """
        self._require_open()
        kept = KeptAsk(
            id=self.id,
            call_id=self._call_id,
            prompt=self.prompt,
            schema=self._rules.answer.schema,
            state=self._rules.checked_state(state),
            buttons=tuple(self._buttons),
            expires_in=self._expires_in,
            responders=self._responders,
            max_answers=self._max_answers,
        )
        self._kept = True
        return kept

    def _require_open(self) -> None:
        if self._kept:
            raise RuntimeError("the question was kept already; nothing can be added to it")


def new_ask(
    rules: AskRules,
    call_id: str,
    owner: Identity,
    *,
    prompt: str,
    expires_in: timedelta | None = None,
    responders: Sequence[Identity | str] | None = None,
    max_answers: int = 1,
) -> Ask:
    """A question of a call, its values checked. Raises ValueError or TypeError."""
    return Ask(
        id=new_id("int_"),
        prompt=_prompt(prompt),
        _rules=rules,
        _call_id=call_id,
        _expires_in=checked_expiry(expires_in),
        _responders=checked_responders(responders, owner),
        _max_answers=_count(max_answers),
    )


def token_hash(token: object) -> str | None:
    """What is stored of a token; None for what cannot be one."""
    if not isinstance(token, str) or len(token) != TOKEN_LENGTH or not token.isascii():
        return None
    return hash_of(token)


def hash_of(token: str) -> str:
    """The hash of a token: random as it is, it needs neither salt nor many rounds."""
    return hashlib.sha256(token.encode()).hexdigest()


def checked_expiry(expires_in: object) -> timedelta | None:
    """A time to wait, or None. Raises TypeError or ValueError."""
    if expires_in is None:
        return None
    if not isinstance(expires_in, timedelta):
        raise TypeError("expires_in must be a timedelta or None")
    if not timedelta() < expires_in <= LONGEST_WAIT:
        raise ValueError("expires_in must be above 0 and at most ten years")
    return expires_in


def checked_responders(
    responders: Iterable[object] | None, owner: Identity
) -> tuple[Identity, ...] | None:
    """Who may answer, each once. A text is a subject of the owner's tenant.

    Raises TypeError for anything else, ValueError for nobody or far too many.
    """
    if responders is None:
        return None
    if isinstance(responders, str) or callable(responders):
        raise TypeError("responders is a list of identities; a predicate belongs to the tool")
    listed: dict[Identity, None] = {}
    for one in responders:
        if isinstance(one, str):
            listed[Identity(one, owner.tenant_id)] = None
        elif isinstance(one, Identity):
            listed[one] = None
        else:
            raise TypeError("a responder is an Identity or a subject id")
    if not 1 <= len(listed) <= RESPONDERS_LIMIT:
        raise ValueError(f"responders must have 1 to {RESPONDERS_LIMIT} entries")
    return tuple(listed)


def _prompt(prompt: object) -> str:
    text = storable(prompt).strip() if isinstance(prompt, str) else ""
    if not 1 <= len(text) <= PROMPT_LIMIT:
        raise ValueError(f"prompt must be a text of 1 to {PROMPT_LIMIT} characters")
    return text


def _count(count: object) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= ANSWERS_LIMIT:
        raise ValueError(f"max_answers must be 1 to {ANSWERS_LIMIT}")
    return count


class Decision(BaseModel):
    """What the buttons of an announced approval decide: `ask.action(approved=True)`."""

    approved: bool
