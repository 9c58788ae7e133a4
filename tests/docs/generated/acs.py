"""The event reference, made from the published schema and from stored logs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rungent.events import PAYLOADS, TERMINAL_TYPES, event_schema
from tests.docs.pages import ROOT

__all__ = ["acs_page", "type_name"]

HEAD = """\
# Event reference

The wire format of the event log (ACS), made from the [JSON Schema](../events.schema.json) of the events by `python -m tests.docs`; the examples are from logs that the tests record. What the events mean, and in which order they come: [Events](../events.md).

## Envelope

Every event has these keys and no others.

"""


def acs_page() -> str:
    """The page."""
    schema = event_schema()
    definitions: dict[str, Any] = schema["$defs"]
    envelope = schema["oneOf"][0]["properties"]
    lines = [HEAD + "| Key | Type |\n|---|---|\n"]
    for key, value in envelope.items():
        fixed = {"type": "one of the types below", "data": "the object of that type"}
        lines.append(f"| `{key}` | {fixed.get(key) or type_name(value, definitions)} |\n")
    examples = dict(_examples())
    for variant in schema["oneOf"]:
        properties = variant["properties"]
        name = properties["type"]["const"]
        lines += _event(name, properties["data"], definitions, examples[name])
    lines += ["\n## Shared objects\n"]
    for name in sorted(definitions):
        if "properties" in definitions[name]:
            lines += [f"\n### {name}\n\n", *_fields(definitions[name], definitions)]
    return "".join(lines)


def _event(
    name: str, data: Mapping[str, Any], definitions: Mapping[str, Any], example: Mapping[str, Any]
) -> Iterator[str]:
    yield f"\n## {name}\n\n"
    doc = " ".join((PAYLOADS[name].__doc__ or "").split())
    ends = " It ends the log." if name in TERMINAL_TYPES else ""
    yield f"{doc}{ends}\n\n"
    if data.get("properties"):
        yield from _fields(data, definitions)
        yield "\n"
    shown = json.dumps(example["data"], indent=2, ensure_ascii=False)
    yield f"```text\n{shown}\n```\n"


def _fields(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[str]:
    required = set(schema.get("required", ()))
    yield "| Key | Type | Presence |\n|---|---|---|\n"
    for key, value in schema["properties"].items():
        presence = "always" if key in required else "optional"
        yield f"| `{key}` | {type_name(value, definitions)} | {presence} |\n"


def _examples() -> Iterator[tuple[str, dict[str, Any]]]:
    """For each type the event with most to say of all stored logs; the first one of equals."""
    richest: dict[str, dict[str, Any]] = {}
    for path in sorted((ROOT / "tests" / "golden").glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
            event = json.loads(line)
            known = richest.get(event["type"])
            if known is None or _size(event) > _size(known):
                richest[event["type"]] = event
    yield from richest.items()


def _size(event: Mapping[str, Any]) -> tuple[int, bool]:
    data: Mapping[str, Any] = event["data"]
    return len(data), None not in data.values()


def type_name(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """A schema in words, for a cell of a table."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if "properties" in definitions.get(name, {}):
            return f"[{name}](#{name.lower()})"
        return (
            "any JSON value" if name == "JsonValue" else type_name(definitions[name], definitions)
        )
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " or ".join(type_name(part, definitions) for part in schema[union])
    return _plain(schema, definitions)


def _plain(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if kind is None:
        return "any JSON value"
    if isinstance(kind, list):
        return " or ".join(map(str, schema["type"]))
    if kind == "array":
        items = type_name(schema.get("items", {}), definitions)
        return f"array of {items}"
    low, high = schema.get("minLength"), schema.get("maxLength")
    if kind == "string" and (low is not None or high is not None):
        return f"string of {low or 0}–{high} characters" if high else f"string, {low} or more"
    if schema.get("format") == "date-time":
        return "UTC time, RFC 3339"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None or high is not None:
        return f"{kind}, {low} to {high}" if high is not None else f"{kind}, {low} or more"
    return str(kind)
