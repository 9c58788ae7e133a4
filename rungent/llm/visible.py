"""Turn raw content fragments into the text that may be shown.

Two things cannot be decided at the edge of a fragment and are held back until the next one:
half of a surrogate pair, and the beginning of a `<think>` tag. Source: docs/model-adapter.md
"""

from __future__ import annotations

import re
from typing import Literal

from rungent.text import storable

__all__ = ["ThinkFilter", "VisibleText", "join_surrogates"]

_SURROGATE = re.compile("[\ud800-\udfff]")
_OPEN = "<think>"
_CLOSE = "</think>"


def join_surrogates(text: str) -> str:
    """`text` with every surrogate pair made one character. Lone surrogates stay."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


class ThinkFilter:
    """Remove one `<think>…</think>` block at the start of a text and the blanks after it.

    A lone closing tag is text. A block that is never closed is private to its end.
    """

    def __init__(self) -> None:
        self._where: Literal["start", "block", "gap", "text"] = "start"
        self._blanks: list[str] = []
        self._tag = ""

    def feed(self, text: str) -> str:
        """The public part of `text` and of what was held back before it."""
        if self._where == "start":
            text = self._feed_start(text)
        if self._where == "block":
            text = self._feed_block(text)
        if self._where == "gap":
            text = text.lstrip()
            if text:
                self._where = "text"
        return text

    def flush(self) -> str:
        """What was held back and turns out to be text, now that the text has ended."""
        if self._where != "start":
            return ""
        self._where = "text"
        return "".join((*self._blanks, self._tag))

    def _feed_start(self, text: str) -> str:
        if not self._tag:
            rest = text.lstrip()
            self._blanks.append(text[: len(text) - len(rest)])
            text = rest
        self._tag += text
        if self._tag.startswith(_OPEN):
            self._where = "block"
            inside, self._tag = self._tag[len(_OPEN) :], ""
            return inside
        if _OPEN.startswith(self._tag):
            return ""
        return self.flush()

    def _feed_block(self, text: str) -> str:
        text = self._tag + text
        before, found, after = text.partition(_CLOSE)
        if found:
            self._where = "gap"
            return after
        # Long enough to hold every beginning of the closing tag.
        self._tag = before[1 - len(_CLOSE) :]
        return ""


class VisibleText:
    """The public text of one attempt, storable, piece by piece."""

    def __init__(self, *, strip_think: bool) -> None:
        self._think = ThinkFilter() if strip_think else None
        self._half = ""
        self._shown: list[str] = []

    def feed(self, fragment: str) -> str:
        """What may be shown after `fragment`; possibly nothing."""
        text = self._half + fragment
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return self._show(text[: len(text) - len(self._half)])

    def flush(self) -> str:
        """What was held back, now that no fragment follows."""
        rest = self._show(self._half)
        self._half = ""
        if self._think is not None:
            late = self._think.flush()
            self._keep(late)
            rest += late
        return rest

    def total(self) -> str:
        """Everything shown so far."""
        return "".join(self._shown)

    def add(self, text: str) -> str:
        """Show `text` after everything else, past the filter. Returns its storable form."""
        text = storable(join_surrogates(text))
        self._keep(text)
        return text

    def _show(self, text: str) -> str:
        text = storable(join_surrogates(text))
        if self._think is not None:
            text = self._think.feed(text)
        self._keep(text)
        return text

    def _keep(self, text: str) -> None:
        if text:
            self._shown.append(text)
