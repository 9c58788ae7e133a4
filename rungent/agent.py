"""What a host declares once: an agent with its instructions, tools and callbacks.

Source: docs/tools.md.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pydantic import JsonValue

from rungent.skill import render_skill
from rungent.text import storable, to_json_value
from rungent.tools import BUILTIN_TITLES, AnyTool, Tool, ToolContext, public_text

if TYPE_CHECKING:
    from rungent.llm.port import ToolCall

__all__ = ["Agent", "ContextProvider", "RunActivity", "RunActivityProvider", "RunInitializer"]

_NAME = re.compile(r"[A-Za-z0-9_]{1,128}")


@dataclass(frozen=True, slots=True)
class RunActivity:
    """The texts that show a user what a run is busy with while the model is silent.

    `waiting_message` and `continuation_message` default to `message`, `long_wait_message` to
    `waiting_message`; each is trimmed and has 1–280 characters. `public` is a mapping for the
    frontend and is kept in its JSON form. Raises ValueError otherwise.
    """

    message: str
    waiting_message: str | None = None
    long_wait_message: str | None = None
    continuation_message: str | None = None
    public: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        message = public_text(self.message)
        waiting = _text_or(self.waiting_message, message, "waiting_message")
        texts = {
            "message": message,
            "waiting_message": waiting,
            "long_wait_message": _text_or(self.long_wait_message, waiting, "long_wait_message"),
            "continuation_message": _text_or(
                self.continuation_message, message, "continuation_message"
            ),
        }
        for name, text in texts.items():
            object.__setattr__(self, name, text)
        object.__setattr__(self, "public", _public(self.public))


def _text_or(value: object, default: str, what: str) -> str:
    return default if value is None else public_text(value, what)


def _public(value: object) -> dict[str, JsonValue] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise ValueError("public must be a mapping")  # noqa: TRY004 - documented as ValueError
    return cast("dict[str, JsonValue]", to_json_value(cast("Mapping[object, object]", value)))


ContextProvider = Callable[[ToolContext], "str | Awaitable[str | None] | None"]
"""Text for the system message, asked for before every model step."""

RunActivityProvider = Callable[
    [ToolContext, str], "RunActivity | Awaitable[RunActivity | None] | None"
]
"""Called with the run's input once, at its start."""

RunInitializer = Callable[[ToolContext, str], "ToolCall | Awaitable[ToolCall | None] | None"]
"""Called with the run's input once, at its start; may make one call before the first step."""


@dataclass(frozen=True, slots=True, eq=False)
class Agent:
    """A named set of instructions, tools and callbacks. Callbacks are sync or async.

    `name` has 1–128 characters of `A-Z a-z 0-9 _` and is stored with every session.
    `instructions` lose their common indentation. `model` replaces the provider's default
    model name.

    Raises TypeError for an element of `tools` that is no tool or a callback that cannot be
    called, ValueError for anything else, such as two tools of one name or a reserved name.
    """

    name: str
    instructions: str
    tools: Sequence[AnyTool] = ()
    context: ContextProvider | None = None
    run_activity: RunActivityProvider | None = None
    run_initializer: RunInitializer | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        if self.model is not None:
            _require_text(self.model, "model")
        for callback in (self.context, self.run_activity, self.run_initializer):
            if callback is not None and not callable(callback):
                raise TypeError("context, run_activity and run_initializer must be callable")
        instructions = storable(inspect.cleandoc(_require_text(self.instructions, "instructions")))
        object.__setattr__(self, "instructions", instructions.strip())
        object.__setattr__(self, "tools", _checked_tools(self.tools))

    @classmethod
    def from_markdown(
        cls,
        *,
        name: str,
        instructions: str | Path,
        tools: Sequence[AnyTool] = (),
        context: ContextProvider | None = None,
        run_activity: RunActivityProvider | None = None,
        run_initializer: RunInitializer | None = None,
        model: str | None = None,
    ) -> Agent:
        """An agent whose instructions are the UTF-8 file at the path `instructions`.

        Raises OSError when the file cannot be read, ValueError when it is not UTF-8, and
        whatever the constructor raises.
        """
        return cls(
            name=name,
            # Editors on some systems begin UTF-8 files with a byte order mark.
            instructions=Path(instructions).read_text(encoding="utf-8-sig"),
            tools=tools,
            context=context,
            run_activity=run_activity,
            run_initializer=run_initializer,
            model=model,
        )

    def tool(self, name: str) -> AnyTool | None:
        """The tool of that name, or None. Built-in tools are not among them."""
        for tool in self.tools:
            if tool.name == name:
                return tool
        return None

    def export_skill(self, title: str | None = None, extra: str = "") -> str:
        """A draft of a skill document that lists the tools for MCP clients."""
        return render_skill(self.name, self.tools, title=title, extra=extra)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError("an agent name has 1 to 128 characters of A-Z, a-z, 0-9 and _")


def _require_text(value: object, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{what} must be a text that is not blank")
    return value


def _checked_tools(tools: Iterable[object]) -> tuple[AnyTool, ...]:
    checked: list[AnyTool] = []
    names = set(BUILTIN_TITLES)
    for tool in tools:
        if not isinstance(tool, Tool):
            raise TypeError("an agent's tools must be made with the tool decorator")
        made = cast("AnyTool", tool)
        if made.name in names:
            reason = "is reserved" if made.name in BUILTIN_TITLES else "is there twice"
            raise ValueError(f"the tool name {made.name} {reason}")
        made.interactive.check()
        names.add(made.name)
        checked.append(made)
    return tuple(checked)
