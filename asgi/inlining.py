"""The description of the routes for the document of a host, which has components of its own.

Source: docs/hosts.md#fastapi.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from rungent.asgi.blueprint import Routes
from rungent.asgi.openapi import describe
from rungent.asgi.schema_operations import OPERATIONS

__all__ = ["inlined_operations"]

Json = dict[str, Any]


def inlined_operations(offered: Routes, max_input_chars: int) -> Mapping[tuple[str, str], Json]:
    """Endpoint name and method of the routes: the arguments that describe the operation to FastAPI.

    References are replaced by what they name. Links are left out, because the host names its
    operations; so are discriminators, which need names.
    """
    routes = tuple((name, path, tuple(views)) for name, (path, views) in offered.items())
    description = describe(routes, max_input_chars)
    found: dict[tuple[str, str], Json] = {}
    for name, path, methods in routes:
        template = path.replace("<", "{").replace(">", "}")
        for method in methods:
            shown = _inlined(description["paths"][template][method.lower()], description)
            operation = OPERATIONS[name, method]
            found[name, method] = {
                "name": re.sub("([A-Z])", r"_\1", operation.id).lower(),
                "status_code": operation.status,
                "summary": operation.summary,
                "description": operation.text,
                "openapi_extra": {
                    key: shown[key]
                    for key in ("parameters", "requestBody", "responses")
                    if key in shown
                },
            }
    return found


def _inlined(value: object, document: Json) -> Any:
    """The value without references. The components refer to each other in no circle."""
    if isinstance(value, list):
        return [_inlined(item, document) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    known = cast("Json", value)
    if "$ref" in known:
        target: Any = document
        for key in str(known["$ref"]).removeprefix("#/").split("/"):
            target = target[key]
        return _inlined({**target, **{k: v for k, v in known.items() if k != "$ref"}}, document)
    return {
        key: _inlined(item, document)
        for key, item in known.items()
        if key not in ("links", "discriminator")
    }
