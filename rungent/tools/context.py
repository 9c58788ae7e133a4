"""What a tool may know about the call that it serves.

Source: docs/tools.md.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, JsonValue

from rungent.identity import Identity
from rungent.interactions import TrustedInteractionResponse
from rungent.text import to_json_value
from rungent.tools.asking import AgainAsk, Ask, AskRules, new_ask
from rungent.tools.messages import public_text

__all__ = ["ReportProgress", "ToolContext"]

ReportProgress = Callable[[str, JsonValue], Awaitable[None]]
"""Stores a progress event. Raises RuntimeError once the call has settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """The surroundings of one call, or of a host callback outside any call.

    `current_input` is the trimmed input of the run, `resource` the session's (a private,
    read-only copy), `deps` what the host gave to this drive. `interaction_response` is the
    user's answer that led here, if there is one. `call_id` is None outside a call. `answered_by`
    is who answered what the tool itself asked, else None.
    """

    identity: Identity
    session_id: str
    run_id: str
    call_id: str | None = None
    current_input: str = ""
    resource: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    deps: Mapping[str, Any] = field(default_factory=dict[str, Any])
    interaction_response: TrustedInteractionResponse | None = None
    answered_by: Identity | None = None
    _asks: AskRules | None = field(default=None, repr=False, compare=False)
    _answers: int = field(default=0, repr=False, compare=False)
    _report: ReportProgress | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Copied whole: a tool that changes a nested value must not change the session.
        private = copy.deepcopy(dict(self.resource)) if self.resource else {}
        object.__setattr__(self, "resource", MappingProxyType(private))

    @classmethod
    def create(
        cls,
        *,
        identity: Identity,
        session_id: str,
        run_id: str,
        call_id: str | None = None,
        current_input: str = "",
        resource: Mapping[str, JsonValue] | None = None,
        deps: Mapping[str, Any] | None = None,
        interaction_response: TrustedInteractionResponse | None = None,
        answered_by: Identity | None = None,
        answers: int = 0,
        asks: AskRules | None = None,
        report: ReportProgress | None = None,
    ) -> ToolContext:
        """A context whose progress reports go to `report`; `asks` are the rules of a question.

        With `answered_by` it is the context of a continuation, which asks again or not at all;
        `answers` counts the answers so far.
        """
        return cls(
            identity=identity,
            session_id=session_id,
            run_id=run_id,
            call_id=call_id,
            current_input=current_input,
            resource=resource or {},
            deps={} if deps is None else deps,
            interaction_response=interaction_response,
            answered_by=answered_by,
            _answers=answers,
            _asks=asks,
            _report=report,
        )

    @property
    def idempotency_key(self) -> str | None:
        """Stable across re-executions of the call; None outside a call.

        A continuation has one of its own for each answer.
        """
        if self.call_id is None:
            return None
        key = f"{self.run_id}:{self.call_id}"
        return f"{key}:{self._answers}" if self._answers else key

    def ask(
        self,
        schema: type[BaseModel],
        *,
        prompt: str,
        expires_in: timedelta | None = None,
        responders: Sequence[Identity | str] | None = None,
        max_answers: int = 1,
    ) -> Ask:
        """Begin a question whose answer is `schema`, that of the tool's `answered` function.

        Nothing exists before the tool returns `ToolResult(interaction=ask.keep(…))`. Only the
        session's owner may answer, or exactly `responders`, or whom the tool's predicate lets.
        `max_answers` is the number of rounds that `ctx.again` may make of it. Raises RuntimeError
        outside a call of a tool with `answered`, TypeError for another schema, ValueError for a
        bad prompt, time, list or count. Source: docs/interactive-tools.md.
        """
        if self._asks is None or self.call_id is None or self.answered_by is not None:
            raise RuntimeError("only a call of a tool with an answered function can ask")
        if schema is not self._asks.answer.model:
            raise TypeError("ask for the model that the tool's answered function takes")
        return new_ask(
            self._asks,
            self.call_id,
            self.identity,
            prompt=prompt,
            expires_in=expires_in,
            responders=responders,
            max_answers=max_answers,
        )

    def again(self, **state: object) -> AgainAsk:
        """The same question once more, with the same buttons and this state; for `answered`.

        Raises RuntimeError elsewhere, ValueError for a state that does not fit.
        """
        if self._asks is None or self.answered_by is None:
            raise RuntimeError("only an answered function can ask again")
        return AgainAsk(self._asks.checked_state(state))

    async def report_progress(self, message: str, *, public: object = None) -> None:
        """Show the user what is going on; returns once the event is committed.

        Raises ValueError unless `message` has 1–280 characters after trimming, and
        RuntimeError outside a call or after it settled.
        """
        text = public_text(message)
        if self._report is None or self.call_id is None:
            raise RuntimeError("progress can only be reported inside a call")
        await self._report(text, to_json_value(public))
