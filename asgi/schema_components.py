"""The parts that the OpenAPI description refers to: schemas, parameters, headers.

Source: docs/http.md#description.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from rungent.asgi.problems import INTERNAL, PROBLEMS, Problem
from rungent.asgi.requests import DEFAULT_PAGE, KEY_LIMIT, MAX_NUMBER, MAX_PAGE
from rungent.asgi.schema_operations import EVENTS, OPERATIONS, STREAM
from rungent.errors import RungentError
from rungent.events import event_schema

__all__ = [
    "HEADERS",
    "PARAMETERS",
    "answer_schemas",
    "error_name",
    "reference",
    "schema_components",
]

Json = dict[str, Any]
REF = "#/components/schemas/"
TEXT: Json = {"type": "string"}


def reference(section: str, name: str) -> Json:
    """A reference to a component."""
    return {"$ref": f"#/components/{section}/{name}"}


def _parameter(place: str, name: str, schema: Json, text: str) -> Json:
    return {
        "name": name,
        "in": place,
        "required": place == "path",
        "description": text,
        "schema": schema,
    }


def _number(least: int, most: int, default: int) -> Json:
    return {"type": "integer", "minimum": least, "maximum": most, "default": default}


PARAMETERS: Mapping[str, Json] = {
    "SessionId": _parameter("path", "session_id", TEXT, "Id of a session."),
    "RunId": _parameter("path", "run_id", TEXT, "Id of a run."),
    "Token": _parameter("path", "token", TEXT, "The token of a button."),
    "Limit": _parameter("query", "limit", _number(1, MAX_PAGE, DEFAULT_PAGE), "Size of a page."),
    "Cursor": _parameter(
        "query", "cursor", TEXT, "Where the page begins: opaque, from the `Link` header."
    ),
    "AfterSeq": _parameter(
        "query", "after_seq", _number(0, MAX_NUMBER, 0), "Only events with a larger `seq`."
    ),
    "Until": _parameter(
        "query",
        "until",
        {"const": "terminal", "type": "string"},
        "Follow the run through its pauses to its end.",
    ),
    "LastEventId": _parameter(
        "header",
        "Last-Event-ID",
        TEXT,
        "As `after_seq`, which wins. Sent by browsers; ignored if it is no number.",
    ),
    "IdempotencyKey": _parameter(
        "header",
        "Idempotency-Key",
        {"type": "string", "minLength": 1, "maxLength": KEY_LIMIT},
        "Unique per session. The same request with the same key gives the run of the first.",
    ),
}

HEADERS: Mapping[str, Json] = {
    "Link": {
        "description": 'The next page, if there is one: `<url>; rel="next"`.',
        "schema": TEXT,
    },
    "Idempotency-Replayed": {
        "description": "Present when an earlier request with this key made the run.",
        "schema": {"const": "true", "type": "string"},
    },
    "Retry-After": {
        "description": "Seconds to wait.",
        "required": True,
        "schema": {"type": "integer", "minimum": 1},
    },
    "WWW-Authenticate": {"description": "As the service gives it, if it does.", "schema": TEXT},
    "Allow": {"description": "The methods of the path.", "required": True, "schema": TEXT},
    "Cache-Control": {"required": True, "schema": {"const": "no-cache, no-transform"}},
    "X-Accel-Buffering": {"required": True, "schema": {"const": "no"}},
}


def error_name(kind: type[RungentError]) -> str:
    """The name of an error's schema."""
    return "InternalError" if kind is RungentError else kind.__name__


def schema_components(max_input_chars: int) -> Json:
    """Every schema by its name. Longer inputs than `max_input_chars` are refused."""
    found: Json = {}
    for part in (_events(), _bodies(), answer_schemas()[1], _errors()):
        _merge(found, part)
    found["NewRun"]["properties"]["input"]["maxLength"] = max_input_chars
    return dict(sorted(found.items()))


def _merge(found: Json, part: Json) -> None:
    for name, schema in part.items():
        if found.setdefault(name, schema) != schema:
            raise ValueError(f"two schemas are named {name}")


def _generated(types: Mapping[str, Any], mode: JsonSchemaMode) -> tuple[Json, Json]:
    """Schemas of types by name, and components that they refer to."""
    inputs: list[tuple[str, JsonSchemaMode, TypeAdapter[Any]]] = [
        (name, mode, TypeAdapter(kind)) for name, kind in types.items()
    ]
    made, rest = TypeAdapter.json_schemas(inputs, ref_template=REF + "{model}")
    return {name: schema for (name, _), schema in made.items()}, rest.get("$defs", {})


@cache
def answer_schemas() -> tuple[Json, Json]:
    """The schema of every operation's answer by its id, and components they refer to."""
    types = {operation.id: operation.answer for operation in OPERATIONS.values()}
    special = {
        EVENTS: {"type": "array", "items": {"$ref": REF + "Event"}},
        STREAM: {"$ref": REF + STREAM},
    }
    chosen = {name: kind for name, kind in types.items() if kind not in special}
    made, components = _generated(chosen, "serialization")
    for name, kind in types.items():
        if kind in special:
            made[name] = special[kind]
    return made, components


def _bodies() -> Json:
    bodies = [operation.body for operation in OPERATIONS.values() if operation.body is not None]
    _, found = _generated({body.__name__: body for body in bodies}, "validation")
    return found


def _errors() -> Json:
    kinds: list[tuple[type[RungentError], Problem]] = [
        *PROBLEMS.items(),
        (RungentError, INTERNAL),
    ]
    types = {
        f"{kind.code} {name}": annotation
        for kind, problem in kinds
        for name, annotation in problem.fields.items()
    }
    fields, found = _generated(types, "serialization")
    for kind, problem in kinds:
        properties: Json = {"code": {"const": kind.code, "type": "string"}, "message": TEXT}
        for name in problem.fields:
            properties[name] = fields[f"{kind.code} {name}"]
        detail = {"type": "object", "properties": properties, "required": list(properties)}
        found[error_name(kind)] = {
            "type": "object",
            "properties": {"detail": detail},
            "required": ["detail"],
        }
    return found


def _events() -> Json:
    """The published schema of events, taken apart into components."""
    schema: Json = json.loads(json.dumps(event_schema()).replace("#/$defs/", REF))
    found: Json = dict(schema["$defs"])
    mapping: dict[str, str] = {}
    for name, variant in _variants(schema):
        component = "".join(word.capitalize() for word in name.replace(".", "_").split("_"))
        mapping[name] = REF + component + "Event"
        found[component + "Event"] = variant
    found["Event"] = {
        "description": "One event of a run, told apart by `type`.",
        "oneOf": [{"$ref": target} for target in mapping.values()],
        "discriminator": {"propertyName": "type", "mapping": mapping},
    }
    found[STREAM] = {
        "description": "One frame of the stream. Comments keep it open and may be ignored.",
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "The event's `seq`.", "pattern": "^[0-9]+$"},
            "data": {
                "type": "string",
                "description": "The event, on one line.",
                "contentMediaType": "application/json",
                "contentSchema": {"$ref": REF + "Event"},
            },
        },
        "required": ["id", "data"],
    }
    return found


def _variants(schema: Json) -> Iterator[tuple[str, Json]]:
    for variant in schema["oneOf"]:
        yield variant["properties"]["type"]["const"], variant
