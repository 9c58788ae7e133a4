"""Saying what is wrong without saying what is stored. Source: docs/operating.md#verify."""

from __future__ import annotations

from pydantic import ValidationError

__all__ = ["invalid_fields"]


def invalid_fields(invalid: ValidationError) -> str:
    """The first broken rule with its place, without the value that broke it."""
    first = invalid.errors(include_input=False, include_url=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else first["msg"]
