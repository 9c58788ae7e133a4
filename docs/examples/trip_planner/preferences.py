"""What a traveller likes: the form that asks for it, and the table that keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeGuard

from pydantic import JsonValue
from sqlalchemy import Connection, delete, insert, select

from rungent.demo.tables import PREFERENCES, Database
from rungent.demo.trip import TripError
from rungent.demo.trip_rows import load_trip

__all__ = ["PREFERENCE_FORM", "PreferenceService", "Preferences", "UnreadableForm", "read_form"]

# What the model is told to ask, and what the offline planner does ask.
PREFERENCE_FORM: dict[str, JsonValue] = {
    "kind": "form",
    "prompt": "How do you like to travel?",
    "questions": [
        {
            "id": "pace",
            "kind": "choice",
            "prompt": "Which pace do you prefer?",
            "options": [
                {"id": "relaxed", "label": "Relaxed", "description": "two places a day"},
                {"id": "normal", "label": "Normal", "recommended": True},
                {"id": "packed", "label": "Packed", "description": "as much as possible"},
            ],
        },
        {
            "id": "interests",
            "kind": "choice",
            "prompt": "What interests you?",
            "options": [
                {"id": "temples", "label": "Temples and shrines"},
                {"id": "museums", "label": "Museums"},
                {"id": "food", "label": "Food"},
                {"id": "nature", "label": "Parks and nature"},
            ],
            "multiple": True,
            "allow_custom": True,
        },
        {"id": "wish", "kind": "text", "prompt": "Any other wish?", "required": False},
    ],
}

_PACES = ("relaxed", "normal", "packed")


class UnreadableForm(TripError):
    """The answer belongs to another question than the preferences form."""

    code = "other_question"

    def __init__(self) -> None:
        super().__init__("That was not the answer to the form about preferences.")


@dataclass(frozen=True, slots=True)
class Preferences:
    """The answers of the form, in words."""

    pace: str
    interests: tuple[str, ...]
    wish: str = ""

    def describe(self) -> str:
        """One line, for a prompt and for the traveller."""
        parts = [f"{self.pace} pace", f"interests: {', '.join(self.interests)}"]
        return "; ".join([*parts, f"wish: {self.wish}"] if self.wish else parts)


def read_form(value: JsonValue) -> Preferences:
    """The preferences in a checked answer to the form. Raises UnreadableForm for any other."""
    answers: object = value.get("answers") if isinstance(value, dict) else None
    if not _is_object(answers):
        raise UnreadableForm
    pace, interests = _picked(answers.get("pace")), _picked(answers.get("interests"))
    wish = answers.get("wish", "")
    if len(pace) != 1 or pace[0] not in _PACES or not interests or not isinstance(wish, str):
        raise UnreadableForm
    # On one line: it stands in prompts, where a line break could pose as structure.
    return Preferences(pace[0], interests, " ".join(wish.split()))


def _picked(answer: object) -> tuple[str, ...]:
    if not _is_object(answer):
        return ()
    custom = [answer["custom"]] if answer.get("custom") else []
    return tuple(" ".join(str(item).split()) for item in [*answer.get("selected", ()), *custom])


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


class PreferenceService:
    """One set of preferences a trip. Every method is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, trip_id: str) -> Preferences | None:
        """The preferences of a trip, None before they were ever saved."""
        return await self._database.transaction(partial(_load, trip_id))

    async def save(self, trip_id: str, preferences: Preferences) -> None:
        """Replace the preferences of a trip. Raises TripNotFound."""
        await self._database.transaction(partial(_save, trip_id, preferences))


def _load(trip_id: str, connection: Connection) -> Preferences | None:
    found = select(PREFERENCES).where(PREFERENCES.c.trip_id == trip_id)
    row: Mapping[Any, Any] | None = connection.execute(found).mappings().first()
    if row is None:
        return None
    return Preferences(row["pace"], tuple(row["interests"]), row["wish"])


def _save(trip_id: str, preferences: Preferences, connection: Connection) -> None:
    connection.execute(delete(PREFERENCES).where(PREFERENCES.c.trip_id == trip_id))
    load_trip(connection, trip_id)
    connection.execute(
        insert(PREFERENCES).values(
            trip_id=trip_id,
            pace=preferences.pace,
            interests=list(preferences.interests),
            wish=preferences.wish,
        )
    )
