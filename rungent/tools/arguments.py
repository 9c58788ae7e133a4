"""Turns the arguments of a call into Python values and into their one normal form.

The normal form is JSON with sorted keys and filled defaults. It is what is fingerprinted,
stored, shown in confirmations and executed again after a pause, so the values that a tool
receives are always read back from it. Source: docs/tools.md.
"""

from __future__ import annotations

import copy
import inspect
import logging
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import core_schema

from rungent.text import storable
from rungent.tools.normal_form import (
    NoNormalForm,
    digest,
    normal_form,
    plain_arguments,
    same_value,
)
from rungent.tools.schema import BoundField, build_model, json_schema

__all__ = ["ArgumentErrors", "ArgumentModel", "Arguments"]

logger = logging.getLogger(__name__)

MAX_DETAILS = 50

_GENERIC = "The value is not valid."
_CHANGED = "The value cannot be represented exactly as JSON."
_KNOWN_TYPES = frozenset(typing.get_args(core_schema.ErrorType))
# The texts of these errors quote the input, or the text of an exception that may do so.
_QUOTING = {
    "assertion_error": _GENERIC,
    "get_attribute_error": _GENERIC,
    "iteration_error": "Input should be iterable",
    "json_invalid": "Input should be valid JSON",
    "mapping_type": "Input should be a valid mapping",
    "timezone_offset": "The timezone offset is not the required one",
    "union_tag_invalid": "Input tag does not match any of the expected tags",
    "url_parsing": "Input should be a valid URL",
    "url_syntax_violation": "Input should be a valid URL",
    "uuid_parsing": "Input should be a valid UUID",
    "value_error": _GENERIC,
}


class ArgumentErrors(ValueError):
    """Arguments that do not fit. `details` lists `{path, message}` without input values."""

    def __init__(self, details: Sequence[Mapping[str, str]]) -> None:
        super().__init__("the arguments are not valid")
        self.details: list[dict[str, JsonValue]] = [dict(detail) for detail in details]


@dataclass(frozen=True, slots=True)
class Arguments:
    """Checked arguments: Python values by parameter, the normal form, and its fingerprint."""

    values: dict[str, Any]
    normalised: dict[str, JsonValue]
    fingerprint: str


class ArgumentModel:
    """The argument rules of one tool, built once when the tool is defined.

    Raises TypeError for an annotation without a JSON schema, or a default that does not fit
    its annotation or has no JSON form.
    """

    def __init__(self, parameters: Sequence[inspect.Parameter], hints: Mapping[str, Any]) -> None:
        self._model, self._fields = build_model(parameters, hints)
        self._schema = json_schema(self._model)
        self.hints = {p.name: hints[p.name] for p in parameters}
        _check_defaults(parameters, hints)

    @property
    def schema(self) -> dict[str, Any]:
        """A copy of the JSON schema that the model and MCP clients get."""
        return copy.deepcopy(self._schema)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters, in the order of the signature."""
        return tuple(field.parameter for field in self._fields)

    @property
    def keys(self) -> frozenset[str]:
        """The keys of the parameters in JSON."""
        return frozenset(field.key for field in self._fields)

    def check(self, arguments: Mapping[str, object]) -> Arguments:
        """Validate and normalise in one pass. Raises ArgumentErrors."""
        return _check(self._model, self._fields, arguments)

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Python values by parameter name; no value is shared between calls."""
        return self.check(arguments).values

    def normalise(self, arguments: Mapping[str, object]) -> dict[str, JsonValue]:
        """The normal form, which validates again to equal values."""
        return self.check(arguments).normalised

    def by_parameter(self, normalised: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """A normal form with parameter names in place of the aliases."""
        return {field.parameter: normalised[field.key] for field in self._fields}


def _check_defaults(parameters: Sequence[inspect.Parameter], hints: Mapping[str, Any]) -> None:
    """Raises TypeError for a default that could never be stored and read back."""
    fixed = [parameter for parameter in parameters if _has_fixed_default(parameter.default)]
    model, fields = build_model(fixed, hints)
    try:
        _check(model, fields, {})
    except ArgumentErrors as exc:
        raise TypeError(f"a default does not fit its annotation: {exc.details}") from exc


def _has_fixed_default(default: object) -> bool:
    if isinstance(default, FieldInfo):
        return not default.is_required() and default.default_factory is None
    return default is not inspect.Parameter.empty


def _check(
    model: type[BaseModel], fields: Sequence[BoundField], arguments: Mapping[str, object]
) -> Arguments:
    try:
        first = _validated(model, plain_arguments(arguments))
        normalised, text = normal_form(first)
    except NoNormalForm as exc:
        raise ArgumentErrors([_detail("", str(exc))]) from exc
    try:
        again = _validated(model, normalised)
    except ArgumentErrors as exc:
        paths = [str(detail["path"]) for detail in exc.details]
        raise ArgumentErrors([_detail(path, _CHANGED) for path in paths]) from exc
    changed = [
        field.key
        for field in fields
        if not same_value(getattr(first, field.attribute), getattr(again, field.attribute))
    ]
    if changed:
        raise ArgumentErrors([_detail(key, _CHANGED) for key in changed])
    values = {field.parameter: getattr(again, field.attribute) for field in fields}
    return Arguments(values, normalised, digest(text))


def _validated(model: type[BaseModel], plain: JsonValue) -> BaseModel:
    try:
        return model.model_validate(plain)
    except ValidationError as exc:
        listed = exc.errors(include_url=False, include_context=False, include_input=False)
        raise ArgumentErrors(
            [_detail(_path(error["loc"]), _text(error)) for error in listed[:MAX_DETAILS]]
        ) from None
    except Exception as exc:  # a validator of the application broke
        logger.exception("arguments could not be validated")
        raise ArgumentErrors([_detail("", _GENERIC)]) from exc


def _path(loc: Sequence[str | int]) -> str:
    return storable(".".join(str(part) for part in loc))


def _text(error: Mapping[str, Any]) -> str:
    kind: str = error["type"]
    if kind not in _KNOWN_TYPES:
        return _GENERIC
    message: str = error["msg"]
    return storable(_QUOTING.get(kind, message))


def _detail(path: str, message: str) -> dict[str, str]:
    return {"path": path, "message": message}
