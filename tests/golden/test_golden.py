"""The runtime still writes the logs that the SDK is tested on, and they say what they said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rungent.events import PAYLOADS
from rungent.verify.projection import RunView, project
from tests.golden.record import FOLDER, log_of, states_of
from tests.golden.scenes import SCENES


def stored(name: str) -> list[dict[str, Any]]:
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("name", SCENES)
def test_the_runtime_writes_the_stored_log_again(name: str) -> None:
    """`python -m tests.golden` writes the logs anew; look at the difference before you do."""
    log = log_of(SCENES[name])
    assert log == (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8")
    assert states_of(log) == (FOLDER / f"{name}.state.json").read_text(encoding="utf-8")


def test_every_stored_file_is_of_a_scene() -> None:
    names = {f"{name}.{ending}" for name in SCENES for ending in ("jsonl", "state.json")}
    assert {path.name for path in FOLDER.glob("*.json*")} == names


def test_every_event_type_stands_in_a_log() -> None:
    assert {event["type"] for name in SCENES for event in stored(name)} == set(PAYLOADS)


def test_no_log_holds_the_text_of_an_exception() -> None:
    for path in FOLDER.glob("*.json*"):
        assert "canary" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SCENES)
def test_any_cut_and_repetition_gives_the_same_state(name: str) -> None:
    events = stored(name)
    whole = RunView()
    for event in events:
        whole = project(whole, event)
    for cut in range(len(events)):
        view = RunView()
        for event in [*events[:cut], *events[max(0, cut - 3) :], *events[:cut]]:
            view = project(view, event)
        assert view == whole


@pytest.mark.parametrize("name", SCENES)
def test_the_end_settles_every_row(name: str) -> None:
    view = RunView()
    for event in stored(name):
        view = project(view, event)
    assert view.interaction is None
    assert "running" not in {row["status"] for row in view.activities}
    assert view.status in {"completed", "failed", "cancelled"}


def test_an_event_of_another_run_starts_anew_and_an_unknown_type_only_counts() -> None:
    first = {"run_id": "run_a", "seq": 4, "type": "message.delta", "data": {"delta": "x"}}
    view = project(RunView(), first)
    later = project(view, {"run_id": "run_a", "seq": 5, "type": "weather.changed", "data": {}})
    assert (later.last_seq, later.text) == (5, "x")
    other = project(later, {**first, "run_id": "run_b", "seq": 1})
    assert (other.run_id, other.last_seq, other.text) == ("run_b", 1, "x")
