"""The Python reference, made from signatures and docstrings of the public modules."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import os.path
import re
from collections.abc import Iterator, Mapping
from typing import Any, get_origin, is_typeddict

from pydantic import BaseModel

__all__ = ["MODULES", "python_page"]

MODULES = {
    "rungent": "What a host declares and serves.",
    "rungent.llm": "The model port and its adapter.",
    "rungent.store": "The store port and the store in memory.",
    "rungent.sqlalchemy": "The store for SQLite and PostgreSQL.",
    "rungent.asgi": "HTTP: application, blueprint, server.",
    "rungent.asgi.embed": "A runtime beside an event loop of asyncio.",
    "rungent.fastapi": "The routes as FastAPI routers.",
    "rungent.mcp": "The tools for external agents.",
    "rungent.events": "Envelope, payloads and schema of the event log.",
    "rungent.logs": "Log records as JSON.",
    "rungent.testing": "Scripted models, virtual time, baselines.",
    "rungent.testing.asgi": "An ASGI client inside the process.",
    "rungent.testing.sse": "Reading event streams in tests.",
    "rungent.testing.staged": "The whole stack in virtual time.",
    "rungent.testing.simulation": "Whole systems played from a seed.",
    "rungent.verify": "Checking what is stored.",
}
HEAD = """\
# Python reference

Signatures and docstrings of the public modules, made from the code by `python -m tests.docs`. Everything that is not listed here is internal, above all modules whose names begin with an underscore.

| Module | Holds |
|---|---|
"""


def python_page() -> str:
    """The page."""
    lines = [HEAD]
    for name, summary in MODULES.items():
        lines.append(f"| [`{name}`](#{name.replace('.', '')}) | {summary} |\n")
    for name in MODULES:
        module = importlib.import_module(name)
        lines.append(f"\n## {name}\n\n{_prose(module.__doc__ or '')}\n")
        for exported in sorted(module.__all__, key=str.lower):
            lines += _entry(exported, getattr(module, exported))
    return "".join(lines)


def _entry(name: str, value: Any) -> Iterator[str]:
    yield f"\n### {name}\n\n"
    if inspect.isclass(value):
        yield from _class(name, value)
    elif get_origin(value) is not None or not callable(value):
        yield f"A value of the type `{type(value).__name__}`.\n"
    else:
        yield f"```text\n{_signature(name, value)}\n```\n\n{_prose(_doc(value))}\n"


def _class(name: str, kind: type[Any]) -> Iterator[str]:
    if issubclass(kind, enum.Enum):
        yield f"{_prose(_doc(kind))}\n\n| Member | Value |\n|---|---|\n"
        yield from (f"| `{member.name}` | `{member.value}` |\n" for member in kind)
        return
    fields = list(_fields(kind))
    if not (is_typeddict(kind) or getattr(kind, "_is_protocol", False)):
        yield f"```text\n{_constructor(name, kind)}\n```\n\n"
    yield f"{_prose(_doc(kind))}\n"
    if fields and not dataclasses.is_dataclass(kind):
        yield "\n| Field | Type |\n|---|---|\n"
        yield from (f"| `{field}` | {_cell(annotation)} |\n" for field, annotation in fields)
    for member, value in _members(kind):
        yield f"\n#### {name}.{member}\n\n"
        if isinstance(value, property):
            yield f"Property. {_prose(_doc(value))}\n"
        else:
            function = getattr(value, "__func__", value)
            shown = _signature(member, function, bound=not isinstance(value, staticmethod))
            yield f"```text\n{shown}\n```\n\n{_prose(_doc(value))}\n"


def _constructor(name: str, kind: type[Any]) -> str:
    if issubclass(kind, BaseModel):
        return f"class {name}"
    if issubclass(kind, Exception) and "__init__" not in vars(kind):
        return f"class {name}({kind.__mro__[1].__name__})"
    try:
        return _signature(name, kind)
    except ValueError:
        return f"class {name}"


def _fields(kind: type[Any]) -> Iterator[tuple[str, str]]:
    if issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            yield name, _type(field.annotation)
    elif is_typeddict(kind) or getattr(kind, "_is_protocol", False):
        for name, annotation in vars(kind).get("__annotations__", {}).items():
            if not name.startswith("_"):
                yield name, _type(annotation)


def _members(kind: type[Any]) -> Iterator[tuple[str, Any]]:
    """Public methods and properties of the class and its own bases, in the order of the source."""
    seen: set[str] = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("rungent") or base.__module__ == "rungent.frozen":
            continue
        for name, value in vars(base).items():
            function = getattr(value, "__func__", value)
            shown = isinstance(value, property) or inspect.isfunction(function)
            if shown and not name.startswith("_") and name not in seen and _doc(value):
                seen.add(name)
                yield name, value


def _signature(name: str, function: Any, *, bound: bool = False) -> str:
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if bound and parameters and parameters[0].name in {"self", "cls"}:
        parameters.pop(0)
    prefix = "async " if inspect.iscoroutinefunction(function) else ""
    result = "" if inspect.isclass(function) else _returns(signature.return_annotation)
    shown = list(_parameters(parameters, _factories(function)))
    line = f"{prefix}{name}({', '.join(shown)}){result}"
    if len(line) <= 88:
        return line
    body = "".join(f"    {text},\n" for text in shown)
    return f"{prefix}{name}(\n{body}){result}"


def _factories(function: Any) -> dict[str, str]:
    """What the default factories of a dataclass make, by field."""
    if not dataclasses.is_dataclass(function):
        return {}
    fields = [f for f in dataclasses.fields(function) if callable(f.default_factory)]
    return {f.name: repr(f.default_factory()) for f in fields if callable(f.default_factory)}


def _parameters(parameters: list[inspect.Parameter], factories: Mapping[str, str]) -> Iterator[str]:
    starred = False
    for parameter in parameters:
        if parameter.name.startswith("_") or parameter.name == "task_status":
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            starred = True
            yield f"*{parameter.name}"
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            yield f"**{parameter.name}: {_type(parameter.annotation)}"
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        text = parameter.name
        if parameter.annotation is not parameter.empty:
            text += f": {_type(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            text += f" = {factories.get(parameter.name) or _default(parameter.default)}"
        yield text


def _returns(annotation: object) -> str:
    return "" if annotation is inspect.Signature.empty else f" -> {_type(annotation)}"


def _type(annotation: object) -> str:
    if isinstance(annotation, str):
        text = annotation
    elif inspect.isclass(annotation) and get_origin(annotation) is None:
        text = annotation.__name__
    else:
        text = str(getattr(annotation, "__forward_arg__", annotation))
    text = re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z])", "", text)
    return text.replace("NoneType", "None").strip("'\"").replace("'", '"')


def _default(value: object) -> str:
    if isinstance(value, enum.Enum):
        value = value.value
    if inspect.isclass(value) or inspect.isroutine(value):
        return str(value.__name__)
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    return "…" if " at 0x" in text or "<" in text else text


def _doc(value: Any) -> str:
    return inspect.cleandoc(getattr(value, "__doc__", None) or "")


def _prose(text: str) -> str:
    """A docstring as Markdown: its pages become links, its paragraphs keep apart."""
    text = inspect.cleandoc(text)
    text = re.sub(r"(?<!\[)`?\bdocs/([\w/-]+\.md)(#[\w-]+)?`?", _link, text)
    return re.sub(r"\bSource: \[", "See [", text)


def _link(found: re.Match[str]) -> str:
    target = os.path.relpath(found[1], "reference")
    return f"[{found[1].removesuffix('.md')}]({target}{found[2] or ''})"


def _cell(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")
