"""The `tool` decorator: an async function becomes a frozen, fully checked `Tool`.

Every mistake in a declaration shows at definition, never during a run.
Source: docs/tools.md.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeVar

from pydantic import JsonValue

from rungent.tools.arguments import ArgumentModel
from rungent.tools.asking import checked_expiry
from rungent.tools.confirmation import check_template, render_confirmation
from rungent.tools.context import ToolContext
from rungent.tools.interactive import Announce, Interactive, MayAnswer
from rungent.tools.results import ToolResult
from rungent.tools.schema import declaring_place, resolve_hints

__all__ = ["AnyTool", "ApprovalPolicy", "Confirmation", "Reconcile", "Tool", "ToolEffect", "tool"]

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Awaitable[Any]])

Confirmation = str | Callable[..., str | Awaitable[str]]
"""A format string over the arguments, or a callable `(ctx, **arguments)`, sync or async."""

Reconcile = Callable[..., Awaitable[ToolResult | None]]
"""An async callable `(ctx, **arguments)` that finds out what became of an interrupted call."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_NAMEABLE = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class ToolEffect(StrEnum):
    """What a call does to the world; everything but `read` is executed at most once."""

    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"
    EXTERNAL = "external"


class ApprovalPolicy(StrEnum):
    """Whether a person must approve each call."""

    NEVER = "never"
    ALWAYS = "always"


@dataclass(frozen=True, eq=False)
class Tool(Generic[P, R_co]):
    """A declared tool. Made by `tool`; calling it calls the plain function.

    Two tools are equal only when they are the same object. Source: docs/tools.md.
    """

    function: Callable[Concatenate[ToolContext, P], Awaitable[R_co]]
    name: str
    description: str
    title: str
    effect: ToolEffect
    approval: ApprovalPolicy
    confirmation: Confirmation | None
    timeout_seconds: float
    parallel: bool
    deduplicate: bool
    requires_interaction_response: bool
    idempotent: bool
    reconcile: Reconcile | None
    arguments: ArgumentModel
    interactive: Interactive

    @property
    def schema(self) -> dict[str, Any]:
        """A copy of the JSON Schema 2020-12 of the arguments."""
        return self.arguments.schema

    def __call__(self, ctx: ToolContext, /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R_co]:
        """Call the plain function, without validation, approval or timeout."""
        return self.function(ctx, *args, **kwargs)

    def answered(self, function: F) -> F:
        """Declare what continues a call of this tool that returned a question.

        `function(ctx, answer, **named)` is async; the annotation of `answer` is a pydantic model,
        which is the schema of the answer, and every further parameter is an argument of the tool
        or state that `ask.keep` gets. Its result is the result of the call. Neither the model nor
        MCP can call it. Raises TypeError for a function that could not be called.
        Source: docs/interactive-tools.md.
        """
        if self.parallel:
            raise TypeError("a parallel tool cannot ask")
        self.interactive.declare_answered(function, declaring_place(inspect.currentframe())[1])
        return function

    def closed(self, function: F) -> F:
        """Declare what hears that nobody can answer any more.

        `function(ctx, reason, **named)` is async and called at most once, within the tool's time
        limit; its result and its errors change nothing. Raises TypeError for a function that
        could not be called. Source: docs/interactive-tools.md#the-end-without-an-answer.
        """
        self.interactive.declare_closed(function, declaring_place(inspect.currentframe())[1])
        return function

    def render_confirmation(self, normalised: Mapping[str, JsonValue]) -> str:
        """The confirmation text of a format string for arguments in normal form.

        Raises ValueError when it cannot be made, TypeError for a tool without format string.
        """
        if not isinstance(self.confirmation, str):
            raise TypeError("the confirmation is not a format string")
        return render_confirmation(self.confirmation, self.arguments.by_parameter(normalised))


AnyTool = Tool[..., Any]


def tool(
    *,
    effect: ToolEffect | Literal["read", "write", "destructive", "external"],
    approval: ApprovalPolicy | Literal["never", "always"],
    name: str | None = None,
    description: str | None = None,
    title: str | None = None,
    confirmation: Confirmation | None = None,
    timeout_seconds: float = 60,
    parallel: bool = False,
    deduplicate: bool = True,
    requires_interaction_response: bool = False,
    idempotent: bool = False,
    reconcile: Reconcile | None = None,
    responders: MayAnswer | None = None,
    announce: Announce | None = None,
    expires_in: timedelta | None = None,
) -> Callable[[Callable[Concatenate[ToolContext, P], Awaitable[R]]], Tool[P, R]]:
    """Declare an async function whose first parameter is a `ToolContext` as a tool.

    `effect` and `approval` have no default on purpose. With `approval="always"` `confirmation`
    asks, `announce` posts that elsewhere, and `expires_in` bounds the time. `timeout_seconds`
    limits one execution. `parallel` allows concurrent calls of a `read` tool, `deduplicate` skips
    a repeated success, `idempotent` allows a second execution under one `ctx.idempotency_key`,
    `reconcile` finds out what a lost one did. `responders` says who may answer or approve.

    Raises TypeError for a function or combination that cannot work, ValueError for a bad effect,
    approval, name, title or time. Source: docs/tools.md.
    """
    wanted_effect, wanted_approval = ToolEffect(effect), ApprovalPolicy(approval)
    flags = {
        "parallel": parallel,
        "deduplicate": deduplicate,
        "requires_interaction_response": requires_interaction_response,
        "idempotent": idempotent,
    }
    _check_flags(flags, wanted_effect, wanted_approval)
    expiry = _check_asking(wanted_approval, confirmation, responders, announce, expires_in)
    module, nearby = declaring_place(inspect.currentframe())

    def declare(function: Callable[Concatenate[ToolContext, P], Awaitable[R]]) -> Tool[P, R]:
        arguments = _argument_model(function, module, nearby)
        _check_callbacks(confirmation, reconcile, announce, arguments.parameters)
        final_name = _name(getattr(function, "__name__", "") if name is None else name)
        return Tool(
            function=function,
            name=final_name,
            description=_description(description, function),
            title=_title(title, final_name),
            effect=wanted_effect,
            approval=wanted_approval,
            confirmation=confirmation,
            timeout_seconds=_timeout(timeout_seconds),
            arguments=arguments,
            reconcile=reconcile,
            interactive=Interactive(arguments, responders, announce, expiry),
            **flags,
        )

    return declare


