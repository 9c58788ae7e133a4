"""Typed answers: a pydantic model as the schema of an answer, checked strictly.

Source: docs/interactive-tools.md#answers.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from pydantic import BaseModel, JsonValue, ValidationError

from rungent.errors import InvalidResponse
from rungent.text import dump_json, storable
from rungent.tools.normal_form import NoNormalForm, normal_form, plain_arguments, same_value
from rungent.tools.schema import json_schema

__all__ = ["REASONS", "AnswerSchema", "CheckedAnswer"]

logger = logging.getLogger(__name__)

_CODES: Mapping[str, str] = {
    "missing": "missing_answer",
    "extra_forbidden": "unknown_field",
    "string_too_long": "too_long",
    "too_long": "too_long",
}
REASONS: Mapping[str, str] = {
    "missing_answer": "A required field is missing.",
    "unknown_field": "There is no such field.",
    "too_long": "The value is too long.",
    "type_mismatch": "The value has another type.",
    "invalid_value": "The value is not valid.",
}
"""Reason code: its text."""


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """An answer as the model's instance, and as JSON that gives the same instance again."""

    value: BaseModel
    normal: JsonValue


class AnswerSchema:
    """The rules of an answer. Raises TypeError for a model without a JSON schema.

    Values are read as JSON in pydantic's strict mode, so `1` and `"yes"` are no booleans. Keys
    that the model does not know are refused unless its own configuration says what `extra` is.
    """

    def __init__(self, model: type[BaseModel]) -> None:
        self.model = model
        self._extra: Literal["forbid"] | None = (
            None if model.model_config.get("extra") is not None else "forbid"
        )
        made = json_schema(model)
        if self._extra == "forbid" and made.get("type") == "object":
            made.setdefault("additionalProperties", False)
        self._schema: dict[str, Any] = made

    @property
    def schema(self) -> dict[str, Any]:
        """A copy of the JSON Schema 2020-12."""
        return copy.deepcopy(self._schema)

    def check(self, value: object) -> CheckedAnswer:
        """The answer in both forms.

        Raises InvalidResponse for the first broken rule, with its reason code and the path of
        keys and indexes to the offending part, and without the value.
        """
        try:
            plain = plain_arguments({"answer": value})
            assert isinstance(plain, dict)
            first = self._read(plain["answer"])
            normal = _normal(first)
            again = self._read(normal)
        except NoNormalForm:
            raise _refused("invalid_value", ()) from None
        if not same_value(first, again):
            raise _refused("invalid_value", ())
        return CheckedAnswer(again, normal)

    def _read(self, plain: JsonValue) -> BaseModel:
        try:
            return self.model.model_validate_json(dump_json(plain), strict=True, extra=self._extra)
        except ValidationError as wrong:
            error = wrong.errors(include_url=False, include_context=False, include_input=False)[0]
            raise _refused(_reason(error["type"]), error["loc"]) from None
        except Exception as broken:  # a validator of the application broke
            logger.exception("an answer could not be validated")
            raise _refused("invalid_value", ()) from broken


def _normal(instance: BaseModel) -> JsonValue:
    # Wrapped by nothing: a model of a list or a text has that as its form.
    dumped = cast("object", instance.model_dump(mode="json", by_alias=True, round_trip=True))
    if isinstance(dumped, dict):
        return normal_form(instance)[0]
    plain = plain_arguments({"answer": dumped})
    assert isinstance(plain, dict)
    return plain["answer"]


def _reason(kind: str) -> str:
    known = _CODES.get(kind)
    if known is not None:
        return known
    return "type_mismatch" if kind.endswith(("_type", "_parsing")) else "invalid_value"


def _refused(reason: str, loc: tuple[str | int, ...]) -> InvalidResponse:
    path = [storable(part) if isinstance(part, str) else part for part in loc]
    return InvalidResponse(reason, REASONS[reason], path=path)
