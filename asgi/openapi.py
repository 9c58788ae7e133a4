"""The OpenAPI description of the routes, made from what checks requests and types answers.

Source: docs/http.md#description.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from urllib.parse import quote

from quart import Request

from rungent.asgi.problems import INTERNAL, PROBLEMS, MethodNotAllowed, Problem, problem_body
from rungent.asgi.schema_components import (
    HEADERS,
    PARAMETERS,
    answer_schemas,
    error_name,
    reference,
    schema_components,
)
from rungent.asgi.schema_examples import ANSWERS, ERRORS, REQUESTS
from rungent.asgi.schema_operations import COMMON, DESCRIPTION, OPERATIONS, STREAM, Operation
from rungent.errors import RungentError, RuntimeBusy, ShuttingDown, Unauthenticated

__all__ = ["DESCRIPTION_PATH", "describe", "description_for"]

DESCRIPTION_PATH = "/openapi.json"

INFO = """Durable runs of an agent and their ordered event log.

How a request says who sends it is up to the service that holds these routes. Every error has the
body `{"detail": {"code", "message", …}}` and changed nothing. Clients ignore keys and event types
that they do not know. Texts are measured after trimming. A method that a path does not have is
answered with `MethodNotAllowed`."""

ERROR_HEADERS: Mapping[type[RungentError], str] = {
    Unauthenticated: "WWW-Authenticate",
    MethodNotAllowed: "Allow",
    RuntimeBusy: "Retry-After",
    ShuttingDown: "Retry-After",
}
SUCCESS = {200: "Success.", 202: "Stored; the run goes on by itself."}

Json = dict[str, Any]


def description_for(
    request: Request, paths: Mapping[str, tuple[str, Iterable[str]]], max_input_chars: int
) -> Json:
    """The description as the sender of this request sees the routes: below its own mount point."""
    here = quote(request.root_path + request.path).removesuffix(DESCRIPTION_PATH)
    frozen = tuple((name, path, tuple(methods)) for name, (path, methods) in paths.items())
    return {**describe(frozen, max_input_chars), "servers": [{"url": here or "/"}]}


@cache
def describe(routes: tuple[tuple[str, str, tuple[str, ...]], ...], max_input_chars: int) -> Json:
    """The description of routes, each an endpoint name, a path and methods; without servers."""
    paths: Json = {}
    for name, path, methods in routes:
        template = path.replace("<", "{").replace(">", "}")
        paths[template] = {
            method.lower(): _operation(OPERATIONS[name, method], COMMON) for method in methods
        }
    paths[DESCRIPTION_PATH] = {"get": _operation(DESCRIPTION, (ShuttingDown,))}
    clicked = any(name == "action" for name, _, _ in routes)
    unused = set[str]() if clicked else {"ActionResult", "Token"}
    components: Json = {
        "schemas": _without(schema_components(max_input_chars), unused),
        "parameters": _without(PARAMETERS, unused),
        "headers": HEADERS,
        "responses": {"MethodNotAllowed": _refusal([MethodNotAllowed])},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Rungent", "version": _version(), "description": INFO},
        "paths": paths,
        "components": components,
    }


def _without(components: Mapping[str, Any], unused: set[str]) -> Json:
    return {name: made for name, made in components.items() if name not in unused}


def _version() -> str:
    try:
        return version("rungent-trio")
    except PackageNotFoundError:
        return "0"


def _operation(operation: Operation, common: Iterable[type[RungentError]]) -> Json:
    found: Json = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
    }
    if operation.text:
        found["description"] = operation.text
    if operation.parameters:
        found["parameters"] = [reference("parameters", name) for name in operation.parameters]
    if operation.body is not None:
        found["requestBody"] = {
            "required": operation.body_required,
            "content": {
                "application/json": {
                    "schema": reference("schemas", operation.body.__name__),
                    "example": REQUESTS[operation.id],
                }
            },
        }
    found["responses"] = {str(operation.status): _success(operation)}
    by_status: dict[int, list[type[RungentError]]] = defaultdict(list)
    for kind in (*common, *operation.errors):
        by_status[PROBLEMS[kind].status].append(kind)
    by_status[INTERNAL.status].append(RungentError)
    for status, kinds in sorted(by_status.items()):
        found["responses"][str(status)] = _refusal(kinds)
    return found


def _success(operation: Operation) -> Json:
    answer: Json = {"description": SUCCESS[operation.status]}
    if operation.answer is None:
        answer["content"] = {"application/json": {"schema": {"type": "object"}}}
    else:
        kind = "text/event-stream" if operation.answer == STREAM else "application/json"
        schema = answer_schemas()[0][operation.id]
        answer["content"] = {kind: {"schema": schema, "example": ANSWERS[operation.id]}}
    if operation.headers:
        answer["headers"] = {name: reference("headers", name) for name in operation.headers}
    if operation.leads:
        answer["links"] = {
            follower: {"operationId": follower, "parameters": {parameter: value}}
            for follower, (parameter, value) in operation.leads.items()
        }
    return answer


def _refusal(kinds: list[type[RungentError]]) -> Json:
    names = [error_name(kind) for kind in kinds]
    schemas = [reference("schemas", name) for name in names]
    content = {
        "schema": schemas[0] if len(schemas) == 1 else {"oneOf": schemas},
        "examples": {kind.code: {"value": _example(kind)} for kind in kinds},
    }
    answer: Json = {
        "description": "One of: " + ", ".join(f"`{kind.code}`" for kind in kinds) + ".",
        "content": {"application/json": content},
    }
    headers = {ERROR_HEADERS[kind] for kind in kinds if kind in ERROR_HEADERS}
    if headers:
        answer["headers"] = {name: reference("headers", name) for name in sorted(headers)}
    return answer


def _example(kind: type[RungentError]) -> Json:
    known: Problem = PROBLEMS.get(kind, INTERNAL)
    error = next((error for error in ERRORS if type(error) is kind), RungentError())
    return problem_body(error, known)
