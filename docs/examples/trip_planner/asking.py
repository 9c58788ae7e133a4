"""Asking a question in the terminal, whatever the terminal can do: one line after another.

An `Asker` asks one thing at a time. What the runtime refuses is asked again, with the reason;
of a form only the question that was refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, assert_never

from pydantic import JsonValue

from rungent import InvalidResponse
from rungent.demo.questions import Choice, Decision, Form, Question, Text

__all__ = ["Asker", "NoAnswer", "answer_until_accepted"]


class NoAnswer(Exception):
    """The input ended before the question was answered."""


class Asker(Protocol):
    """Asks a person and waits. Each method may be cancelled; the terminal is then as before.

    All raise NoAnswer at the end of the input, KeyboardInterrupt when the person gives up.
    """

    def say(self, text: str) -> None:
        """Show a line."""
        ...

    async def text(self, question: Text) -> JsonValue:
        """Words; blank when nothing was said."""
        ...

    async def choice(self, question: Choice) -> JsonValue:
        """A choice's answer; None when nothing was chosen."""
        ...

    async def decision(self, question: Decision) -> JsonValue:
        """`approve` or `reject`."""
        ...


Submit = Callable[[JsonValue], Awaitable[None]]


async def answer_until_accepted(asker: Asker, question: Question, submit: Submit) -> None:
    """Ask and submit until `submit` no longer raises InvalidResponse."""
    known: dict[str, JsonValue] = {}
    while True:
        try:
            await submit(await _ask(asker, question, known))
        except InvalidResponse as refused:
            asker.say(refused.message)
            if len(refused.path) > 1:
                known.pop(str(refused.path[1]), None)
            else:
                known.clear()
        else:
            return


async def _ask(asker: Asker, question: Question, known: dict[str, JsonValue]) -> JsonValue:
    """The answer; `known` holds the answers of a form that need not be asked again."""
    match question:
        case Text():
            return await asker.text(question)
        case Choice():
            return await asker.choice(question) or {}
        case Decision():
            return await asker.decision(question)
        case Form():
            if not known:
                asker.say(question.prompt)
            for key, part in question.questions:
                if key not in known:
                    known[key] = await _ask_part(asker, part)
            return {"answers": dict(known)}
        case _:
            assert_never(question)


async def _ask_part(asker: Asker, part: Text | Choice) -> JsonValue:
    return await (asker.text(part) if isinstance(part, Text) else asker.choice(part))
