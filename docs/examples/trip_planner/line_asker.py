"""Questions as plain lines: for pipes, scripts and terminals that can do nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import trio
from pydantic import JsonValue
from rich.console import Console
from rich.text import Text as Styled

from rungent.demo.asking import NoAnswer
from rungent.demo.questions import (
    Choice,
    Decision,
    Text,
    Unreadable,
    read_choice,
    read_decision,
)

__all__ = ["DescriptorLines", "LineAsker", "Lines"]

_CHUNK = 4096


class Lines(Protocol):
    """Where answers come from."""

    async def next(self) -> str:
        """The next line without its end. Raises NoAnswer when there is none."""
        ...


class DescriptorLines:
    """The lines of a file descriptor, read without a thread, so that waiting can be cancelled."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = b""
        self._ended = False

    async def next(self) -> str:
        """The next line; a last one without line feed counts. Raises NoAnswer."""
        while b"\n" not in self._buffer and not self._ended:
            # A plain file cannot be waited for, and never has to.
            with suppress(PermissionError):
                await trio.lowlevel.wait_readable(self._descriptor)
            chunk = os.read(self._descriptor, _CHUNK)
            self._buffer += chunk
            self._ended = not chunk
        if not self._buffer:
            raise NoAnswer
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace").rstrip("\r")


class LineAsker:
    """Shows options with numbers and reads answers line by line. A bad line is asked again."""

    def __init__(self, console: Console, lines: Lines) -> None:
        self._console = console
        self._lines = lines

    def say(self, text: str) -> None:
        """Show a line."""
        self._console.print(Styled(text), soft_wrap=True)

    async def text(self, question: Text) -> JsonValue:
        """The next line."""
        self.say(f"? {question.prompt}{'' if question.required else ' (optional)'}")
        return await self._line("Your answer")

    async def choice(self, question: Choice) -> JsonValue:
        """Numbers, own words or `skip`; a blank line chooses nothing."""
        self.say(f"? {question.prompt}{'' if question.required else ' (optional)'}")
        for number, option in enumerate(question.options, 1):
            self.say(f"  {number}. {option.label}")
        hint = "Numbers, with commas between" if question.multiple else "A number"
        hint += ", or your own words" if question.allow_custom else ""
        hint += f', or "skip" ({question.skip})' if question.skip is not None else ""
        return await self._read(hint, lambda line: read_choice(question, line))

    async def decision(self, question: Decision) -> JsonValue:
        """A clear yes or no."""
        self.say(f"? {question.title}: {question.prompt}")
        return await self._read("Approve? yes or no", read_decision)

    async def _read(self, hint: str, read: Callable[[str], JsonValue]) -> JsonValue:
        while True:
            try:
                return read(await self._line(hint))
            except Unreadable as reason:
                self.say(str(reason))

    async def _line(self, hint: str) -> str:
        self._console.print(Styled(f"{hint}: "), end="", soft_wrap=True)
        # Without a line feed nothing would be written before the answer is there.
        self._console.file.flush()
        line = await self._lines.next()
        if not self._console.is_terminal:
            self.say(line)
        return line
