"""Builds the pydantic model and the JSON schema of a tool function's parameters.

Everything here happens once, when a tool is defined, and what cannot work raises TypeError
then. Source: docs/tools.md.
"""

from __future__ import annotations

import collections.abc
import inspect
import operator
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

__all__ = ["BoundField", "build_model", "declaring_place", "json_schema", "resolve_hints"]

_CONFIG = ConfigDict(
    extra="forbid", validate_default=True, allow_inf_nan=False, protected_namespaces=()
)
_KEY_ORDER = ("type", "properties", "required", "additionalProperties")
_CONTAINERS = (
    list,
    set,
    frozenset,
    tuple,
    dict,
    collections.abc.Sequence,
    collections.abc.Mapping,
    collections.abc.Set,
)


@dataclass(frozen=True, slots=True)
class BoundField:
    """One parameter: its name, the model attribute that holds it, and its key in JSON."""

    parameter: str
    attribute: str
    key: str


def resolve_hints(
    function: Callable[..., object], namespace: Mapping[str, object]
) -> dict[str, Any]:
    """The evaluated annotations of the parameters, with their `Annotated` metadata.

    Names are looked up in the function's globals, its closure and `namespace`, the locals of
    the place that defines it. Raises TypeError for a name that none of them knows.
    """
    plain = inspect.unwrap(function)
    # The return annotation is left out: nobody needs it, so it may be unresolvable.
    annotations = {
        name: parameter.annotation
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.annotation is not parameter.empty
    }
    holder = types.SimpleNamespace(__annotations__=annotations)
    visible = {**namespace, **_closure(plain)}
    try:
        return typing.get_type_hints(
            holder, getattr(plain, "__globals__", {}), visible, include_extras=True
        )
    except Exception as exc:  # evaluating an annotation runs the application's code
        name = getattr(function, "__name__", "tool")
        raise TypeError(f"{name}: an annotation cannot be resolved: {exc}") from exc


def declaring_place(frame: FrameType | None) -> tuple[dict[str, object], dict[str, object]]:
    """Globals and locals of the caller of `frame`: types may be local to where a tool is made."""
    caller = frame.f_back if frame is not None else None
    return ({}, {}) if caller is None else (caller.f_globals, dict(caller.f_locals))


def _closure(function: Callable[..., object]) -> dict[str, object]:
    code = getattr(function, "__code__", None)
    names: Sequence[str] = getattr(code, "co_freevars", ())
    found: dict[str, object] = {}
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # assigned only after the definition
            continue
    return found


def build_model(
    parameters: Sequence[inspect.Parameter], hints: Mapping[str, Any]
) -> tuple[type[BaseModel], tuple[BoundField, ...]]:
    """A model with one field per parameter, refusing extra keys.

    Attributes have neutral names, so a parameter may be called `copy` or `model_dump`.
    Raises TypeError for a type that pydantic cannot handle or an alias that would not
    lead back to the same parameter.
    """
    fields: dict[str, Any] = {}
    for index, parameter in enumerate(parameters):
        hint = _described(hints[parameter.name])
        base, *metadata = typing.get_args(hint) if _is_annotated(hint) else (hint,)
        # Our alias comes first, so that an alias of the application outranks it.
        hint = _annotated(base, [Field(alias=parameter.name), *metadata])
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[f"argument_{index}"] = (hint, default)
    try:
        model = create_model("Arguments", __config__=_CONFIG, **fields)
        model.model_rebuild()
    except Exception as exc:  # type hooks and defaults are the application's code
        raise TypeError(f"an annotation has no JSON schema: {exc}") from exc
    bound = tuple(
        BoundField(parameter.name, attribute, _key(parameter.name, model.model_fields[attribute]))
        for attribute, parameter in zip(fields, parameters, strict=True)
    )
    if len({field.key for field in bound}) != len(bound):
        raise TypeError("two parameters have the same alias")
    return model, bound


def _key(parameter: str, info: FieldInfo) -> str:
    key = info.validation_alias
    if not isinstance(key, str) or key != info.serialization_alias:
        raise TypeError(f"parameter {parameter}: one plain alias must serve both directions")
    return key


def _described(hint: Any) -> Any:
    """`hint` with the strings of `Annotated[T, "text"]` made descriptions, nested ones too."""
    if _is_annotated(hint):
        base, *metadata = typing.get_args(hint)
        return _annotated(_described(base), [_description(item) for item in metadata])
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is collections.abc.Iterable:
        origin = list  # pydantic reads an Iterable lazily, but values are read several times
    if not parts:
        return hint
    if origin is typing.Union or origin is types.UnionType:
        return _subscripted(typing.Union, [_described(part) for part in parts])
    if origin in _CONTAINERS:
        return _subscripted(origin, [_described(part) for part in parts])
    return hint


def _description(item: object) -> object:
    return Field(description=inspect.cleandoc(item)) if isinstance(item, str) else item


def _is_annotated(hint: object) -> bool:
    return typing.get_origin(hint) is Annotated


def _annotated(base: object, metadata: Sequence[object]) -> Any:
    return _subscripted(Annotated, [base, *metadata])


def _subscripted(form: Any, parts: Sequence[object]) -> Any:
    return operator.getitem(form, tuple(parts))


def json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema 2020-12 of the arguments, without generated titles, in stable key order.

    Raises TypeError when a type or a default has no JSON form.
    """
    try:
        made = model.model_json_schema(schema_generator=_Untitled)
    except TypeError:
        raise
    except Exception as exc:  # type hooks are the application's code
        raise TypeError(f"an annotation has no JSON schema: {exc}") from exc
    made.setdefault("properties", {})
    for name, definition in made.get("$defs", {}).items():
        # The titles of enums are set behind the generator's back.
        is_enum = "enum" in definition or "const" in definition
        if is_enum and name.endswith(definition.get("title", "\n")):
            del definition["title"]
    return {
        **{key: made[key] for key in _KEY_ORDER if key in made},
        **{key: value for key, value in made.items() if key not in _KEY_ORDER},
    }


class _Untitled(GenerateJsonSchema):
    """Leaves out the titles that pydantic derives from names; written ones stay."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        return _untitled(made, schema["cls"], getattr(schema["cls"], "model_config", None))

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        made = super().dataclass_schema(schema)
        return _untitled(made, schema["cls"], getattr(schema["cls"], "__pydantic_config__", None))

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        made = super().typed_dict_schema(schema)
        cls = schema.get("cls")
        if cls is None:
            return made
        return _untitled(made, cls, getattr(cls, "__pydantic_config__", None))

    def emit_warning(self, kind: Any, detail: str) -> None:
        if kind == "non-serializable-default":
            raise TypeError("a default has no JSON form")
        # Other kinds only say that a member of a union was left out of the schema.


def _untitled(
    made: JsonSchemaValue, cls: type[object], config: Mapping[str, object] | None
) -> JsonSchemaValue:
    written = config is not None and (config.get("title") or config.get("model_title_generator"))
    if not written and made.get("title") == cls.__name__:
        return {key: value for key, value in made.items() if key != "title"}
    return made
