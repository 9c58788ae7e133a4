"""Questions with arrow keys, for a person at a terminal."""

from __future__ import annotations

import threading
from typing import Any, cast

import questionary
import trio
from pydantic import JsonValue
from questionary import Choice as Item
from questionary import Question as Prompt
from rich.console import Console
from rich.text import Text as Styled

from rungent.demo.asking import NoAnswer
from rungent.demo.questions import Choice, Decision, Text, choice_answer

__all__ = ["KeyAsker", "prompted"]

# No option of a run can have these ids by accident: they are no strings.
_OWN_WORDS = object()
_SKIP = object()
_NOTHING = object()


async def prompted(prompt: Prompt) -> Any:
    """What the person answers. Ctrl-C raises KeyboardInterrupt, Ctrl-D NoAnswer.

    The prompt runs in a thread with a loop of its own. When this is cancelled, it is told to
    end, and waited for: only then is the terminal in order again.
    """
    app = prompt.application
    ended = threading.Event()

    def end() -> None:
        if not app.is_done:
            app.exit(result=None)

    def begin() -> None:
        if ended.is_set():
            end()

    def ask() -> Any:
        try:
            return app.run(pre_run=begin)
        except EOFError:
            return _NOTHING

    async def end_when_cancelled() -> None:
        try:
            await trio.sleep_forever()
        finally:
            # In this order: either the loop is there to be told, or `begin` sees the mark.
            ended.set()
            if app.loop is not None and not app.loop.is_closed():
                app.loop.call_soon_threadsafe(end)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(end_when_cancelled)
        answer = await trio.to_thread.run_sync(ask)
        nursery.cancel_scope.cancel()
    await trio.lowlevel.checkpoint_if_cancelled()
    if answer is _NOTHING:
        raise NoAnswer
    return answer


class KeyAsker:
    """Asks with menus; what cannot be chosen can be typed."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def say(self, text: str) -> None:
        """Show a line."""
        self._console.print(Styled(text))

    async def text(self, question: Text) -> JsonValue:
        """Typed words."""
        optional = "" if question.required else " (optional)"
        return str(await prompted(questionary.text(f"{question.prompt}{optional}")))

    async def choice(self, question: Choice) -> JsonValue:
        """Options from a menu, own words as its last item but one, skipping as its last."""
        items = [Item(option.label, value=option.id) for option in question.options]
        if question.allow_custom:
            items.append(Item("Something else …", value=cast("str", _OWN_WORDS)))
        if question.multiple:
            picked: list[object] = await prompted(questionary.checkbox(question.prompt, items))
        else:
            if question.skip is not None:
                items.append(Item(question.skip, value=cast("str", _SKIP)))
            picked = [await prompted(questionary.select(question.prompt, items))]
        if _SKIP in picked or (not picked and question.skip is not None):
            return choice_answer(skipped=True)
        custom = ""
        if _OWN_WORDS in picked:
            custom = str(await prompted(questionary.text("Your own words:")))
        selected = [option for option in picked if isinstance(option, str)]
        return choice_answer(selected, custom) if selected or custom else None

    async def decision(self, question: Decision) -> JsonValue:
        """Approve or reject; rejecting comes first, so that a stray Enter does no harm."""
        self.say(question.prompt)
        items = [Item("Reject", value="reject"), Item("Approve", value="approve")]
        return str(await prompted(questionary.select(question.title, items)))