def _argument_model(
    function: Callable[..., object], module: Mapping[str, object], nearby: Mapping[str, object]
) -> ArgumentModel:
    label = getattr(function, "__name__", "tool")
    if not inspect.iscoroutinefunction(function):
        raise TypeError(f"{label}: a tool must be an async def function")
    # A declaring helper in another module has locals too, but they are not the function's.
    own = getattr(inspect.unwrap(function), "__globals__", None) is module
    hints = resolve_hints(function, nearby if own else {})
    parameters = list(inspect.signature(function).parameters.values())
    context = parameters.pop(0) if parameters else None
    is_context = context is not None and hints.get(context.name) is ToolContext
    if context is None or not is_context or context.kind not in _POSITIONAL:
        raise TypeError(f"{label}: the first parameter must be annotated ToolContext")
    for parameter in parameters:
        if parameter.kind not in _NAMEABLE:
            raise TypeError(f"{label}: parameter {parameter.name} cannot be given by name")
        if parameter.name not in hints:
            raise TypeError(f"{label}: parameter {parameter.name} has no annotation")
    try:
        return ArgumentModel(parameters, hints)
    except TypeError as exc:
        raise TypeError(f"{label}: {exc}") from exc


def _check_flags(flags: Mapping[str, object], effect: ToolEffect, approval: ApprovalPolicy) -> None:
    for key, value in flags.items():
        if not isinstance(value, bool):
            raise TypeError(f"{key} must be True or False")
    alone = effect is ToolEffect.READ and approval is ApprovalPolicy.NEVER
    if flags["parallel"] and not alone:
        raise TypeError("parallel needs the effect read and the approval never")


def _check_confirmation(confirmation: object, approval: ApprovalPolicy) -> None:
    if (
        confirmation is not None
        and not isinstance(confirmation, str)
        and not callable(confirmation)
    ):
        raise TypeError("confirmation must be a format string or a callable")
    if approval is ApprovalPolicy.NEVER:
        if confirmation is not None:
            raise TypeError("a confirmation belongs to the approval always")
    elif confirmation is None or (isinstance(confirmation, str) and not confirmation.strip()):
        raise TypeError("the approval always needs a confirmation")


def _check_asking(
    approval: ApprovalPolicy,
    confirmation: object,
    responders: object,
    announce: object,
    expires_in: object,
) -> timedelta | None:
    _check_confirmation(confirmation, approval)
    for name, given in (("responders", responders), ("announce", announce)):
        if given is not None and not callable(given):
            raise TypeError(f"{name} must be callable")
    if approval is ApprovalPolicy.NEVER and not (announce is None and expires_in is None):
        raise TypeError("announce and expires_in belong to the approval always")
    return checked_expiry(expires_in)


def _check_announce(announce: Callable[..., object], parameters: tuple[str, ...]) -> None:
    try:
        inspect.signature(announce).bind(None, None, **dict.fromkeys(parameters))
    except TypeError as exc:
        raise TypeError(f"announce must take ctx, ask and the tool's parameters: {exc}") from exc


def _check_callbacks(
    confirmation: Confirmation | None,
    reconcile: Reconcile | None,
    announce: Announce | None,
    parameters: tuple[str, ...],
) -> None:
    if isinstance(confirmation, str):
        check_template(confirmation, parameters)
    if reconcile is not None:
        _check_reconcile(reconcile, parameters)
    if announce is not None:
        _check_announce(announce, parameters)


def _check_reconcile(reconcile: Callable[..., object], parameters: tuple[str, ...]) -> None:
    call = getattr(reconcile, "__call__", None)  # noqa: B004 - an object may be async too
    if not (inspect.iscoroutinefunction(reconcile) or inspect.iscoroutinefunction(call)):
        raise TypeError("reconcile must be an async callable")
    try:
        inspect.signature(reconcile).bind(None, **dict.fromkeys(parameters))
    except TypeError as exc:
        raise TypeError(f"reconcile must take the parameters of its tool: {exc}") from exc


def _name(name: object) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError("a tool name has 1 to 64 characters of A-Z, a-z, 0-9, _ and -")
    return str.__str__(name)


def _title(title: object, name: str) -> str:
    if title is None:
        return name.replace("_", " ").title().strip() or name
    if not isinstance(title, str) or not title.strip():
        raise ValueError("a tool title must not be blank")
    return title.strip()


def _description(description: object, function: Callable[..., object]) -> str:
    if description is not None and not isinstance(description, str):
        raise TypeError("a tool description must be a text")
    for text in (description, function.__doc__):
        if text is not None and text.strip():
            return inspect.cleandoc(text).strip()
    raise TypeError("a tool needs a docstring or a description")


def _timeout(seconds: object) -> float:
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, (int, float))
        or not math.isfinite(seconds)
        or seconds <= 0
    ):
        raise ValueError("timeout_seconds must be finite and above 0")
    return float(seconds)
