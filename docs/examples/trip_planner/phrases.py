"""The phrases that the offline planner understands, each as one tool call.

Pure text work: a sentence goes in, steps of calls come out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from pydantic import JsonValue

from rungent.demo.preferences import PREFERENCE_FORM

__all__ = ["ANSWER", "EXAMPLES", "Parsed", "PlannedCall", "parse"]

ANSWER = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Stands in a planned argument for the user's answer to the question asked before."""

Arguments = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One tool call that the planner wants."""

    name: str
    arguments: Arguments = field(default_factory=dict[str, JsonValue])


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a sentence asks for: steps one after the other, the calls of a step side by side.

    `unclear` holds the parts that fit no phrase, in the user's words.
    """

    steps: tuple[tuple[PlannedCall, ...], ...] = ()
    unclear: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Phrase:
    tool: str
    pattern: re.Pattern[str]
    arguments: Callable[[re.Match[str]], Arguments]
    # A call of the next step, made with the answer to the first: it is not offered before.
    then: PlannedCall | None = None


EXAMPLES = (
    "Show my trip",
    "What is on day 2?",
    "Move Asakusa Temple to day 2",
    "Move Ueno Park to the unplanned places",
    "Swap Tokyo Tower and Ueno Park",
    "Add Meiji Shrine to day 1",
    "Add a day",
    "Take the train on day 2",
    "Take a taxi to Tokyo Tower",
    "Call the trip Spring in Tokyo",
    "Rename my trip",
    "Set a budget",
    "Delete day 3",
    "Remove Tokyo Tower",
    "Ask about my preferences",
    "Optimise day 1",
)

_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_DAY = rf"(?:the )?day (?P<day>\d{{1,3}}|{'|'.join(_NUMBERS)})"
_POOL = r"(?:the )?unplanned(?: (?:pool|list|places?))?"
_MODE = r"(?:the |a )?(?P<mode>train|taxi|bus|walk)"
_OWNED = r"(?:(?:me|my|the|our|this|all|whole) )*"
_TO_TRIP = r"(?: to (?:my|the|our|this) trip)?"
_VERBS = (
    r"(?:please )?(?:add|ask|call|delete|exchange|go|list|move|optimi[sz]e|put|remove|rename|set"
    r"|show|swap|take|use|walk|what)\b"
)
_THEN = re.compile(
    rf"(?: ?[,;.!?] ?| )(?:and )?then (?={_VERBS})| ?[.!?] (?={_VERBS})", re.IGNORECASE
)
_AND = re.compile(rf"(?: ?[,;] ?(?:and )?| and )(?={_VERBS})", re.IGNORECASE)


def parse(text: str, tools: Collection[str]) -> Parsed:
    """Read a sentence. Only phrases whose tool is in `tools` count.

    "then" and the end of a sentence begin a new step; "and" and a comma stay in the step. They
    separate only where a verb follows, for "Swap A and B" is one request.
    """
    steps: list[tuple[PlannedCall, ...]] = []
    unclear: list[str] = []
    tidy = " ".join(text.replace("\u2019", "'").split())
    for sentence in _THEN.split(tidy):
        calls: list[PlannedCall] = []
        followers: list[PlannedCall] = []
        for clause in _AND.split(sentence):
            wish = clause.strip(" .,;!?")
            read = _read(wish, tools)
            if read is not None:
                calls.append(read[0])
                followers += read[1:]
            elif wish:
                unclear.append(wish)
        steps += [tuple(step) for step in (calls, followers) if step]
    return Parsed(tuple(steps), tuple(unclear))


def _read(clause: str, tools: Collection[str]) -> tuple[PlannedCall, ...] | None:
    wish = re.sub(r"^please |,? please$", "", clause, flags=re.IGNORECASE)
    for phrase in _PHRASES:
        if phrase.tool in tools and (found := phrase.pattern.fullmatch(wish)):
            call = PlannedCall(phrase.tool, phrase.arguments(found))
            return (call,) if phrase.then is None else (call, phrase.then)
    return None


def _day(found: re.Match[str]) -> int | None:
    word: str | None = found["day"]
    if word is None:
        return None
    return int(word) if word.isdigit() else _NUMBERS.index(word.lower()) + 1


def _name(text: str) -> str:
    return re.sub(r"^the ", "", text.strip(" \"'\u201c\u201d"), flags=re.IGNORECASE)


def _mode(found: re.Match[str]) -> str:
    return found["mode"].lower()


