"""Calling the host: callbacks that may be plain functions or coroutines."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar, cast

__all__ = ["call_host"]

P = ParamSpec("P")
T = TypeVar("T")


async def call_host(
    function: Callable[P, T | Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a host callback and await its result if it is awaitable. Its exceptions pass.

    `function` is positional only: a tool's parameter may have any name.
    """
    result = cast("object", function(*args, **kwargs))
    if inspect.isawaitable(result):
        return cast("T", await result)
    return cast("T", result)
