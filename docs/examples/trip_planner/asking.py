"""Asking a question in the terminal, whatever the terminal can do: one line after another.

An `Asker` asks one thing at a time. What the runtime refuses is asked again, with the reason;
of a form and of data only the part that was refused.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar, assert_never

from pydantic import JsonValue

from rungent import InvalidResponse
from rungent.demo.data_fields import fields_of, read_field, read_json
from rungent.demo.questions import Choice, Data, Decision, Form, Question, Text, Unreadable

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
Value = TypeVar("Value")

# The parts of an answer by their question, each with the members that it gives: none is left out.
_Known = dict[str, dict[str, JsonValue]]


async def answer_until_accepted(asker: Asker, question: Question, submit: Submit) -> None:
    """Ask and submit until `submit` no longer raises InvalidResponse."""
    known: _Known = {}
    while True:
        try:
            await submit(await _ask(asker, question, known))
        except InvalidResponse as refused:
            asker.say(_told(question, refused))
            part = _refused_part(question, refused.path)
            if part in known:
                del known[part]
            else:
                known.clear()
        else:
            return


def _told(question: Question, refused: InvalidResponse) -> str:
    """The reason; for data with its place, which no form shows."""
    place = " → ".join(map(str, refused.path)) if isinstance(question, Data) else ""
    return f"{refused.message} ({place})" if place else refused.message


def _refused_part(question: Question, path: Sequence[str | int]) -> str:
    """The question of a form or the field of data that was refused; blank for the whole."""
    inner = path[1:] if isinstance(question, Form) else path
    return str(inner[0]) if inner else ""


async def _ask(asker: Asker, question: Question, known: _Known) -> JsonValue:
    """The answer; `known` holds the parts of a larger one that need not be asked again."""
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
                    known[key] = {key: await _ask_part(asker, part)}
            return {"answers": _whole(known)}
        case Data():
            return await _ask_data(asker, question, known)
        case _:
            assert_never(question)


async def _ask_data(asker: Asker, question: Data, known: _Known) -> JsonValue:
    fields = fields_of(question.schema)
    if fields is None:
        asker.say(f"The answer is JSON that fits {json.dumps(question.schema)}")
        return await _ask_readable(asker, Text(question.prompt), read_json)
    if not known:
        asker.say(question.prompt)
    for field in fields:
        if field.name not in known:
            read = partial(read_field, field)
            known[field.name] = await _ask_readable(asker, field.question, read)
    return _whole(known)


async def _ask_readable(
    asker: Asker, part: Text | Choice, read: Callable[[JsonValue], Value]
) -> Value:
    while True:
        try:
            return read(await _ask_part(asker, part))
        except Unreadable as reason:
            asker.say(str(reason))


async def _ask_part(asker: Asker, part: Text | Choice) -> JsonValue:
    return await (asker.text(part) if isinstance(part, Text) else asker.choice(part))


def _whole(known: _Known) -> dict[str, JsonValue]:
    return {name: value for part in known.values() for name, value in part.items()}
