"""Reading the OpenAPI description: what it says about a response, and whether one keeps to it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from jsonschema import Draft202012Validator, FormatChecker

from rungent.testing.asgi import AsgiResponse

Json = dict[str, Any]


class Seen(NamedTuple):
    """What a response was: the operation, its status, and the code of an error or ""."""

    operation: str
    status: int
    code: str


@dataclass
class Description:
    """A description, and what it was found to say about real responses."""

    document: Json
    seen: set[Seen] = field(default_factory=set[Seen])

    def __post_init__(self) -> None:
        self.strict: Json = closed(self.document)

    def operations(self) -> Iterator[tuple[str, str, Json]]:
        """Path, method and operation of everything described."""
        for path, item in self.document["paths"].items():
            for method, operation in item.items():
                yield path, method.upper(), operation

    def documented(self) -> set[Seen]:
        """Everything that may come, one for each code of an error."""
        return {
            Seen(operation["operationId"], int(status), code)
            for _, _, operation in self.operations()
            for status, response in operation["responses"].items()
            for code in response["content"].get("application/json", {}).get("examples", {"": 0})
        }

    def check(self, schema: Json, value: object) -> None:
        """Raise unless the value fits the schema and holds no key that is not described."""
        root = {**closed(schema), "components": self.strict["components"]}
        validator: Any = Draft202012Validator(root, format_checker=FormatChecker())
        validator.validate(value)

    def resolved(self, part: Json) -> Json:
        """The part, or what it refers to."""
        target: Any = part
        while "$ref" in target:
            found: Any = self.document
            for name in target["$ref"].removeprefix("#/").split("/"):
                found = found[name]
            target = found
        return cast("Json", target)

    def check_response(self, method: str, path: str, answer: AsgiResponse) -> None:
        """Raise unless status, headers and body are what the description says."""
        operation = self._operation(method, path)
        response = operation["responses"][str(answer.status)]
        for name, part in response.get("headers", {}).items():
            header = self.resolved(part)
            given = answer.headers.get(name.lower())
            assert given is not None or not header.get("required"), f"{name} is missing"
            if given is not None:
                number = header["schema"].get("type") == "integer"
                self.check(header["schema"], int(given) if number else given)
        for name in ("link", "idempotency-replayed", "retry-after", "www-authenticate", "allow"):
            described = {known.lower() for known in response.get("headers", {})}
            assert name not in answer.headers or name in described, f"{name} is not described"
        kind = answer.headers["content-type"].partition(";")[0]
        schema = response["content"][kind]["schema"]
        code = ""
        if kind == "text/event-stream":
            self.check_stream(schema, answer.body.decode())
        else:
            self.check(schema, answer.json())
            code = answer.json()["detail"]["code"] if answer.status >= 400 else ""
        self.seen.add(Seen(operation["operationId"], answer.status, code))

    def check_stream(self, schema: Json, text: str) -> None:
        """Raise unless the text is a stream of described frames."""
        frames = [
            dict(line.split(": ", 1) for line in block.splitlines())
            for block in text.split("\n\n")
            if block.startswith("id: ")
        ]
        assert frames
        for frame in frames:
            self.check_frame(schema, frame)

    def check_frame(self, schema: Json, frame: Json) -> None:
        """Raise unless the frame and the event in it are what the description says."""
        self.check(schema, frame)
        data = self.resolved(schema)["properties"]["data"]
        assert data["contentMediaType"] == "application/json"
        self.check(data["contentSchema"], json.loads(frame["data"]))

    def _operation(self, method: str, path: str) -> Json:
        for template, known, operation in self.operations():
            pattern = re.sub(r"\\?\{\w+\\?\}", "[^/]+", re.escape(template))
            if known == method and re.fullmatch(pattern, path.partition("?")[0]):
                return operation
        raise AssertionError(f"{method} {path} is not described")


def closed(part: Any) -> Any:
    """A copy in which no object may have other properties than those that are listed."""
    part = deepcopy(part)
    _close(part)
    return part


def _close(part: Any) -> None:
    if isinstance(part, dict):
        known = cast("Json", part)
        if isinstance(known.get("properties"), dict) and known.get("type") == "object":
            known["additionalProperties"] = False
        for value in known.values():
            _close(value)
    elif isinstance(part, list):
        for value in cast("list[object]", part):
            _close(value)
