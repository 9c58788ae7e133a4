"""Playing a scene in virtual time, and writing its log so that it is the same each time.

Ids are random in the runtime, so they are renamed in the order in which the log shows them;
times are those of the virtual clock.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import trio
from trio.testing import MockClock

from rungent import Event
from rungent.text import canonical_json
from rungent.verify.projection import RunView, project

__all__ = ["FOLDER", "Scene", "digest", "log_of", "states_of"]

Scene = Callable[[], Awaitable[Sequence[Event]]]

FOLDER = Path(__file__).resolve().parent
_ID = re.compile(r"\b(ses|run|evt|int)_[0-9a-f]{32}\b")
_MADE_CALL = re.compile(r'"(?:call_id|tool_call_id)":"([A-Za-z0-9]{9})"')


def log_of(scene: Scene) -> str:
    """The log of a scene, one event a line."""
    events = trio.run(scene, clock=MockClock(autojump_threshold=0))
    return _renamed("".join(event.to_json() + "\n" for event in events))


def states_of(log: str) -> str:
    """What the log adds up to: a digest after every event, and some states in full."""
    views = [RunView()]
    for line in log.split("\n")[:-1]:
        views.append(project(views[-1], json.loads(line)))
    last = len(views) - 1
    shown = {
        index: view.to_json()
        for index, view in enumerate(views)
        if index in {last // 3, 2 * last // 3, last} or view.interaction is not None
    }
    digests = [digest(view.to_json()) for view in views]
    return json.dumps({"digests": digests, "states": shown}, ensure_ascii=False, indent=1) + "\n"


def digest(state: dict[str, Any]) -> str:
    """The beginning of the hash of a state's canonical JSON."""
    return hashlib.sha256(canonical_json(state).encode()).hexdigest()[:16]


def _renamed(log: str) -> str:
    names: dict[str, str] = {}
    for found in _ID.finditer(log):
        prefix = found[1]
        count = sum(name.startswith(prefix) for name in names)
        names.setdefault(found[0], f"{prefix}_{count + 1:032x}")
    made = dict.fromkeys(found[1] for found in _MADE_CALL.finditer(log))
    names |= {call_id: f"made{index + 1:05}" for index, call_id in enumerate(made)}
    for old, new in names.items():
        log = log.replace(old, new)
    return log
