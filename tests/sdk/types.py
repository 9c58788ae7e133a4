"""TypeScript types of events and bodies, made from the published schema and the OpenAPI document.

The same schemas check requests and describe answers, so the SDK cannot drift from the server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rungent.asgi.schema_components import schema_components
from rungent.events import PAYLOADS, event_schema

__all__ = ["type_declarations"]

HEAD = """\
// Written by `python -m tests.sdk`; a test fails when it differs from what the server publishes.

/** Any JSON value. */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };
"""
# Described for other readers: the frame of a stream, and the two unions that are spelled here.
LEFT_OUT = {"EventFrame", "Event", "JsonValue"}
MAX_INPUT_CHARS = 65_536

Json = Mapping[str, Any]


def type_declarations() -> str:
    """The module `sdk/src/types.ts`."""
    return "\n".join([HEAD, *_bodies(schema_components(MAX_INPUT_CHARS)), *_events()])


def _bodies(schemas: Mapping[str, Json]) -> Iterator[str]:
    codes: list[str] = []
    details: list[str] = []
    for name, schema in sorted(schemas.items()):
        if name in LEFT_OUT or name.endswith("Event"):
            continue
        if "detail" in schema.get("properties", {}):
            detail = schema["properties"]["detail"]
            codes.append(json.dumps(detail["properties"]["code"]["const"]))
            details.append(f"{name}Detail")
            yield _declared(f"{name}Detail", detail)
        else:
            yield _declared(name, schema)
    yield _union("ApiErrorDetail", "What an error of the API says, told apart by `code`.", details)
    yield _union("ApiErrorCode", "The codes of the API's own errors.", codes)


def _events() -> Iterator[str]:
    payloads: dict[str, Json] = {}
    names: list[str] = []
    for variant in event_schema()["oneOf"]:
        kind: str = variant["properties"]["type"]["const"]
        data = variant["properties"]["data"]
        payloads.setdefault(data["title"], data)
        name = "".join(word.title() for word in kind.replace(".", "_").split("_")) + "Event"
        names.append(name)
        fields = {**variant["properties"], "data": {"$ref": data["title"]}}
        yield _declared(name, {**variant, "properties": fields, "description": f"`{kind}`"})
    for name, data in sorted(payloads.items()):
        yield _declared(name, data)
    yield _union("RungentEvent", "One event of a run, told apart by `type`.", names)
    quoted = [json.dumps(kind) for kind in PAYLOADS]
    yield "/** Every event type of this version. */"
    yield "export const EVENT_TYPES = [\n  " + ",\n  ".join(quoted) + ",\n] as const;\n"


def _declared(name: str, schema: Json) -> str:
    lines = _comment(schema.get("description"), "")
    if schema.get("type") != "object":
        return "\n".join([*lines, f"export type {name} = {_type(schema)};\n"])
    properties: Json = schema.get("properties", {})
    if not properties:
        return "\n".join([*lines, f"export type {name} = Readonly<Record<string, never>>;\n"])
    required = set(schema.get("required", ()))
    lines.append(f"export interface {name} {{")
    for key, value in properties.items():
        lines += _comment(value.get("description"), "  ")
        mark = "" if key in required else "?"
        lines.append(f"  readonly {key}{mark}: {_type(value)};")
    return "\n".join([*lines, "}\n"])


def _type(schema: Json) -> str:
    match schema:
        case {"$ref": str(target)}:
            return target.rpartition("/")[2]
        case {"const": value}:
            return json.dumps(value)
        case {"enum": values}:
            return " | ".join(json.dumps(value) for value in values)
        case {"anyOf": variants}:
            return " | ".join(_type(variant) for variant in variants)
        case {"type": "array", "items": items}:
            inner = _type(items)
            return f"readonly ({inner})[]" if "|" in inner else f"readonly {inner}[]"
        case {"type": "object", "additionalProperties": {"$ref": str()}}:
            return f"Readonly<Record<string, {_type(schema['additionalProperties'])}>>"
        case {"type": "integer" | "number"}:
            return "number"
        case {"type": "string" | "boolean" | "null" as name}:
            return str(name)
        case _:
            raise ValueError(f"no TypeScript for {sorted(schema)}")


def _comment(text: str | None, indent: str) -> list[str]:
    return [] if text is None else [f"{indent}/** {text} */"]


def _union(name: str, text: str, members: list[str]) -> str:
    return f"/** {text} */\nexport type {name} =\n  | " + "\n  | ".join(members) + ";\n"