def _phrase(
    tool: str,
    pattern: str,
    arguments: Callable[[re.Match[str]], Arguments],
    then: PlannedCall | None = None,
) -> _Phrase:
    return _Phrase(tool, re.compile(pattern, re.IGNORECASE), arguments, then)


def _seat(found: re.Match[str]) -> Arguments:
    return {"name": _name(found["place"]), "day_number": _day(found)}


def _nothing(found: re.Match[str]) -> Arguments:
    del found
    return {}


# The first phrase that fits wins, so the narrower one of a kind stands first.
_PHRASES = (
    _phrase("add_day", rf"add (?:a |another |one more )?(?:new )?day{_TO_TRIP}", _nothing),
    _phrase("add_place", rf"add (?P<place>.+?) (?:to|on) (?:{_DAY}|{_POOL})", _seat),
    _phrase(
        "add_place",
        # Without a day to close it, a name ends at "and": it is no place to hide a wish in.
        rf"add (?P<place>(?:(?! and ).)+?){_TO_TRIP}",
        lambda m: {"name": _name(m["place"]), "day_number": None},
    ),
    _phrase("move_place", rf"(?:move|put) (?P<place>.+?) (?:to|on|into) (?:{_DAY}|{_POOL})", _seat),
    _phrase(
        "swap_places",
        r"(?:swap|exchange) (?P<first>.+?) (?:and|with|for) (?P<second>.+)",
        lambda m: {"first": _name(m["first"]), "second": _name(m["second"])},
    ),
    _phrase(
        "get_day",
        rf"(?:what(?:'s| is)|show(?: me)?|list)(?: planned)?(?: the plan)?(?: on| for| of)? {_DAY}",
        lambda m: {"day_number": _day(m)},
    ),
    _phrase(
        "list_places",
        rf"(?:show|list|what(?:'s| is)(?: in| on)?) {_OWNED}(?:trip|plan|itinerary|places)",
        _nothing,
    ),
    _phrase(
        "set_transport",
        rf"(?:take|use|go by) {_MODE} (?:on|for) {_DAY}",
        lambda m: {"mode": _mode(m), "day_number": _day(m)},
    ),
    _phrase(
        "set_transport",
        rf"walk (?:on|for) {_DAY}",
        lambda m: {"mode": "walk", "day_number": _day(m)},
    ),
    _phrase(
        "set_transport",
        rf"(?:take|use) {_MODE} to (?P<place>.+)",
        lambda m: {"mode": _mode(m), "to_place": _name(m["place"])},
    ),
    _phrase(
        "set_transport",
        r"walk to (?P<place>.+)",
        lambda m: {"mode": "walk", "to_place": _name(m["place"])},
    ),
    _phrase(
        "set_transport",
        rf"set (?:the )?transport (?:on|for|of) {_DAY} to {_MODE}",
        lambda m: {"mode": _mode(m), "day_number": _day(m)},
    ),
    _phrase(
        "rename_trip",
        r"(?:call|rename) (?:my|the|our|this) trip (?:to )?(?P<title>.+)",
        lambda m: {"title": m["title"].strip(" \"'\u201c\u201d")},
    ),
    _phrase(
        "request_input",
        r"(?:re)?name (?:my|the|our|this) trip",
        lambda _: {"kind": "text", "prompt": "What shall the trip be called?"},
        PlannedCall("rename_trip", {"title": ANSWER}),
    ),
    _phrase("remove_day", rf"(?:delete|remove) {_DAY}", lambda m: {"day_number": _day(m)}),
    _phrase(
        "remove_place",
        # As above: what stands behind "and" is another wish.
        r"(?:delete|remove) (?P<place>(?:(?! and ).)+?)(?: from (?:my|the|our|this) trip)?",
        lambda m: {"name": _name(m["place"])},
    ),
    _phrase(
        "request_input",
        r"(?:set|ask(?: me)?(?: about| for)?) my (?:travel )?preferences",
        lambda m: dict(PREFERENCE_FORM),
        PlannedCall("save_preferences"),
    ),
    _phrase(
        "ask_budget",
        r"(?:set|ask(?: me)?(?: about| for)?) (?:a|my|the|our) (?:travel )?budget"
        r"(?: (?:for|of) (?:my|the|our|this) trip)?",
        _nothing,
    ),
    _phrase(
        "optimise_route",
        rf"optimi[sz]e (?:(?:the|my) (?:route|way)s? (?:of|on|for) )?{_DAY}",
        lambda m: {"day_number": _day(m)},
    ),
    _phrase(
        "optimise_route",
        rf"optimi[sz]e {_OWNED}(?:routes?|ways?|trip)",
        lambda _: {"day_number": None},
    ),
)
