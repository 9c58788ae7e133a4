"""What goes on after a tool asked: the function that gets the answer, and the one that hears
that there will be none.

Every mistake in a declaration shows at definition. Source: docs/interactive-tools.md.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic import BaseModel, JsonValue

from rungent.identity import Identity
from rungent.tools.answers import AnswerSchema
from rungent.tools.arguments import ArgumentModel
from rungent.tools.asking import AskRules, Decision, KeptAsk
from rungent.tools.context import ToolContext
from rungent.tools.schema import resolve_hints

__all__ = ["Announce", "FollowUp", "Interactive", "MayAnswer"]

MayAnswer = Callable[[ToolContext, Identity], bool | Awaitable[bool]]
"""Whether somebody may answer: `(ctx, responder)`, sync or async."""

Announce = Callable[..., KeptAsk | Awaitable[KeptAsk]]
"""Posts an approval: `(ctx, ask, **arguments)`, sync or async; returns `ask.keep(…)`."""

_NAMEABLE = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A function that is called later with a leading value, arguments and kept state by name."""

    function: Callable[..., Awaitable[Any]]
    arguments: tuple[str, ...]
    state: Mapping[str, inspect.Parameter]
    hints: Mapping[str, Any]

    def named(self, arguments: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
        """What the function gets by name."""
        given = {name: arguments[name] for name in self.arguments}
        return given | {name: state[name] for name in self.state if name in state}


class Interactive:
    """The questions of one tool: who may answer, and what is called afterwards.

    `answered` and `closed` are declared after the tool, each once.
    """

    def __init__(
        self,
        arguments: ArgumentModel,
        responders: MayAnswer | None,
        announce: Announce | None,
        expires_in: timedelta | None,
    ) -> None:
        self._arguments = arguments
        self.responders = responders
        self.announce = announce
        self.expires_in = expires_in
        self.answer: AnswerSchema | None = None
        self.answered: FollowUp | None = None
        self.closed: FollowUp | None = None
        self._rules: AskRules | None = None

    def declare_answered(
        self, function: Callable[..., Awaitable[Any]], nearby: Mapping[str, object]
    ) -> None:
        """Take the continuation. Raises TypeError for one that could never be called."""
        if self.answered is not None:
            raise TypeError("the tool has its answered function already")
        follow_up, answer = self._follow_up(function, nearby)
        if not (isinstance(answer, type) and issubclass(answer, BaseModel)):
            raise TypeError("the second parameter must be annotated with a pydantic model")
        schema = AnswerSchema(answer)
        _same_annotations(follow_up, self.closed)
        self.answer, self.answered, self._rules = schema, follow_up, None

    def declare_closed(
        self, function: Callable[..., Awaitable[Any]], nearby: Mapping[str, object]
    ) -> None:
        """Take the function for the end without an answer. Raises TypeError."""
        if self.closed is not None:
            raise TypeError("the tool has its closed function already")
        follow_up, reason = self._follow_up(function, nearby)
        if reason is not str:
            raise TypeError("the second parameter must be annotated str")
        _same_annotations(follow_up, self.answered)
        self.closed, self._rules = follow_up, None

    def check(self) -> None:
        """Raises TypeError for declarations of which a part is missing."""
        asks = self.answered is not None or self.announce is not None
        if not asks and self.closed is not None:
            raise TypeError("closed needs answered, or an announced approval")
        if not asks and self.responders is not None:
            raise TypeError("responders needs answered, or an announced approval")

    @property
    def rules(self) -> AskRules | None:
        """The rules of a question for data, or None for a tool that asks none."""
        if self._rules is None and self.answer is not None:
            # Built once: a model takes longer to make than most tools take to run.
            state = self.state_model(self.answered, self.closed)
            self._rules = AskRules(self.answer, state)
        return self._rules

    @property
    def approval_rules(self) -> AskRules:
        """The rules of an announced approval; without `closed` it may keep anything."""
        state = None if self.closed is None else self.state_model(self.closed)
        return AskRules(_DECISION, state)

    def state_model(self, *follow_ups: FollowUp | None) -> ArgumentModel:
        """The state that these functions need together."""
        wanted: dict[str, inspect.Parameter] = {}
        hints: dict[str, Any] = {}
        for each in follow_ups:
            if each is not None:
                wanted |= {n: p for n, p in each.state.items() if n not in wanted}
                hints |= each.hints
        return ArgumentModel(list(wanted.values()), hints)

    def state_values(self, stored: Mapping[str, JsonValue], *only: FollowUp) -> dict[str, Any]:
        """Kept state as Python values, as far as these functions take it. Raises ValueError."""
        model = self.state_model(*only)
        return model.check({n: v for n, v in stored.items() if n in model.keys}).values

    def _follow_up(
        self, function: Callable[..., Awaitable[Any]], nearby: Mapping[str, object]
    ) -> tuple[FollowUp, object]:
        label = getattr(function, "__name__", "function")
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"{label} must be an async def function")
        hints = resolve_hints(function, nearby)
        parameters = list(inspect.signature(function).parameters.values())
        if len(parameters) < 2 or hints.get(parameters[0].name) is not ToolContext:
            raise TypeError(f"{label}: the first parameter must be annotated ToolContext")
        second, rest = parameters[1], parameters[2:]
        for parameter in rest:
            if parameter.kind not in _NAMEABLE or parameter.name not in hints:
                raise TypeError(f"{label}: {parameter.name} needs a name and an annotation")
        own = [p.name for p in rest if p.name in self._arguments.parameters]
        for name in own:
            if hints[name] != self._arguments.hints[name]:
                raise TypeError(f"{label}: {name} has another annotation than in the tool")
        state = {p.name: p for p in rest if p.name not in own}
        kept = {name: hints[name] for name in state}
        try:
            ArgumentModel(list(state.values()), kept)
        except TypeError as wrong:
            raise TypeError(f"{label}: {wrong}") from wrong
        return FollowUp(function, tuple(own), state, kept), hints.get(second.name)


def _same_annotations(one: FollowUp, other: FollowUp | None) -> None:
    for name, hint in one.hints.items():
        if other is not None and name in other.hints and other.hints[name] != hint:
            raise TypeError(f"{name} has two annotations in answered and closed")


_DECISION = AnswerSchema(Decision)
