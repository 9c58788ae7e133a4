"""The HTTP reference, made from the OpenAPI description of the routes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rungent.asgi.blueprint import ROUTES
from rungent.asgi.openapi import describe
from rungent.options import Options
from tests.docs.generated.acs import type_name

__all__ = ["http_page"]

HEAD = """\
# HTTP reference

Every route, made from the OpenAPI description by `python -m tests.docs`. Paths are relative to the place where the routes are mounted; a running application serves the description itself at `/openapi.json` there. Rules and reasons: [HTTP](../http.md). Every error has the body `{"detail": {"code", "message", …}}` and changed nothing; causes and remedies: [Codes](../codes.md#error-codes).
"""

Json = Mapping[str, Any]


def http_page() -> str:
    """The page."""
    routes = tuple((name, path, tuple(methods)) for name, (path, methods) in ROUTES.items())
    document: Json = describe(routes, Options().max_input_chars)
    schemas: Json = document["components"]["schemas"]
    lines = [HEAD]
    mentioned: set[str] = set()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            lines += _operation(f"{method.upper()} {path}", operation, document)
            mentioned |= _bodies(operation)
    lines.append("\n## Bodies\n")
    for name in sorted(_closure(mentioned, schemas)):
        lines += [f"\n### {name}\n\n", *_fields(schemas[name], schemas)]
    return "".join(lines)


def _operation(title: str, operation: Json, document: Json) -> Iterator[str]:
    yield f"\n## {title}\n\n{operation['summary']}.\n"
    if "description" in operation:
        yield "\n" + " ".join(operation["description"].split()) + "\n"
    parameters = [_resolved(entry, document) for entry in operation.get("parameters", ())]
    if parameters:
        yield "\n| Parameter | In | Type | Meaning |\n|---|---|---|---|\n"
    for entry in parameters:
        kind = type_name(entry["schema"], document["components"]["schemas"])
        meaning = " ".join(entry.get("description", "").split())
        yield f"| `{entry['name']}` | {entry['in']} | {kind} | {meaning} |\n"
    if "requestBody" in operation:
        content = operation["requestBody"]["content"]["application/json"]
        yield f"\nRequest body: {_linked(content['schema'])}.\n\n{_json(content['example'])}"
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            yield from _success(status, response)
    refusals = [
        f"{status} {response['description'].removeprefix('One of: ').rstrip('.')}"
        for status, response in operation["responses"].items()
        if not status.startswith("2") and "description" in response
    ]
    yield f"\nErrors: {'; '.join(refusals)}.\n"


def _success(status: str, response: Json) -> Iterator[str]:
    for kind, content in response.get("content", {}).items():
        schema = f": {_linked(content['schema'])}" if kind == "application/json" else ""
        yield f"\nAnswer {status}, `{kind}`{schema}.\n"
        if "example" in content:
            yield f"\n{_json(content['example'])}"


def _linked(schema: Json) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return "[Event](acs.md)" if name == "Event" else f"[{name}](#{name.lower()})"
    if schema.get("type") == "array":
        return f"array of {_linked(schema['items'])}"
    return str(schema.get("type", "JSON"))


def _json(example: object) -> str:
    text = example if isinstance(example, str) else json.dumps(example, indent=2)
    return f"```text\n{text.rstrip()}\n```\n"


def _resolved(entry: Json, document: Json) -> Json:
    if "$ref" not in entry:
        return entry
    kind, name = entry["$ref"].split("/")[-2:]
    resolved: Json = document["components"][kind][name]
    return resolved


def _bodies(operation: Json) -> set[str]:
    """The schemas of what is sent and of what a success brings."""
    parts = [operation.get("requestBody", {}), *operation["responses"].values()]
    found: set[str] = set()
    for part in parts:
        for kind, content in part.get("content", {}).items():
            text = json.dumps(content["schema"])
            if kind == "application/json" and '"Error' not in text and "detail" not in text:
                found |= _names(content["schema"])
    return found


def _names(schema: object) -> set[str]:
    """The names of all schemas that this one refers to, however deep."""
    return set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(schema)))


def _closure(names: set[str], schemas: Json) -> set[str]:
    """Those schemas and all that they refer to, objects alone, without errors and events."""
    found: set[str] = set()
    pending = sorted(names)
    while pending:
        name = pending.pop()
        schema: Json = schemas.get(name, {})
        if name in found or "properties" not in schema or "detail" in schema["properties"]:
            continue
        found.add(name)
        pending += sorted(_names(schema))
    return {name for name in found if not name.endswith("Event")}


def _fields(schema: Json, schemas: Json) -> Iterator[str]:
    required = set(schema.get("required", ()))
    yield "| Key | Type | Presence |\n|---|---|---|\n"
    for key, value in schema["properties"].items():
        presence = "always" if key in required else "optional"
        yield f"| `{key}` | {type_name(value, schemas)} | {presence} |\n"
